"""One of two learners is killed in the middle of a step: when the other one has its next step.

What it has to do by then is to finish its own shards, and to compute those of the other. Against
torchrun, which starts both anew.
"""

import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from commits import Commit, gaps
from elastic_job import ElasticJob, Member
from rows import Aim, Measured, Row, line, measured_row
from torchrun_job import Agent, TorchrunJob
from trainers import Late, wait_for_steps

_MODEL = "transformer"
_STEPS = 12
_DETECTION_MS = 50.0
# So long the rival may take to be back.
_RIVAL_SECONDS = 150.0

Figures = dict[str, list[float]]


def measure(binaries: Path, *, quick: bool) -> Iterator[Row]:
    del binaries
    with ElasticJob(_MODEL) as job:
        ours = _of_pliant(job, 1 if quick else 6)
    yield from _shown(
        measured_row(
            "kill/detection", "ms", Measured.of(ours["detection"]),
            aim=Aim("value", _DETECTION_MS), note="until the other gives up the step",
        ),
        measured_row(
            "kill/pause", "ms", Measured.of(ours["pause"]),
            note="until the next step, less the shards computed since",
        ),
        measured_row(
            "kill/shards-too-many", "shards", Measured.of(ours["shards too many"]),
            aim=Aim("value", 0), note="computed, beyond its own and those of the other",
        ),
    )  # fmt: skip
    theirs: list[float] = []
    note = None
    if not quick:
        try:
            with TorchrunJob(_MODEL, last_call=1) as job:
                _of_torchrun(job, 6, theirs)
        except Late as late:
            note = f"the rival was given up: {late}"
    rival = Measured.of(theirs) if theirs else None
    yield from _shown(
        measured_row("kill/next-step", "ms", Measured.of(ours["next step"]), rival, note=note)
    )


def _shown(*rows: Row) -> Iterator[Row]:
    for row in rows:
        print(line(row), flush=True)
        yield row


def _of_pliant(job: ElasticJob, repeats: int) -> Figures:
    found: Figures = defaultdict(list)
    half = job.shards // 2
    (stays,) = job.join()
    wait_for_steps(stays, _STEPS, since=0, shards=job.shards)
    for _ in range(repeats):
        began = time.monotonic()
        (other,) = job.join()
        wait_for_steps(stays, _STEPS, since=began, shards=half)
        killed = _kill_in_mid_step(stays, other, began)
        job.leave([other])
        commits = wait_for_steps(stays, _STEPS, since=killed, shards=job.shards)
        first = next(commit for commit in commits if commit.at >= killed)
        gave_up = stays.logged_at("stopped", killed)
        if gave_up is None:
            raise Late(f"no step was given up: see {stays.log}")
        computed = sum(end >= killed for end in first.ends)
        spent = first.at - killed
        found["next step"].append(spent * 1000)
        found["detection"].append((gave_up - killed) * 1000)
        found["pause"].append((spent - computed * _shard_seconds(commits)) * 1000)
        found["shards too many"].append(max(0, first.shards - job.shards))
    return found


def _shard_seconds(commits: list[Commit]) -> float:
    return statistics.median(b - a for commit in commits for a, b in pairwise(commit.ends))


def _of_torchrun(job: TorchrunJob, repeats: int, found: list[float]) -> None:
    """Its agents replace what was killed. Steps since the newest snapshot are done again: what
    counts is the first that was not there before."""
    half = job.shards // 2
    stays, other = job.join(2)
    began = 0.0
    for _ in range(repeats):
        wait_for_steps(stays, _STEPS, since=began, shards=half, patience=_RIVAL_SECONDS)
        killed = _kill_in_mid_step(stays, other, began)
        done = max(commit.step for commit in stays.commits())
        commits = wait_for_steps(
            stays, _STEPS, since=killed + 1, shards=half, patience=_RIVAL_SECONDS
        )
        first = next(commit for commit in commits if commit.step > done)
        found.append((first.at - killed) * 1000)
        began = first.at


def _kill_in_mid_step(stays: Member | Agent, other: Member | Agent, since: float) -> float:
    """When."""
    before = stays.commits()
    recent = [commit for commit in before if commit.at >= since][-_STEPS:]
    step = statistics.median(gap for _, gap in gaps(recent))
    while stays.commits()[-1].step == before[-1].step:
        time.sleep(0.002)
    time.sleep(max(0.0, stays.commits()[-1].at + step / 2 - time.monotonic()))
    killed = time.monotonic()
    other.kill()
    return killed
