"""The story's output while it runs: on a terminal a table that stays at the bottom, elsewhere plain lines."""

import shutil
import threading
import time
from typing import TextIO

from . import table
from .style import style_of
from .world import World

_PLAIN_SECONDS = 15.0  # between two lines about a training whose size does not change


class Screen:
    """Used by the story's thread and the watcher's."""

    def __init__(self, stream: TextIO) -> None:
        self.style = style_of(stream)
        self._stream = stream
        self._begin = time.monotonic()
        self._lock = threading.Lock()
        # Guarded by _lock.
        self._drawn = 0  # lines of the table that is shown at the bottom
        self._last: World | None = None
        self._plain: dict[str, tuple[object, float]] = {}  # last line about each training, and its time

    @property
    def width(self) -> int:
        return shutil.get_terminal_size((120, 40)).columns if self._stream.isatty() else 120

    def say(self, text: str, *styles: str) -> None:
        """Prints a line that stays, with the time since the start."""
        with self._lock:
            self._erase()
            elapsed = self.style.paint(f"[{time.monotonic() - self._begin:6.1f} s]", "dim")
            self._stream.write(f"{elapsed} {self.style.paint(text, *styles)}\n")
            self._draw_table()

    def lines(self, lines: list[str]) -> None:
        """Prints lines that stay, without changes."""
        with self._lock:
            self._erase()
            self._stream.writelines(f"{line}\n" for line in lines)
            self._draw_table()

    def show(self, world: World) -> None:
        """Shows the current state of the trainings."""
        with self._lock:
            self._last = world
            if self._stream.isatty():
                self._erase()
                self._draw_table()
            else:
                self._write_plain(world)

    def close_table(self) -> None:
        """Leaves the table as it is; later output comes below it."""
        with self._lock:
            self._drawn = 0
            self._last = None

    def _erase(self) -> None:
        if self._drawn:
            self._stream.write(f"\x1b[{self._drawn}F\x1b[J")
            self._drawn = 0

    def _draw_table(self) -> None:
        if self._last and self._stream.isatty() and self._last.trainings:
            lines = table.layout(table.TRAININGS_HEADER, table.trainings(self._last), self.width)
            self._stream.write(f"\n{self.style.paint(lines[0], 'bold')}\n")
            self._stream.writelines(f"{line}\n" for line in lines[1:])
            self._drawn = len(lines) + 1
        self._stream.flush()

    def _write_plain(self, world: World) -> None:
        now = time.monotonic()
        for name, each in sorted(world.trainings.items()):
            job = each.job
            state = (job.phase, job.priority, each.gpus_held, job.learners_desired, job.reason)
            last_state, last_time = self._plain.get(name, (None, 0.0))
            if state != last_state or (now - last_time >= _PLAIN_SECONDS and not job.finished):
                self._plain[name] = (state, now)
                self._stream.write(f"[{now - self._begin:6.1f} s]   {table.sentence(each)}\n")
        self._stream.flush()
