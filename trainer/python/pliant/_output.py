"""What a program prints goes to its own output as before, and beside the checkpoints too."""

import os
import sys
import threading
from typing import Any, TextIO

from ._learner import Learner


class OutputCopy:
    """Stands before a stream. What is written below Python (by a library in C) is not seen here."""

    def __init__(self, stream: TextIO, learner: Learner) -> None:
        self._stream = stream
        self._learner: Learner | None = learner
        # The learner must not go while another thread prints. A signal's handler may print, too.
        self._lock = threading.RLock()
        self._process = os.getpid()  # a forked one has not the thread that writes

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
    """sys.stdout and sys.stderr, until it is closed."""

    def __init__(self, learner: Learner) -> None:
        self._before = (sys.stdout, sys.stderr)
        self._copies = (OutputCopy(sys.stdout, learner), OutputCopy(sys.stderr, learner))
        sys.stdout, sys.stderr = self._copies

    def close(self) -> None:
        """Who holds a stream of ours goes on writing to the one behind it."""
        for copy in self._copies:
            copy.detach_learner()
        if sys.stdout is self._copies[0]:
            sys.stdout = self._before[0]
        if sys.stderr is self._copies[1]:
            sys.stderr = self._before[1]
