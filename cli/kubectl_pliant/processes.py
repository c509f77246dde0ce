"""The processes that this program starts. None of them outlives it, whenever Ctrl-C or SIGTERM comes."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_GRACE_SECONDS = 2.0  # between SIGTERM and SIGKILL


class _Interrupts:
    """What has come while a block holds it back. Python runs its handlers in the main thread alone."""

    def __init__(self) -> None:
        self.holders = 0
        self.has_come = False

    def take(self, number: int, frame: object) -> None:
        self.has_come = True
        self.act()

    def act(self) -> None:
        if self.has_come and self.holders == 0:
            self.has_come = False
            raise KeyboardInterrupt


_interrupts = _Interrupts()
_running: list[subprocess.Popen[bytes]] = []
_changes = threading.Lock()  # of the list, and of what begins
_closed = False  # no process begins from now on


def raise_on_signals() -> None:
    """Signals that end a program raise KeyboardInterrupt from now on, so that every `finally` runs.
    SIGHUP is that of a terminal that closes, unless nohup ignores it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupts.take)
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:
        signal.signal(hangup, _interrupts.take)


@contextmanager
def undisturbed() -> Iterator[None]:
    """A signal raises at the end of the block instead of within it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _interrupts.holders += 1
    try:
        yield
    finally:
        _interrupts.holders -= 1
        _interrupts.act()


def start(command: Sequence[str], stdin: int) -> subprocess.Popen[bytes]:
    """A process of its own group, so that Ctrl-C reaches this program alone. Raises what Popen raises."""
    # An interrupt within Popen would lose the process, and so would stop_all by another thread.
    with undisturbed(), _changes:
        if _closed:
            raise OSError("the program ends")
        process = subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=os.name == "posix",
        )  # fmt: skip
        _running[:] = [*(each for each in _running if each.returncode is None), process]
        return process


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that still runs."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def stop_all() -> None:
    """Call it last: no process can be started afterwards."""
    global _closed
    with undisturbed():
        with _changes:
            _closed = True
        while True:
            with _changes:
                if not _running:
                    return
                process = _running.pop()
            stop(process)
