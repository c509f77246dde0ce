"""Tables for people. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .fields import WHOLE
from .text import cut, harmless, pad, width

MALFORMED = "?"
_MAX_NAME_CHARS = 253  # of a Kubernetes object
_MIN_LAST_COLUMNS = 16
GAP = "   "


@dataclass(frozen=True)
class Column:
    title: str
    right: bool = False  # numbers


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], max_columns: int | None) -> list[str]:
    """Lines of at most `max_columns` columns of the terminal: the last cell of a row is cut, with a minimum. The cells
    are harmless texts."""
    titles = [each.title for each in columns]
    widths = [max(map(width, cells)) for cells in zip(titles, *rows)]
    room = None
    if max_columns is not None:
        before = sum(widths[:-1]) + len(GAP) * (len(columns) - 1)
        room = max(max_columns - before, _MIN_LAST_COLUMNS)
    lines = []
    for row in [titles, *rows]:
        cells = [pad(cell, size, each.right) for cell, size, each in zip(row, widths, columns)]
        last = cells[-1] if columns[-1].right else row[-1]
        lines.append(GAP.join([*cells[:-1], cut(last, room)]).rstrip())
    return lines


def name(text: str | None) -> str:
    """A name in a cell; "?" if the object has none that can be read."""
    return MALFORMED if text is None else harmless(text, _MAX_NAME_CHARS)


def cell(value: object, path: str, malformed: frozenset[str], max_chars: int = 1024) -> str:
    """A value in a cell: empty if it is absent, "?" if the object has a malformed one at `path`."""
    if value is not None:
        return harmless(str(value), max_chars)
    return MALFORMED if is_malformed(path, malformed) else ""


def is_malformed(path: str, malformed: frozenset[str]) -> bool:
    """The value, or an object that holds it, is malformed."""
    parts = path.split(".")
    return WHOLE in malformed or any(".".join(parts[:count]) in malformed for count in range(1, len(parts) + 1))
