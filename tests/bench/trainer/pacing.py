"""Decides when a process of a bench takes its steps: freely, or on request of the bench.

`Paced` is the process's side, `Pacer` the bench's. They use a socket in the file system: "12"
requests twelve steps; the answer is the time when the first began and the time of each commit.
"""

import socket
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Protocol


class Pace(Protocol):
    def before_step(self) -> None: ...
    def after_step(self) -> None: ...


class Free:
    def before_step(self) -> None:
        pass

    def after_step(self) -> None:
        pass


class Paced:
    """Between two requests the process waits without processor time. It ends when the bench has
    gone."""

    def __init__(self, path: str) -> None:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        self._stream = connection.makefile("rw")
        self._left = 0
        self._times: list[float] = []

    def before_step(self) -> None:
        if self._left > 0:
            return
        line = self._stream.readline()
        if not line:
            raise SystemExit(0)
        self._left = int(line)
        self._times = [time.monotonic()]

    def after_step(self) -> None:
        self._times.append(time.monotonic())
        self._left -= 1
        if self._left == 0:
            print(*self._times, file=self._stream, flush=True)


class Pacer:
    """The bench's side, for processes that take their steps together."""

    def __init__(self, path: Path, count: int) -> None:
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(count)
        self._server.settimeout(120)
        self._count = count
        self._streams: list = []

    def steps(self, count: int) -> list[float]:
        """Takes `count` steps. Returns the time of each, from the last process's end of the step
        before to the last process's end of this one."""
        while len(self._streams) < self._count:
            self._streams.append(self._server.accept()[0].makefile("rw"))
        for stream in self._streams:
            print(count, file=stream, flush=True)
        return together([self._answer(stream) for stream in self._streams])

    def _answer(self, stream) -> list[float]:
        line = stream.readline()
        if not line:
            raise SystemExit("a process that is measured ended")
        return [float(word) for word in line.split()]

    def close(self) -> None:
        """Ends the processes."""
        for stream in self._streams:
            stream.close()
        self._server.close()


def together(times: Sequence[Sequence[float]]) -> list[float]:
    done = [max(at) for at in zip(*times, strict=True)]
    return [after - before for before, after in pairwise(done)]
