"""When a process of a bench takes its steps: at once, or when the bench says so.

`Paced` is of the process, `Pacer` of the bench. They talk through a socket in the file system:
"12" asks for twelve steps, and the answer is the time that the first began and those at which each
was committed.
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
    """Between two requests it waits, and takes no time. Ends the process when the bench is gone."""

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
    """Of processes that take their steps together."""

    def __init__(self, path: Path, count: int) -> None:
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(count)
        self._server.settimeout(120)
        self._count = count
        self._streams: list = []

    def steps(self, count: int) -> list[float]:
        """How long each took, from when the last process had the one before to when the last one
        has it."""
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
