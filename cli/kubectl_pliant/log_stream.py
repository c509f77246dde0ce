"""The log of one learner, read by kubectl logs until its pod has ended."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator

from .errors import CommandError, ForbiddenError, NotFoundError, bug
from .kubectl import Kubectl
from .log_lines import Position, shown
from .pods import CONTAINER, Learner
from .processes import stop
from .server_errors import error_of

_PAUSE_SECONDS = 1.0
_MAX_LINE_BYTES = 1 << 16


def arguments(learner: Learner, *, follow: bool, tail: int | None, since: str | None) -> list[str]:
    found = ["logs", learner.pod, f"--container={CONTAINER}", "--timestamps"]
    found += ["--follow"] if follow else []
    if since is not None:
        found.append(f"--since-time={since}")
    elif tail is not None:
        found.append(f"--tail={tail}")
    return found


def read(kubectl: Kubectl, learner: Learner, position: Position, given: list[str]) -> Iterator[str]:
    """The lines that were not printed before. Raises a CommandError if kubectl fails."""
    yield from read_from(kubectl.start(given), learner, position)


def read_from(process: subprocess.Popen[bytes], learner: Learner, position: Position) -> Iterator[str]:
    try:
        assert process.stdout is not None and process.stderr is not None
        while line := process.stdout.readline(_MAX_LINE_BYTES):
            rest = position.take(line)
            if rest is not None:
                yield from shown(learner.prefix, rest)
        said = process.stderr.read(1 << 16).decode(errors="replace")
        code = process.wait()
    finally:
        stop(process)
    if code != 0:
        raise error_of(said, code)


class LogStream:
    """Calls `on_line` for each line, and `on_end` when no more will come. Both are called by a thread of the stream."""

    def __init__(
        self,
        kubectl: Kubectl,
        learner: Learner,
        tail: int | None,
        on_line: Callable[[str], None],
        on_end: Callable[[CommandError | None], None],
    ) -> None:
        self._kubectl = kubectl
        self._learner = learner
        self._tail = tail
        self._on_line = on_line
        self._on_end = on_end
        self._pod_ended = threading.Event()
        self._stopped = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def pod_has_ended(self) -> None:
        """Nothing more is written. The stream ends when it has read what there is."""
        self._pod_ended.set()

    def stop(self) -> None:
        self._stopped.set()
        if self._process is not None:
            stop(self._process)

    def _run(self) -> None:
        try:
            self._on_end(self._read_all())
        except Exception as error:  # noqa: BLE001
            self._on_end(bug(error))

    def _read_all(self) -> CommandError | None:
        position = Position()
        while not self._stopped.is_set():
            # Read before the log, so that nothing is missed of a pod that ends meanwhile.
            is_last = self._pod_ended.is_set()
            given = arguments(self._learner, follow=True, tail=self._tail, since=position.resume())
            try:
                self._process = process = self._kubectl.start(given)
                if self._stopped.is_set():
                    stop(process)
                for line in read_from(process, self._learner, position):
                    self._on_line(line)
                if is_last:
                    break
            except NotFoundError:
                break  # the pod is deleted: a learner that left
            except ForbiddenError as error:
                return error
            except CommandError:
                pass  # the connection is lost, or the kubelet is away for a while
            time.sleep(_PAUSE_SECONDS)
        return None
