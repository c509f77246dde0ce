"""The rows of a run in a file, which is complete at every moment: if the run is interrupted,
earlier results are kept."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from . import rows
from .rows import Row


class Record:
    """`head` identifies what was run, for example the source."""

    def __init__(self, file: Path, head: Mapping[str, Any]):
        self.file = file
        self.head = dict(head)
        self.rows: list[Row] = []
        self.ended: list[str] = []  # moments that have ended, passed or failed

    def add(self, row: Row) -> None:
        """Replaces an earlier row of the same name."""
        names = [each.name for each in self.rows]
        if row.name in names:
            self.rows[names.index(row.name)] = row
        else:
            self.rows.append(row)
        self._write()

    def forget_failed(self, owned: Callable[[Row], bool]) -> None:
        """Forgets the rows among these that have not passed."""
        self.rows = [row for row in self.rows if row.passed or not owned(row)]

    def end(self, moment: str) -> None:
        self.ended = [each for each in self.ended if each != moment] + [moment]
        self._write()

    def note(self, **facts: Any) -> None:
        self.head |= facts
        self._write()

    def _write(self) -> None:
        value = {
            **self.head,
            "ended": self.ended,
            "rows": [rows.to_json(row) for row in self.rows],
        }
        self.file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.file.with_suffix(".new")
        with unfinished.open("w") as out:
            out.write(json.dumps(value, indent=1) + "\n")
            out.flush()
            os.fsync(out.fileno())
        unfinished.replace(self.file)


def load(file: Path) -> Record | None:
    """None if there is no such file, or if it is not a record."""
    try:
        value = json.loads(file.read_text())
        record = Record(file, {})
        record.ended = value.pop("ended")
        record.rows = [rows.from_json(row) for row in value.pop("rows")]
        record.head = value
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return record
