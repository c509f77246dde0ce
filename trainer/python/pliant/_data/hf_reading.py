"""Reading a stream of the library datasets from a place on."""

import atexit
import contextlib
import weakref
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from ..errors import InvalidProgram
from .draws import Draws
from .hf_parts import Piece
from .positions import EVERY, Positions

_END = object()
_open_parts: "weakref.WeakSet[_Part]" = weakref.WeakSet()


def read(pieces: Sequence[Piece], start: int, positions: Positions, draws: Draws) -> Iterator[Any]:
    """The samples of a stream from number `start` on."""
    before = 0
    for piece in pieces:
        if start < before + piece.count:
            yield from _read_piece(piece, max(0, start - before), before, positions, draws)
        before += piece.count


def _read_piece(
    piece: Piece, start: int, before: int, positions: Positions, draws: Draws
) -> Iterator[Any]:
    """`before`: the samples of the stream in front of this piece."""
    first = piece.first + start * piece.stride
    part = _Part(piece, first, before - piece.first, positions, draws)
    for number in range(start, piece.count):
        sample = next(part, _END)
        if sample is _END:
            raise InvalidProgram(piece.problem(part.number))
        last = number == piece.count - 1
        if last and piece.ends and next(part, _END) is not _END:
            raise InvalidProgram(piece.problem(part.number))
        yield sample
        if not last:
            for _ in islice(part, piece.stride - 1):
                pass


class _Part:
    """A part of the data from its sample `at` on. Keeps positions on the way."""

    def __init__(
        self, piece: Piece, at: int, shift: int, positions: Positions, draws: Draws
    ) -> None:
        """`shift`: makes the number of a sample in the stream from that in the part. It is negative
        for samples that are only skipped."""
        self._piece = piece
        self._shift = shift
        self._positions = positions
        self._draws = draws
        self._drew = False
        self._ahead: list[Any] = []
        _open_parts.add(self)
        kept = positions.nearest(piece.part, at)
        if kept is not None:
            try:
                self._open_at(*kept, at)
                return
            except Exception:  # whatever the library raises if the state is not its own
                positions.drop(piece.part, kept[0])
        self._begin(*piece.open(at), at)

    def _open_at(self, begin: int, state: dict[str, Any], at: int) -> None:
        data, _ = self._piece.open(0)
        # Otherwise the library may ignore the state, and begin at the front.
        if not _has_form_of(data.state_dict(), state):
            raise ValueError("the state of another pipeline")
        data.load_state_dict(state)
        self._begin(data, begin, at)
        # Read here, because the library uses the state only now.
        self._ahead = [self._read()]

    def _begin(self, data: Any, begin: int, at: int) -> None:
        self._data = data
        self._rest: Any = iter(data)
        self.number = begin
        for _ in islice(self, at - begin):
            pass

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        sample = self._ahead.pop() if self._ahead else self._read()
        self.number += 1
        # After a position in a batch, the library computes the batch again, and draws others.
        if self.number % EVERY == 0 and not self._drew:
            self._positions.keep(self._piece.part, self.number, self._data.state_dict)
        return sample

    def _read(self) -> Any:
        self._draws.begin(self.number + self._shift)
        sample = next(self._rest)
        self._drew = self._drew or self._draws.happened()
        return sample

    def close(self) -> None:
        with contextlib.suppress(Exception):  # the end of the program must not fail
            self._rest.close()


def _has_form_of(new: Any, state: Any) -> bool:
    """Whether a state can be a later one of the same pipeline as `new`."""
    if isinstance(new, dict):
        same = isinstance(state, dict) and new.keys() == state.keys()
        return same and all(_has_form_of(new[name], state[name]) for name in new)
    if isinstance(new, list | tuple):
        same = isinstance(state, list | tuple) and len(new) == len(state)
        return same and all(_has_form_of(*pair) for pair in zip(new, state, strict=True))
    if isinstance(new, str):  # the name of a step
        return bool(new == state)
    return new is None or type(new) is type(state)


@atexit.register
def _close_all() -> None:
    """Python clears modules at exit. A generator of the library that is open then would print a
    traceback."""
    for part in list(_open_parts):
        part.close()
