"""What it costs the learners that stay when others come or go: the longest gap between two of their
steps, less a step. Against torchrun, which starts all of them anew."""

import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from commits import pause
from elastic_job import ElasticJob
from rows import Aim, Measured, Row, line, measured_row
from torchrun_job import TorchrunJob
from trainers import wait_for_steps

_MODEL = "transformer"
_BOUND_MS = 50.0
# More learners than cores take each other's time.
_BOUND = ("1->2", "2->1")
# Before and after a change: for the medians, and for what a change may do late.
_STEPS = 12

Pauses = dict[str, list[float]]


def measure(binaries: Path, *, quick: bool) -> Iterator[Row]:
    del binaries
    with ElasticJob(_MODEL) as job:
        ours = _pauses(job, {1: 1} if quick else {1: 5, 3: 5})
    rivals: dict[str, Pauses] = {}
    if not quick:
        with TorchrunJob(_MODEL, last_call=1) as job:
            rivals["last-call-1s"] = _pauses(job, {1: 5, 3: 1})
        # Its default waits 30 s, each time.
        with TorchrunJob(_MODEL, last_call=None) as job:
            rivals["last-call-default"] = _pauses(job, {1: 1})
    for change, found in ours.items():
        against = {name: pauses[change] for name, pauses in rivals.items() if change in pauses}
        for name, theirs in (against or {"alone": None}).items():
            row = measured_row(
                f"resize/{change}/{name}",
                "ms",
                Measured.of(found),
                Measured.of(theirs) if theirs else None,
                aim=Aim("value", _BOUND_MS) if change in _BOUND else None,
            )
            print(line(row), flush=True)
            yield row


def _pauses(job: ElasticJob | TorchrunJob, repeats: dict[int, int]) -> Pauses:
    """In milliseconds, of the learner that is always there. `repeats`: how often so many others
    come and go."""
    found: Pauses = defaultdict(list)
    (stays,) = job.join()
    wait_for_steps(stays, _STEPS, since=0, shards=job.shards)
    for count in (count for count, times in repeats.items() for _ in range(times)):
        world = 1 + count
        began = time.monotonic()
        came = job.join(count)
        done = wait_for_steps(stays, _STEPS, since=began, shards=job.shards // world)
        found[f"1->{world}"].append(pause(done, began) * 1000)
        began = time.monotonic()
        job.leave(came)
        done = wait_for_steps(stays, _STEPS, since=began, shards=job.shards)
        found[f"{world}->1"].append(pause(done, began) * 1000)
    return found
