"""Positions in streams of the library datasets: its state after every 4,096th sample of a part.

A learner that takes over a stream begins at the nearest position before its place, and skips the
rest. Positions save time only: without them it reads from the part's front. Data that are divided
by their rows need none.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import kept_files

EVERY = 4096  # samples
_DENSE = 64  # the newest positions of a part that are all kept; of older ones ever fewer are
_MAX_BYTES = 1 << 20
_FILE = re.compile(r"(\d{1,18})\.json")


class Positions:
    """The positions of one dataset in a folder. None: none is kept."""

    __slots__ = ("_folder",)

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    @property
    def are_kept(self) -> bool:
        return self._folder is not None

    def nearest(self, part: str, number: int) -> tuple[int, dict[str, Any]] | None:
        """The last position of a part that is at most `number`, and the library's state there."""
        for at in sorted(self._numbers(part), reverse=True):
            if at > number:
                continue
            content = kept_files.read(self._file(part, at), _MAX_BYTES)
            if content is not None and content.get("part") == part and content.get("number") == at:
                state = content.get("state")
                if isinstance(state, dict):
                    return at, state
            self.drop(part, at)
        return None

    def keep(self, part: str, number: int, state: Callable[[], Any]) -> None:
        """Several learners may keep the same position."""
        if self._folder is None:
            return
        try:
            content = {"part": part, "number": number, "state": state()}
            kept = kept_files.write(self._file(part, number), content)
        except (TypeError, ValueError, RuntimeError):  # the state cannot be written as JSON
            kept = False
        if not kept:
            self._folder = None
            return
        for at in self._numbers(part):
            if _is_spare(at, number):
                self.drop(part, at)

    def drop(self, part: str, number: int) -> None:
        try:
            self._file(part, number).unlink(missing_ok=True)
        except OSError:
            self._folder = None

    def _numbers(self, part: str) -> list[int]:
        if self._folder is None:
            return []
        try:
            names = [_FILE.fullmatch(file.name) for file in (self._folder / part).iterdir()]
        except OSError:
            return []
        return [int(name[1]) for name in names if name is not None]

    def _file(self, part: str, number: int) -> Path:
        assert self._folder is not None
        return self._folder / part / f"{number}.json"


def _is_spare(number: int, newest: int) -> bool:
    """Keeps the distance between old positions in proportion to their age: their number grows with
    the logarithm of the part's length, and a restore from an old checkpoint still finds one."""
    index = number // EVERY
    age = newest // EVERY - index
    if age <= _DENSE:
        return False
    return index % (1 << ((age // _DENSE).bit_length() - 1)) != 0
