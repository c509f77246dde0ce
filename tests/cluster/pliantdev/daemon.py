"""Processes that outlive the command that started them, and are found by their recorded id."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .errors import DevError

# The child records its id before it executes the program, so no process runs unrecorded even if we
# are killed. The system may reuse a process id; with start time and boot id the record is unique.
_RECORD_AND_EXEC = """
echo "$$ $(cut -d' ' -f22 /proc/$$/stat) $(cat /proc/sys/kernel/random/boot_id)" > "$1.new"
mv "$1.new" "$1"
shift
exec "$@"
"""


def _stat(pid: int) -> list[str] | None:
    """The fields of a process in /proc/PID/stat from its state on (proc(5)); None if there is no
    such process, or only its exit status is left."""
    try:
        # The second field is the program's name in parentheses, which may contain any characters.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields


def _start_time(pid: int) -> str | None:
    """The start time in clock ticks since boot."""
    fields = _stat(pid)
    return fields[19] if fields else None


class Daemon:
    """A process whose id is recorded in a file. `directory` holds NAME.pid and NAME.log."""

    def __init__(self, name: str, directory: Path):
        self.name = name
        self.log = directory / f"{name}.log"
        self._pid_file = directory / f"{name}.pid"
        self._command_file = directory / f"{name}.command"
        self._child: subprocess.Popen | None = None

    def pid(self) -> int | None:
        """Its process id; None if it does not run, or if the id now belongs to another process."""
        try:
            pid, start_time, boot = self._pid_file.read_text().split()
        except (OSError, ValueError):
            return None
        if boot != Path("/proc/sys/kernel/random/boot_id").read_text().strip():
            return None
        return int(pid) if _start_time(int(pid)) == start_time else None

    def cpu_seconds(self) -> float:
        """The processor time that it has used; 0 if it does not run."""
        pid = self.pid()
        fields = _stat(pid) if pid else None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0

    def start(self, command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> None:
        """Starts it in its own session, unless it runs already."""
        if self.pid():
            return
        self._pid_file.parent.mkdir(parents=True, exist_ok=True)
        self._pid_file.unlink(missing_ok=True)
        self._command_file.write_text(json.dumps([*map(str, command)]))
        with self.log.open("w") as log:
            self._child = subprocess.Popen(
                ["/bin/sh", "-ec", _RECORD_AND_EXEC, "sh", self._pid_file, *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=None if env is None else {**os.environ, **env},
                cwd="/",
                start_new_session=True,
            )
        while not self._pid_file.exists():
            if self._child.poll() is not None:
                raise DevError(f"{self.name} could not be started", log=self.log)
            time.sleep(0.002)

    def restart(self, away_seconds: float) -> None:
        """Kills it, and starts it again with the same command."""
        try:
            command = json.loads(self._command_file.read_text())
        except OSError:
            raise DevError(f"{self.name} was never started", remedy="./dev up") from None
        self.stop(first=signal.SIGKILL)
        time.sleep(away_seconds)
        self.start(command)

    def stop(self, grace_seconds: float = 5.0, first: signal.Signals = signal.SIGTERM) -> None:
        """Ends it: sends `first`, and SIGKILL if it still runs after the grace period."""
        pid = self.pid()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, first)
            deadline = time.monotonic() + grace_seconds
            while self.pid() is not None:
                if time.monotonic() > deadline:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                    deadline = float("inf")
                time.sleep(0.01)
        if self._child:  # it is our child: we must collect its exit status
            self._child.wait()
            self._child = None
        self._pid_file.unlink(missing_ok=True)


def wait_until(
    what: str, ready: Callable[[], bool], timeout_seconds: float, needs: Sequence[Daemon] = ()
) -> None:
    """Waits until `ready` returns true. If a needed process ends meanwhile, raises an error at
    once, not after the timeout."""
    deadline = time.monotonic() + timeout_seconds
    while not ready():
        for daemon in needs:
            if daemon.pid() is None:
                raise DevError(
                    f"{daemon.name} has ended while waiting until {what}", log=daemon.log
                )
        if time.monotonic() > deadline:
            raise DevError(
                f"waiting until {what} timed out after {timeout_seconds:.0f} s",
                log=needs[-1].log if needs else None,
            )
        time.sleep(0.05)
