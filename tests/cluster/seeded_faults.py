"""Seeds faults one at a time in a copy of the source, and checks that ./dev test changed finds
them.

It takes hours, needs no attention, and starts no cluster. --resume continues an interrupted run. It
is not part of ./dev test all: it tests the selection of tests, not Pliant.

The last line is `N passed, N failed`: a fault passes if the tests that its change selects fail.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from faults import FAULTS, Fault, apply
from pliantdev import record, source_tree
from pliantdev.counts import Counts
from pliantdev.errors import DevError
from pliantdev.progress import say
from pliantdev.record import Record
from pliantdev.rows import Row, total
from pliantdev.settings import CACHE, REPO

_FOLDER = CACHE / "seeded-faults"
_SOURCE = _FOLDER / "source"
_STATE = _FOLDER / "state"  # separate, so that runs in the copy do not overwrite other logs
_LOG = _FOLDER / "log"
_RESULTS = _FOLDER / "results.json"
_RUN = _STATE / "log" / "test-changed.json"
# Left out: it looks for the lines that are changed here, and would find every fault.
_TEST_OF_FAULTS = "tests/unit/cluster/test_faults.py"
_MOST_SECONDS = 3600  # max time for one fault: some make a test wait until its timeout


@dataclass(frozen=True)
class Outcome:
    found_by: str  # empty: nothing failed
    selected: str


def outcome(run: Record | None, status: int) -> Outcome:
    """`run`: the record written by the copy's ./dev; None if it failed before it ran anything."""
    if not run:
        return Outcome(f"./dev itself (exit status {status})" if status else "", "?")
    failed = [f"{row.name} ({row.problem})" for row in run.rows if not row.passed]
    if status and not failed:
        failed = [f"exit status {status}"]
    tests, parts = run.head.get("tests", []), run.head.get("parts", [])
    selected = [f"{len(tests)} tests" if len(tests) > 4 else ", ".join(tests), *parts]
    return Outcome("; ".join(failed), ", ".join(each for each in selected if each))


def table(found: Record) -> list[str]:
    """For each fault a line with the verdict, and one with what was selected and what of it
    failed."""
    lines = ["seconds  verdict"]
    for row in found.rows:
        detail = found.head["details"][row.name]
        verdict = "found" if row.passed else "NOT FOUND"
        lines.append(f"{row.seconds:7.0f}  {verdict:9}  {row.name}")
        lines.append(f"{'':18}  selected: {detail['selected']}")
        lines += [f"{'':18}  failed: {detail['found_by']}"] if detail["found_by"] else []
    return lines


def _copy_source() -> None:
    shutil.rmtree(_SOURCE, ignore_errors=True)
    for name in source_tree.files():
        if name == _TEST_OF_FAULTS:
            continue
        (_SOURCE / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPO / name, _SOURCE / name)
    identity = ("-c", "user.name=seeded-faults", "-c", "user.email=seeded-faults@localhost")
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=all"]):
        subprocess.run(["git", "-C", _SOURCE, *identity, *command], check=True)


def _try(fault: Fault) -> tuple[Outcome, float]:
    file = _SOURCE / fault.file
    right = file.read_text()
    file.write_text(apply(right, fault))
    _RUN.unlink(missing_ok=True)
    choices = ["--since=HEAD", "--no-cluster", "--fail-fast"]
    begun = time.monotonic()
    try:
        status = _logged([_SOURCE / "dev", "test", "changed", *choices])
    finally:
        file.write_text(right)
    return outcome(record.load(_RUN), status), time.monotonic() - begun


def _logged(command: Sequence[str | Path]) -> int:
    with _LOG.open("a") as out:
        program = subprocess.Popen(
            command,
            env={**os.environ, "PLIANT_STATE": str(_STATE)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            return program.wait(_MOST_SECONDS)
        except subprocess.TimeoutExpired:
            out.write(f"ended after {_MOST_SECONDS} s\n")
            return 1
        finally:
            if program.poll() is None:
                program.terminate()  # it ends the processes that it started
                program.wait()


def _begin(resume: bool) -> Record:
    head = {"source": source_tree.identity()}
    found = record.load(_RESULTS) if resume else None
    if found and found.head["source"] == head["source"]:
        return found
    if resume:
        say(f"{_RESULTS} is not of this source: starting from the beginning")
    _LOG.parent.mkdir(parents=True, exist_ok=True)
    _LOG.write_text("")
    return Record(_RESULTS, {**head, "details": {}})


def _run(faults: Sequence[Fault], found: Record) -> None:
    _copy_source()
    tried = {row.name for row in found.rows}
    for number, fault in enumerate(faults, 1):
        if fault.name in tried:
            continue
        say(f"{number} of {len(faults)}: {fault.name}")
        with _LOG.open("a") as out:
            out.write(f"\n=== {fault.name}\n")
        result, seconds = _try(fault)
        found.head["details"][fault.name] = vars(result)
        found.add(Row(fault.name, seconds, Counts(bool(result.found_by), not result.found_by)))
        say(f"{seconds:.0f} s: {result.found_by or 'NOT FOUND'}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="only faults whose file has one of these words"
    )
    parser.add_argument("--resume", action="store_true", help="keep the results of this source")
    arguments = parser.parse_args()
    words = arguments.words
    faults = [each for each in FAULTS if not words or any(word in each.file for word in words)]
    if not faults:
        print(f"no file of a fault has {' or '.join(words)} in its name", file=sys.stderr)
        return 2
    found = _begin(arguments.resume)
    say(f"log: {_LOG}")
    try:
        _run(faults, found)
    except DevError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        print(*table(found), f"the same as JSON: {_RESULTS}", sep="\n", flush=True)
    counts = total(found.rows)
    print(f"{counts.passed} passed, {counts.failed} failed")
    return 1 if counts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
