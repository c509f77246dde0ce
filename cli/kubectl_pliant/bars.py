"""Bars of GPUs. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

IDLE, FOREIGN = ".", "#"
_COLOURS = (36, 33, 35, 32, 34, 31)  # of SGR


@dataclass(frozen=True)
class Part:
    mark: str  # one character
    label: str
    gpus: int


def cells(amounts: Sequence[int], columns: int) -> list[int]:
    """Columns for each amount, `columns` in all, in proportion: by the largest remainders, the earlier first."""
    total = sum(amounts)
    if total <= 0:
        return [0] * len(amounts)
    exact = [amount * columns / total for amount in amounts]
    found = [int(each) for each in exact]
    by_remainder = sorted(range(len(amounts)), key=lambda index: (found[index] - exact[index], index))
    for index in by_remainder[: columns - sum(found)]:
        found[index] += 1
    return found


def bar(parts: Sequence[Part], columns: int, colour: bool) -> str:
    text = ""
    for index, (part, size) in enumerate(zip(parts, cells([part.gpus for part in parts], columns))):
        block = part.mark * size
        painted = colour and size and part.mark not in (IDLE, FOREIGN)
        text += f"\x1b[{_COLOURS[index % len(_COLOURS)]}m{block}\x1b[0m" if painted else block
    return f"[{text}]"


def legend(parts: Sequence[Part]) -> str:
    return "   ".join(f"{part.mark} {part.label} {part.gpus}" for part in parts if part.gpus or part.mark == IDLE)


def gauge(have: int, most: int, columns: int) -> str:
    """The GPUs that a job has, of those that it asks for."""
    full = 0 if most <= 0 else min(columns, -(-have * columns // most))
    return "|" * full + IDLE * (columns - full)
