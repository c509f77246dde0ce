"""Lines of learners' logs: their times, what of them was printed already, how they are shown. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from . import times
from .text import harmless

_MAX_LINE_CHARS = 1 << 16


def shown(prefix: str, line: bytes) -> list[str]:
    """The line for people. A carriage return, as of a progress bar, begins another one."""
    parts = line.decode(errors="replace").rstrip("\r\n").split("\r")
    found = [part for part in parts if part] or [""]
    return [f"{prefix}: {_harmless(part)}" for part in found]


def _harmless(text: str) -> str:
    """Tabs stay: they indent tracebacks and separate columns."""
    return "\t".join(harmless(part, _MAX_LINE_CHARS) for part in text.split("\t"))


@dataclass
class Position:
    """How far a log was printed. A log that is read again from there has some lines twice, which are left out."""

    time: tuple[int, int] | None = None  # of the last line, in seconds and nanoseconds
    same: int = 0  # lines with that time
    _again: int = 0  # lines with that time since the last `resume`

    def resume(self) -> str | None:
        """The time from which the log is read again, in whole seconds; None: from its beginning."""
        self._again = 0
        return None if self.time is None else times.shown(self.time[0])

    def take(self, line: bytes) -> bytes | None:
        """The line without its time; None if it was printed before."""
        stamp, space, rest = line.partition(b" ")
        time = times.parse_exactly(stamp.decode(errors="replace")) if space or stamp.endswith(b"Z\n") else None
        if time is None:
            return line  # the rest of a line that was too long
        if self.time is not None and time < self.time:
            return None
        if time != self.time:
            self.time, self.same, self._again = time, 1, 1
            return rest
        self._again += 1
        if self._again <= self.same:
            return None
        self.same += 1
        return rest
