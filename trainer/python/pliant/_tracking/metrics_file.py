"""metrics.jsonl of a job, from which lines are logged that no writer has logged."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_MAX_BYTES = 16 << 20  # of its end: some 60,000 lines


def with_lines_of(file: Path, line: dict[str, Any]) -> list[dict[str, Any]]:
    """The newest lines of the file, in order, with `line` in place of its own, which has fewer
    fields."""
    lines = list(_last_lines(file))
    for index in reversed(range(len(lines))):
        if (lines[index]["kind"], lines[index]["step"]) == (line["kind"], line["step"]):
            lines[index] = line
            return lines
    return [*lines, line]


def _last_lines(file: Path) -> Iterator[dict[str, Any]]:
    """Those at its end, without damaged ones. None: it cannot be read."""
    try:
        with file.open("rb") as opened:
            size = opened.seek(0, 2)
            opened.seek(max(0, size - _MAX_BYTES))
            text = opened.read(_MAX_BYTES)
    except OSError:
        return
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if _is_line(entry):
            yield entry


def _is_line(entry: Any) -> bool:
    """Whether it is a line of training or of an evaluation."""
    return (
        isinstance(entry, dict)
        and entry.get("kind") in ("train", "test")
        and isinstance(entry.get("step"), int)
        and isinstance(entry.get("unixSeconds"), int | float)
    )
