"""Measures the sum of a vector over all learners, compared with torch.distributed over gloo.

Over plain TCP, which gloo uses and for which the aim holds; over TLS, which a job's learners use,
with its extra cost; and through shared memory.
"""

import contextlib
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from rows import Aim, Measured, Row, line, measured_row
from workers import Workers

_KIB = 1 << 10
_MIB = 1 << 20
_SIZES = {
    "4KiB": 4 * _KIB,
    "32KiB": 32 * _KIB,
    "256KiB": 256 * _KIB,
    "1MiB": _MIB,
    "4MiB": 4 * _MIB,
    "25MiB": 25 * _MIB,
    "100MiB": 100 * _MIB,
}
_KINDS = ("plain", "tls", "shm")

_ROUNDS = 6
_QUICK_ROUNDS = 2
_MAX_QUICK = 4 * _MIB
_GLOO = Path(__file__).with_name("gloo_worker.py")


def measure(binaries: Path, *, quick: bool) -> Iterator[Row]:
    for world in (2,) if quick else (2, 3, 4, 8):
        yield from _of_world(binaries, world, quick)


def _of_world(binaries: Path, world: int, quick: bool) -> Iterator[Row]:
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory())
        groups = [stack.enter_context(_ours(binaries, world, kind, scratch)) for kind in _KINDS]
        gloo = stack.enter_context(
            Workers(
                "gloo",
                world,
                lambda rank: [
                    sys.executable,
                    str(_GLOO),
                    str(rank),
                    str(world),
                    f"{scratch}/ranks",
                ],
            )
        )
        gloo.ask("peers")
        for name, size in _SIZES.items():
            if quick and size > _MAX_QUICK:
                continue
            yield from _of_size(world, name, size, [*groups, gloo], quick)


def _ours(binaries: Path, world: int, kind: str, folder: str) -> Workers:
    worker = str(binaries / "all_reduce_worker")
    workers = Workers(kind, world, lambda rank: [worker, str(rank), str(world), kind, folder])
    workers.ask(" ".join(["peers", *workers.greetings]))
    return workers


def _of_size(world: int, name: str, size: int, groups: list[Workers], quick: bool) -> Iterator[Row]:
    # Every round has some sums of each kind, so that all kinds see the same load of the machine.
    repeats = max(6, min(50, 400 * _MIB // size // world)) // (3 if quick else 1)
    times = defaultdict(list)
    for _ in range(_QUICK_ROUNDS if quick else _ROUNDS):
        for group in groups:
            times[group.name] += _spans(group.ask(f"reduce {size} {repeats + 1}"))
    measured = {kind: Measured.of(spans) for kind, spans in times.items()}
    for group in groups[:-1]:
        row = measured_row(
            f"all-reduce/{world}/{group.name}/{name}",
            "ms",
            measured[group.name],
            measured["gloo"],
            aim=_aim(world, group.name, size),
            note=note(group.name, measured),
        )
        print(line(row), flush=True)
        yield row


def _aim(world: int, kind: str, size: int) -> Aim | None:
    """Only for two processes, one per core: more would share cores. gloo uses plain TCP."""
    if world != 2 or kind == "tls":
        return None
    return Aim("ratio", 3.0 if kind == "shm" and size >= _MIB else 1.5)


def note(kind: str, measured: Mapping[str, Measured]) -> str | None:
    if kind != "tls":
        return None
    times = measured["tls"].p50.value / measured["plain"].p50.value
    return f"what jobs speak: {times:.2f} times plain TCP's time"


def _spans(answers: list[str]) -> list[float]:
    """Milliseconds of each sum, from the last rank's start to the last rank's end. The first sum is
    left out: caches and clocks are cold."""
    ranks = [[int(word) for word in answer.split()] for answer in answers]
    begins = zip(*(times[0::2] for times in ranks))
    ends = zip(*(times[1::2] for times in ranks))
    return [(max(end) - max(begin)) / 1e6 for begin, end in zip(begins, ends)][1:]
