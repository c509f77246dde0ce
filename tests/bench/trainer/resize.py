"""What it costs the learners that stay when others come or go: the longest gap between two of their
steps, less a step. Against torchrun, which starts all of them anew."""

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
# More learners than cores take each other's time.
_BOUND = ("1->2", "2->1")
# Before and after a change: for the medians, and for what a change may do late.
_STEPS = 12
# About as many as pass while others start and come: in them, too, one takes longest.
_UNDISTURBED = "none"
_UNDISTURBED_STEPS = 2 * _STEPS
# So many others come and go, in each turn's job.
_COUNTS = (1, 3)
_REPEATS = 5
# So long a rival may take for a change.
_RIVAL_SECONDS = 150.0

Pauses = dict[str, list[float]]


@dataclass(frozen=True)
class Rival:
    last_call: int | None  # so long a rendezvous waits for more, in seconds; None: its default
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
    """So many others come, and go."""
    return f"1->{1 + count}", f"{1 + count}->1"


def _change(
    job: ElasticJob | TorchrunJob,
    counts: Sequence[int],
    found: Pauses,
    *,
    patience: float = PATIENCE_SECONDS,
) -> None:
    """Finds the pauses, in milliseconds, of the learner that is always there. `counts`: so many
    others come and go, one after the other. Before them, what the machine does by itself."""
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
