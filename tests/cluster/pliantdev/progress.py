"""Shows phases of work on the terminal, each with its elapsed time and its own log."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from .errors import DevError
from .settings import STATE

_STARTED = time.monotonic()


def clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"


def say(text: str) -> None:
    """Prints a line of progress, with the time since the command was started, on stderr: stdout is
    for results."""
    print(f"[{clock(time.monotonic() - _STARTED):>6}] {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def phase(title: str, expect: str = "") -> Iterator[None]:
    """Prints what begins and how long it may take, shows a clock on a terminal meanwhile, and
    prints how long it took."""
    begun = time.monotonic()
    say(f"{title} ..." + (f" ({expect})" if expect else ""))
    over = threading.Event()

    def tick() -> None:
        while not over.wait(1.0):
            now = time.monotonic()
            print(
                f"\r[{clock(now - _STARTED):>6}]   {clock(now - begun)} ",
                end="",
                file=sys.stderr,
                flush=True,
            )

    ticker = threading.Thread(target=tick, daemon=True) if sys.stderr.isatty() else None
    if ticker:
        ticker.start()
    try:
        yield
    finally:
        over.set()
        if ticker:
            ticker.join()
            print("\r" + " " * 24 + "\r", end="", file=sys.stderr)
    say(f"{title}: {time.monotonic() - begun:.1f} s")


def log_file(name: str) -> Path:
    directory = STATE / "log"
    directory.mkdir(parents=True, exist_ok=True)
    return directory / f"{name}.log"


# Buildah first copies itself into memory and seals the copy. The kernel refuses the seal while some
# other part of it still holds a page of the copy. Nothing of the container has run then.
_NOT_STARTED = b"sealing memfd copy: Device or resource busy"


def run_to_log(
    command: Sequence[str | Path],
    log: Path,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> int:
    """Runs a command with its output at the end of `log`; returns its exit status. A container that
    did not start is tried again, twice at most."""
    tries = 3
    while True:
        tries -= 1
        with log.open("ab") as out:
            begin = out.tell()
            status = subprocess.run(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=None if env is None else {**os.environ, **env},
                check=False,
            ).returncode
        with log.open("rb") as written:
            written.seek(begin)
            # Where the container ran, its output comes first.
            started = _NOT_STARTED not in written.readline(1000)
        if started or tries == 0:
            return status
        time.sleep(1)


def run_logged(
    command: Sequence[str | Path],
    log: Path,
    what: str,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    append: bool = False,
) -> None:
    """Runs a command with its output in `log`. If it fails, the error names the log and quotes its
    end."""
    with log.open("a" if append else "w") as out:
        print("+", *command, file=out)
    status = run_to_log(command, log, cwd=cwd, env=env)
    if status != 0:
        raise DevError(f"{what} failed (exit status {status})", log=log)
