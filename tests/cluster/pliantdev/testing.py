"""./dev test: the moments of the named sets, and the report at the end."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import ctest, e2e, gpu_pack, parts, preflight, processors, record, rows, source_tree
from .errors import DevError
from .moments import Moment, pending, play
from .progress import log_file, say
from .record import Record

# Each should take at most two and a half hours on two cores.
_HALVES = ("all/1", "all/2")
_ALL = ("all", *_HALVES)
CHANGED = "changed"  # see changed.py
# Not in ctest.SETS: its tests also belong to other sets.
GPU = "gpu"
SETS = (*ctest.SETS, GPU, "chart", "e2e", CHANGED, *_ALL)


def test(
    sets: Sequence[str], preset: str, cifar10: Path | None = None, resume: bool = False
) -> int:
    """Runs the sets. The last line of the output counts all cases."""
    if not {*sets} & {*_ALL}:
        code = run_once("test", of_sets(sets, preset), with_cluster=_with_e2e(sets))
        if GPU in sets and not gpu_pack.gpu_at_hand():
            print("unproven on a GPU")
        return code
    halves = _HALVES if "all" in sets else sets
    head = {
        "source": source_tree.identity(),
        "preset": preset,
        "cifar10": str(cifar10.resolve()) if cifar10 else None,
    }
    records, left = [], []
    for half in halves:
        file = _file(f"test-{half.replace('/', '-')}")
        found = earlier_record(file, head) if resume else None
        records.append(found or _new_record(file, head))
        left.append(pending(of_half(half, preset, cifar10, records[-1]), records[-1]))
    try:
        return _run(records, left, "all/2" in halves)
    except KeyboardInterrupt:
        say(f"./dev test {sets[0]} --resume continues with what has not passed")
        raise


def check_arguments(sets: Sequence[str], cifar10: Path | None, resume: bool) -> None:
    for name in (CHANGED, *_ALL):
        if name in sets and len(sets) > 1:
            raise DevError(
                f"{name} cannot be combined with other sets", remedy=f"./dev test {name}"
            )
    if resume and not {*sets} & {*_ALL}:
        raise DevError("--resume is for the set all", remedy="./dev test all --resume")
    if cifar10 and not {*sets} & {"all", "all/2"}:
        raise DevError("--cifar10 is for the set all", remedy=f"./dev test all --cifar10 {cifar10}")
    if cifar10 and not any(cifar10.glob("*.bin")):
        raise DevError(
            f"--cifar10: {cifar10} has no *.bin", remedy="the folder cifar-10-batches-bin"
        )


def of_sets(sets: Sequence[str], preset: str = "release") -> list[Moment]:
    """The moments of the sets. Without names: everything that is not long, and only the story of
    e2e."""
    compiled = [name for name in ctest.SETS if name in sets or not sets]
    moments = [parts.CHART] if "chart" in sets or not sets else []
    moments += parts.ctest_moments(ctest.together(compiled), preset) if compiled else []
    moments += parts.IN_IMAGES.values() if "python" in compiled else []
    moments += parts.gpu_moments(preset) if GPU in sets else []
    moments += e2e.moments(e2e.SHORT if "e2e" in sets else e2e.STORY) if _with_e2e(sets) else []
    return moments


def _with_e2e(sets: Sequence[str]) -> bool:
    return "e2e" in sets or not sets


def of_half(half: str, preset: str, cifar10: Path | None, known: Record) -> list[Moment]:
    """The first half needs no cluster. Sanitizers and the CUDA build run only in CI."""
    if half == "all/1":
        alone = [[name] for name in ctest.SETS]
        of_ctest = parts.ctest_moments(alone, preset, long=True)
        in_images = [*parts.IN_IMAGES.values(), *parts.LONG_IN_IMAGES.values()]
        return [parts.CHART, parts.ALERTS, *of_ctest, *in_images, parts.ALONE]

    def passed() -> list[str]:
        return [row.name for row in known.rows if row.passed]

    return [*e2e.moments(e2e.LONG, cifar10, passed), parts.KILLS]


def _file(name: str) -> Path:
    return log_file(name).with_suffix(".json")


def _new_record(file: Path, head: Mapping[str, Any]) -> Record:
    return Record(file, {"commit": source_tree.commit(), **head})


def earlier_record(file: Path, head: Mapping[str, Any]) -> Record | None:
    """The record to resume; None if there is none, or if its `head` differs from this run's."""
    found = record.load(file)
    if not found:
        say(f"there is nothing to resume in {file}: starting from the beginning")
        return None
    for what, value in head.items():
        if found.head.get(what) != value:
            say(f"{file} is of another {what}: starting from the beginning")
            return None
    say(f"{file}: {sum(row.passed for row in found.rows)} rows have passed before")
    return found


def run_once(
    name: str,
    moments: Sequence[Moment],
    *,
    with_cluster: bool,
    fail_fast: bool = False,
    head: Mapping[str, Any] | None = None,
) -> int:
    return _run([_new_record(_file(name), head or {})], [moments], with_cluster, fail_fast)


def _run(
    records: Sequence[Record],
    left: Sequence[Sequence[Moment]],
    with_cluster: bool,
    fail_fast: bool = False,
) -> int:
    preflight.check(cluster=with_cluster)
    with summary(records):
        for each, moments in zip(records, left, strict=True):
            play(moments, each, fail_fast=fail_fast)
    counts = rows.total(row for each in records for row in each.rows)
    print(f"{counts.passed} passed, {counts.failed} failed", flush=True)
    return 1 if counts.failed else 0


@contextmanager
def summary(records: Sequence[Record], before: Mapping[str, float] | None = None) -> Iterator[None]:
    """Prints the rows at the end, also after an interruption."""
    stat = processors.read()
    try:
        yield
    finally:
        steal = processors.steal_percent(stat, processors.read())
        found = [row for each in records for row in each.rows]
        if found:
            print(*rows.table(found, before), sep="\n")
            print(f"{sum(row.seconds for row in found):.0f} s in all; {processors.words(steal)}")
            for each in records:
                each.note(steal_percent=round(steal, 2))
                print(f"the same as JSON: {each.file}", flush=True)
        sys.stdout.flush()
