"""The result of each part of a test run: a row of a table for people, and the same as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .counts import Counts


@dataclass(frozen=True)
class Row:
    name: str
    seconds: float
    counts: Counts
    problem: str = ""  # what failed, or why

    @property
    def passed(self) -> bool:
        return not self.counts.failed


def total(rows: Iterable[Row]) -> Counts:
    return sum((row.counts for row in rows), Counts())


def table(rows: Sequence[Row], before: Mapping[str, float] | None = None) -> list[str]:
    """A header, and a line for each row. `before` adds a column: the seconds that each part took
    when it last passed."""
    width = max((len(row.name) for row in rows), default=0)
    columns = ["seconds", *(["before"] if before is not None else []), "passed", "failed"]
    lines = [f"{'part':{width}}" + "".join(f"{column:>9}" for column in columns)]
    for row in rows:
        last = (before or {}).get(row.name)
        cells = [
            f"{row.seconds:.0f}",
            *([f"{last:.0f}" if last is not None else "-"] if before is not None else []),
            str(row.counts.passed or "-"),
            str(row.counts.failed or "-"),
        ]
        lines.append(
            f"{row.name:{width}}"
            + "".join(f"{cell:>9}" for cell in cells)
            + ("" if row.passed else "  FAILED")
        )
    return lines


def to_json(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "seconds": round(row.seconds, 1),
        "passed": row.counts.passed,
        "failed": row.counts.failed,
        "skipped": row.counts.skipped,
        "problem": row.problem,
    }


def from_json(value: Mapping[str, Any]) -> Row:
    counts = Counts(value["passed"], value["failed"], value.get("skipped", 0))
    return Row(value["name"], value["seconds"], counts, value.get("problem", ""))
