"""A thread for what is written to a slow place, such as a full or hung volume or a server: the
training does not wait for it."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

# Several minutes of lines. The queue fills only if the place hangs; the bound limits its memory.
_MAX_WAITING = 1000
END_SECONDS = 5.0
_END = object()


class Background:
    """Calls `take` with each item, in order, and `finish` behind the last one, both on a thread of
    its own. `tell` gets a line for the user once: the place is too slow, or what `failure` makes of
    an exception, after which nothing more is taken."""

    def __init__(
        self,
        name: str,
        take: Callable[[Any], None],
        finish: Callable[[], None],
        failure: Callable[[Exception], str],
        tell: Callable[[str], None],
    ) -> None:
        self._take = take
        self._finish = finish
        self._failure = failure
        self._say = tell
        self._items: queue.Queue[Any] = queue.Queue(_MAX_WAITING)
        self.over = False  # nothing more is taken
        self._told = False
        self.closing = threading.Event()  # for a `take` that waits
        # A daemon: a thread that hangs does not keep the process alive.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def add(self, item: Any) -> bool:
        """Does not block. Returns whether the item will be taken."""
        if not self.over:
            with contextlib.suppress(queue.Full):
                self._items.put_nowait(item)
                return True
        return False

    def close(self) -> None:
        """Waits up to END_SECONDS for the items that are not written yet."""
        self.closing.set()
        until = time.monotonic() + END_SECONDS
        with contextlib.suppress(queue.Full):
            self._items.put(_END, timeout=END_SECONDS)
        self._thread.join(max(0.0, until - time.monotonic()))
        if self._thread.is_alive():
            self.over = True  # the thread ends after the item that it writes
            self.tell("it is too slow; the last lines are not written")

    def tell(self, what: str) -> None:
        if not self._told:
            self._told = True
            self._say(what)

    def _run(self) -> None:
        try:
            while not self.over and (item := self._items.get()) is not _END:
                self._take(item)
            self._finish()
        except Exception as error:
            self.tell(self._failure(error))
        self.over = True
