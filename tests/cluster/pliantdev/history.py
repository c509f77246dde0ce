"""The last CI runs on this machine, so that a run can show what became slower."""

import time
from collections.abc import Sequence
from pathlib import Path

from . import record
from .record import Record
from .settings import CACHE

FOLDER = CACHE / "ci"
_KEPT = 50


def new_file() -> Path:
    """A new file, named by its time, so that names sort by time."""
    return FOLDER / time.strftime("%Y%m%d-%H%M%S.json", time.gmtime())


def load(folder: Path) -> list[Record]:
    """All records, oldest first."""
    found = (record.load(file) for file in sorted(folder.glob("*.json")))
    return [each for each in found if each]


def seconds_when_passed(runs: Sequence[Record]) -> dict[str, float]:
    """The duration of each part when it last passed."""
    return {row.name: row.seconds for run in runs for row in run.rows if row.passed}


def forget_old(folder: Path, kept: int = _KEPT) -> None:
    for file in sorted(folder.glob("*.json"))[:-kept]:
        file.unlink()
