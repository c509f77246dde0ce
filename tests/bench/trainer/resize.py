"""Measures what a resize costs the learners that stay: the longest gap between two of their steps,
less the time of a step. Compared with torchrun, which restarts all learners."""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import turns
from commits import pause
from elastic_job import ElasticJob
from rows import Aim, Measured, Row, line, measured_row
from torchrun_job import TorchrunJob
from trainers import PATIENCE_SECONDS, wait_for_steps

_MODEL = "transformer"
_BOUND_MS = 50.0
# With more learners than cores the learners slow each other down, so only these changes have an
# aim.
_BOUND = ("1->2", "2->1")
# Before and after a change: enough for the medians, and for late effects of the change.
_STEPS = 12
# About as many as pass while others start and join: among them, too, one takes longest.
_UNDISTURBED = "none"
_UNDISTURBED_STEPS = 2 * _STEPS
# Numbers of others that join and leave, in each turn's job.
_COUNTS = (1, 3)
_REPEATS = 5
# Maximum time of a rival's change.
_RIVAL_SECONDS = 150.0

Pauses = dict[str, list[float]]


@dataclass(frozen=True)
class Rival:
    last_call: int | None  # seconds that a rendezvous waits for more nodes; None: its default
    repeats: int = _REPEATS
    why_so_few: str = ""

    def note(self) -> str:
        return f"{self.repeats} repeats of the rival: {self.why_so_few}" if self.why_so_few else ""


_RIVALS = {
    "last-call-1s": Rival(1),
    "last-call-default": Rival(None, 2, "each rendezvous waits 30 s, so that one takes minutes"),
}


def measure(binaries: Path, *, quick: bool) -> Iterator[Row]:
    del binaries
    counts = _COUNTS[:1] if quick else _COUNTS
    ours: Pauses = defaultdict(list)
    theirs: dict[str, Pauses] = {name: defaultdict(list) for name in _RIVALS}
    given_up = turns.take(
        turns.Party(lambda _: _of_pliant(counts, ours), 1 if quick else _REPEATS),
        {} if quick else {name: _party(rival, theirs[name]) for name, rival in _RIVALS.items()},
    )
    for change in ours:
        if quick:
            yield _shown(change, "alone", ours[change])
            continue
        for name, rival in _RIVALS.items():
            note = given_up.get(name, rival.note())
            yield _shown(change, name, ours[change], theirs[name][change], note)


def _party(rival: Rival, found: Pauses) -> turns.Party:
    return turns.Party(lambda _: _of_torchrun(rival.last_call, found), rival.repeats)


def _of_pliant(counts: Sequence[int], found: Pauses) -> None:
    with ElasticJob(_MODEL) as job:
        _change(job, counts, found)


def _of_torchrun(last_call: int | None, found: Pauses) -> None:
    with TorchrunJob(_MODEL, last_call=last_call) as job:
        _change(job, _COUNTS, found, patience=_RIVAL_SECONDS)


def _shown(
    change: str, rival: str, ours: list[float], theirs: Sequence[float] = (), note: str = ""
) -> Row:
    row = measured_row(
        f"resize/{change}/{rival}",
        "ms",
        Measured.of(ours),
        Measured.of(theirs) if theirs else None,
        aim=Aim("value", _BOUND_MS) if change in _BOUND else None,
        note=note or None,
    )
    print(line(row), flush=True)
    return row


def _changes(count: int) -> tuple[str, str]:
    """Names of the changes when `count` others join and leave."""
    return f"1->{1 + count}", f"{1 + count}->1"


def _change(
    job: ElasticJob | TorchrunJob,
    counts: Sequence[int],
    found: Pauses,
    *,
    patience: float = PATIENCE_SECONDS,
) -> None:
    """Finds the pauses, in milliseconds, of the learner that always stays. The numbers in `counts`
    of others join and leave one after another. Before that it finds the pause of an undisturbed
    period."""
    (stays,) = job.join()
    wait_for_steps(stays, _STEPS, since=0, shards=job.shards, patience=patience)

    def wait(change: str, shards: int, began: float, steps: int = _STEPS) -> None:
        done = wait_for_steps(stays, steps, since=began, shards=shards, patience=patience)
        found[change].append(pause(done, began) * 1000)

    wait(_UNDISTURBED, job.shards, time.monotonic(), _UNDISTURBED_STEPS)
    for count in counts:
        come, go = _changes(count)
        began = time.monotonic()
        came = job.join(count)
        wait(come, job.shards // (1 + count), began)
        began = time.monotonic()
        job.leave(came)
        wait(go, job.shards, began)
