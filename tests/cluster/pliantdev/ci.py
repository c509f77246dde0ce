"""The complete check of a change: format, types, tests, the story, sanitizers and the CUDA
build."""

from . import commands, history, parts, preflight, source_tree, testing
from .moments import Moment, play
from .record import Record


def moments() -> list[Moment]:
    sanitized = [
        each
        for preset in parts.SANITIZERS
        for each in parts.ctest_moments([parts.SANITIZED_SETS], preset)
    ]
    tests = testing.of_sets([])
    return [parts.FORMAT, parts.TYPES, *tests, parts.ALERTS, *sanitized, parts.CUDA]


def run() -> int:
    """Runs all parts, even after one has failed, and names the failed ones at the end."""
    preflight.check(cluster=True)
    before = history.seconds_when_passed(history.load(history.FOLDER))
    record = Record(history.new_file(), {"commit": source_tree.commit()})
    try:
        with testing.summary([record], before):
            play(moments(), record)
    finally:
        commands.down()
        history.forget_old(history.FOLDER)
    failed = [row.name for row in record.rows if not row.passed]
    print(f"CI failed: {', '.join(failed)}" if failed else "CI passed", flush=True)
    return 1 if failed else 0
