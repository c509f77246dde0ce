"""The moments (parts) of a test run, their order, and their results. When a moment fails, only the
moments that need it are not run."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .counts import Counts
from .errors import DevError
from .progress import say
from .record import Record
from .rows import Row

AddRow = Callable[[Row], None]


@dataclass(frozen=True)
class Moment:
    """Adds a row with its own name, or several whose names begin with it and a colon."""

    name: str
    run: Callable[[AddRow], None]
    needs: tuple[str, ...] = ()  # moments whose results this one uses

    def owns(self, row: Row) -> bool:
        return row.name == self.name or row.name.startswith(f"{self.name}: ")


def moment(name: str, run: Callable[[], Counts | None], needs: Sequence[str] = ()) -> Moment:
    """A moment with one row. Some checks count no cases."""

    def add_its_row(add: AddRow) -> None:
        begun = time.monotonic()
        counts = run() or Counts()
        add(Row(name, time.monotonic() - begun, counts, ", ".join(counts.failures)))

    return Moment(name, add_its_row, tuple(needs))


def has_passed(each: Moment, record: Record) -> bool:
    owned = [row for row in record.rows if each.owns(row)]
    return each.name in record.ended and all(row.passed for row in owned)


def pending(moments: Sequence[Moment], record: Record) -> list[Moment]:
    """The moments that have not passed yet, and those that they need, whose results may be gone."""
    left = [each for each in moments if not has_passed(each, record)]
    needed = {name for each in left for name in each.needs}
    return [each for each in moments if each in left or each.name in needed]


def play(moments: Sequence[Moment], record: Record, *, fail_fast: bool = False) -> None:
    """Runs all of them; with `fail_fast` stops after the first failure."""
    failed: set[str] = set()
    for each in moments:
        say(f"--- {each.name}")
        begun = time.monotonic()
        record.forget_failed(each.owns)
        missing = [name for name in each.needs if name in failed]
        try:
            if missing:
                raise DevError(f"not run: it needs what failed ({', '.join(missing)})")
            each.run(record.add)
        except DevError as error:
            say(f"{each.name}: {error}")
            spent = time.monotonic() - begun
            record.add(Row(each.name, spent, Counts(failed=1), str(error).partition("\n")[0]))
        record.end(each.name)
        if not has_passed(each, record):
            failed.add(each.name)
            if fail_fast:
                return
