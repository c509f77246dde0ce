"""Copies the program's output to a file next to the checkpoints. The output itself is unchanged."""

import os
import sys
import threading
from typing import Any, TextIO

from ._learner import Learner


class OutputCopy:
    """Wraps a stream and copies its text. Output of C libraries bypasses Python's streams, so it is
    not copied."""

    def __init__(self, stream: TextIO, learner: Learner) -> None:
        self._stream = stream
        self._learner: Learner | None = learner
        # Keeps the learner alive while another thread prints. Reentrant: a signal handler may
        # print.
        self._lock = threading.RLock()
        self._process = os.getpid()  # a forked child lacks the thread that writes the file

    def write(self, text: str) -> int:
        count = self._stream.write(text)
        if os.getpid() == self._process:
            with self._lock:
                if self._learner is not None:
                    self._learner.keep_output(text)
        return count

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def detach_learner(self) -> None:
        with self._lock:
            self._learner = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class KeptStreams:
    """Replaces sys.stdout and sys.stderr until it is closed."""

    def __init__(self, learner: Learner) -> None:
        self._before = (sys.stdout, sys.stderr)
        self._copies = (OutputCopy(sys.stdout, learner), OutputCopy(sys.stderr, learner))
        sys.stdout, sys.stderr = self._copies

    def close(self) -> None:
        """Code that still holds one of our streams continues to write to the original stream."""
        for copy in self._copies:
            copy.detach_learner()
        if sys.stdout is self._copies[0]:
            sys.stdout = self._before[0]
        if sys.stderr is self._copies[1]:
            sys.stderr = self._before[1]
