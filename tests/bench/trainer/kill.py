"""One of two learners is killed in the midst of a step: when the other one has its next step.

Each time it is at another point of the step, from its first shard to its last one, whose gradients
are being summed while they are computed. What the other has to do by then is to finish its own
shards, and to compute those of the one that is lost. Against torchrun, which starts both anew;
torchft (0.2.0) asks for a later torch than the image has (2.6).
"""

import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from commits import Commit, gaps
from elastic_job import ElasticJob, Member
from rows import Aim, Measured, Row, line, measured_row
from torchrun_job import Agent, TorchrunJob
from trainers import Late, wait_for_steps

_MODEL = "transformer"
_STEPS = 12
_REPEATS = 6
_DETECTION_MS = 50.0
# So long the rival may take to be back.
_RIVAL_SECONDS = 150.0

Figures = dict[str, list[float]]


def measure(binaries: Path, *, quick: bool) -> Iterator[Row]:
    del binaries
    with ElasticJob(_MODEL) as job:
        points = _points(1 if quick else _REPEATS)
        ours = _of_pliant(job, points)
    killed_at = ", ".join(f"{100 * point:.0f}" for point in points)
    yield from _shown(
        measured_row(
            "kill/detection", "ms", Measured.of(ours["detection"]),
            aim=Aim("value", _DETECTION_MS),
            note=f"until the other gives up the step; killed at {killed_at} % of one",
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
                _of_torchrun(job, _points(_REPEATS), theirs)
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


def _points(count: int) -> list[float]:
    """Of a step, in each of as many equal parts of it the middle."""
    return [(number + 0.5) / count for number in range(count)]


def _of_pliant(job: ElasticJob, points: Sequence[float]) -> Figures:
    found: Figures = defaultdict(list)
    half = job.shards // 2
    (stays,) = job.join()
    wait_for_steps(stays, _STEPS, since=0, shards=job.shards)
    for point in points:
        began = time.monotonic()
        (other,) = job.join()
        wait_for_steps(stays, _STEPS, since=began, shards=half)
        killed = _kill_in_mid_step(stays, other, began, point)
        job.leave([other])
        commits = wait_for_steps(stays, _STEPS, since=killed, shards=job.shards)
        gave_up = stays.logged_at("stopped", killed)
        if gave_up is None:
            raise Late(f"no step was given up: see {stays.log}")
        # Had the one that was killed said all that it had to, its last step came nevertheless.
        first = next(commit for commit in commits if commit.at >= max(killed, gave_up))
        since = [commit for commit in commits if killed <= commit.at <= first.at]
        computed = sum(end >= killed for commit in since for end in commit.ends)
        spent = first.at - killed
        found["next step"].append(spent * 1000)
        found["detection"].append((gave_up - killed) * 1000)
        found["pause"].append((spent - computed * _shard_seconds(commits)) * 1000)
        found["shards too many"].append(max(0, first.shards - job.shards))
    return found


def _shard_seconds(commits: list[Commit]) -> float:
    return statistics.median(b - a for commit in commits for a, b in pairwise(commit.ends))


def _of_torchrun(job: TorchrunJob, points: Sequence[float], found: list[float]) -> None:
    """Its agents replace what was killed. Steps since the newest snapshot are done again: what
    counts is the first that was not there before."""
    half = job.shards // 2
    stays, other = job.join(2)
    began = 0.0
    for point in points:
        wait_for_steps(stays, _STEPS, since=began, shards=half, patience=_RIVAL_SECONDS)
        killed = _kill_in_mid_step(stays, other, began, point)
        done = max(commit.step for commit in stays.commits())
        commits = wait_for_steps(
            stays, _STEPS, since=killed + 1, shards=half, patience=_RIVAL_SECONDS
        )
        first = next(commit for commit in commits if commit.step > done)
        found.append((first.at - killed) * 1000)
        began = first.at


def _kill_in_mid_step(
    stays: Member | Agent, other: Member | Agent, since: float, point: float
) -> float:
    """When. `point`: of the step, from 0 to 1."""
    before = stays.commits()
    recent = [commit for commit in before if commit.at >= since][-_STEPS:]
    step = statistics.median(gap for _, gap in gaps(recent))
    while stays.commits()[-1].step == before[-1].step:
        time.sleep(0.002)
    time.sleep(max(0.0, stays.commits()[-1].at + step * point - time.monotonic()))
    killed = time.monotonic()
    other.kill()
    return killed
