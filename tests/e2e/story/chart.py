"""GPU slots over time, as text. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from .style import Style
from .world import World

_MARKS = (("█", "cyan"), ("▒", "yellow"), ("░", "green"))
_FREE = "·"


@dataclass(frozen=True)
class Held:
    """GPUs held by each training, from `time` on."""

    time: float
    gpus: tuple[int, ...]


def held_over_time(worlds: Sequence[World], names: Sequence[str]) -> list[Held]:
    """One entry per change."""
    changes: list[Held] = []
    for world in worlds:
        gpus = tuple(training.gpus_held if (training := world.training(name)) else 0 for name in names)
        if not changes or changes[-1].gpus != gpus:
            changes.append(Held(world.time, gpus))
    return changes


def slots(changes: Sequence[Held], end: float, slots_total: int, width: int) -> list[list[int | None]]:
    """One row per slot, top first; one cell per slice of time: the training that held the slot in the middle of the
    slice.

    The first training's slots are at the bottom, the next one's above them.
    """
    begin = changes[0].time
    columns = []
    for column in range(width):
        middle = begin + (end - begin) * (column + 0.5) / width
        held = next((each for each in reversed(changes) if each.time <= middle), changes[0])
        owners = [index for index, gpus in enumerate(held.gpus) for _ in range(gpus)]
        columns.append((owners + [None] * slots_total)[:slots_total])
    return [[column[slot] for column in columns] for slot in reversed(range(slots_total))]


def draw(
    changes: Sequence[Held], end: float, names: Sequence[str], slots_total: int, width: int, style: Style
) -> list[str]:
    """The chart with its axes and legend; `width` is the width of the whole lines."""
    label = len(str(slots_total)) + 1
    columns = max(width - label - 1, 10)
    lines = []
    legend = "   ".join(
        f"{style.paint(_MARKS[index % 3][0] * 2, _MARKS[index % 3][1])} {name}" for index, name in enumerate(names)
    )
    lines.append(f"GPUs   {legend}")
    for row, cells in enumerate(slots(changes, end, slots_total, columns)):
        slot = slots_total - row
        head = f"{slot:>{label - 1}} ┤" if slot == slots_total or slot % 4 == 0 else " " * label + "│"
        lines.append(head + _cells(cells, style))
    lines.append(" " * label + "└" + "─" * columns)
    lines.append(" " * (label + 1) + _time_axis(end - changes[0].time, columns))
    return lines


def _cells(cells: Sequence[int | None], style: Style) -> str:
    text, begin = "", 0
    while begin < len(cells):
        end = begin
        while end < len(cells) and cells[end] == cells[begin]:
            end += 1
        owner = cells[begin]
        if owner is None:
            text += style.paint(_FREE * (end - begin), "dim")
        else:
            mark, colour = _MARKS[owner % len(_MARKS)]
            text += style.paint(mark * (end - begin), colour)
        begin = end
    return text


def time_step(seconds: float, max_marks: float) -> int:
    """A round number of seconds between marks of an axis."""
    return next((each for each in (5, 10, 15, 30, 60, 120, 300) if seconds / each <= max_marks), 600)


def _time_axis(seconds: float, columns: int) -> str:
    """Marks at round times that leave room for their labels."""
    step = time_step(seconds, columns / 8)
    axis = ""
    for mark in range(0, int(seconds) + 1, step):
        column = int(mark / seconds * columns) if seconds else 0
        label = f"{mark} s"
        if column + len(label) > columns:
            break
        axis = axis.ljust(column) + label
    return axis
