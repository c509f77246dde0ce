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
from trainers import PATIENCE_SECONDS, Late, wait_for_steps

_MODEL = "transformer"
_BOUND_MS = 50.0
# More learners than cores take each other's time.
_BOUND = ("1->2", "2->1")
# Before and after a change: for the medians, and for what a change may do late.
_STEPS = 12
# Name, how long a rendezvous waits for more (torchrun's default waits 30 s, each time), and how
# often so many others come and go.
_RIVALS = (("last-call-1s", 1, {1: 5, 3: 1}), ("last-call-default", None, {1: 1}))
# So long a rival may take for a change.
_RIVAL_SECONDS = 150.0

Pauses = dict[str, list[float]]


def measure(binaries: Path, *, quick: bool) -> Iterator[Row]:
    del binaries
    ours: Pauses = defaultdict(list)
    with ElasticJob(_MODEL) as job:
        _change(job, {1: 1} if quick else {1: 5, 3: 5}, ours)
    if quick:
        for change in ours:
            yield _shown(change, "alone", ours, {})
        return
    for name, last_call, repeats in _RIVALS:
        theirs: Pauses = defaultdict(list)
        note = None
        try:
            with TorchrunJob(_MODEL, last_call=last_call) as job:
                _change(job, repeats, theirs, patience=_RIVAL_SECONDS)
        except Late as late:
            note = f"the rival was given up: {late}"
        for change in (change for count in repeats for change in _changes(count)):
            yield _shown(change, name, ours, theirs, note)


def _shown(change: str, rival: str, ours: Pauses, theirs: Pauses, note: str | None = None) -> Row:
    found = theirs.get(change)
    row = measured_row(
        f"resize/{change}/{rival}",
        "ms",
        Measured.of(ours[change]),
        Measured.of(found) if found else None,
        aim=Aim("value", _BOUND_MS) if change in _BOUND else None,
        note=None if found else note,
    )
    print(line(row), flush=True)
    return row


def _changes(count: int) -> tuple[str, str]:
    """So many others come, and go."""
    return f"1->{1 + count}", f"{1 + count}->1"


def _change(
    job: ElasticJob | TorchrunJob,
    repeats: dict[int, int],
    found: Pauses,
    *,
    patience: float = PATIENCE_SECONDS,
) -> None:
    """Finds the pauses, in milliseconds, of the learner that is always there. `repeats`: how often
    so many others come and go."""
    (stays,) = job.join()
    wait_for_steps(stays, _STEPS, since=0, shards=job.shards, patience=patience)

    def wait(change: str, shards: int, began: float) -> None:
        done = wait_for_steps(stays, _STEPS, since=began, shards=shards, patience=patience)
        found[change].append(pause(done, began) * 1000)

    for count in (count for count, times in repeats.items() for _ in range(times)):
        come, go = _changes(count)
        began = time.monotonic()
        came = job.join(count)
        wait(come, job.shards // (1 + count), began)
        began = time.monotonic()
        job.leave(came)
        wait(go, job.shards, began)
