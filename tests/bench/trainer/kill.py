"""One of two learners is killed in the middle of a step. Measures the time until the other's next
step.

The kill happens during a reduction, when some buckets of its last shard have been sent and the
rest never will be; and at points all over a step, from its first shard to its last. In that time
the other has to finish its own shards and to compute those of the lost one. Compared with torchrun,
which restarts both; torchft (0.2.0) needs a later torch than the image has (2.6).
"""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import turns
from commits import Commit, gaps
from elastic_job import ElasticJob, Member
from rows import Aim, Measured, Row, line, measured_row
from torchrun_job import Agent, TorchrunJob
from trainers import Late, wait_for_steps

_MODEL = "transformer"
_STEPS = 12
_REPEATS = 6
_DETECTION_MS = 50.0
# Maximum time until the rival trains again.
_RIVAL_SECONDS = 150.0
# From this share of the gradients on, the rival's first bucket, which has two thirds of them, has
# been sent.
_HANDED_OVER = 0.8

Figures = dict[str, list[float]]
# Kills the second one at a moment, 0 to 1, of the range that the kind of kill covers. Returns the
# time of the kill.
Kill = Callable[[Member | Agent, Member | Agent, float, float], float]


def measure(binaries: Path, *, quick: bool) -> Iterator[Row]:
    del binaries
    moments = moments_of(1 if quick else _REPEATS)
    ours: dict[str, Figures] = {where: defaultdict(list) for where in _KILLS}
    theirs: dict[str, list[float]] = {where: [] for where in _KILLS}
    rivals = {
        "torchrun": turns.Party(lambda number: _of_torchrun(moments[number], theirs), _REPEATS)
    }
    given_up = turns.take(
        turns.Party(lambda number: _of_pliant(moments[number], ours), len(moments)),
        {} if quick else rivals,
    )
    for where in _KILLS:
        yield from _shown(where, moments, ours[where], theirs[where], given_up.get("torchrun"))


def _shown(
    where: str, moments: list[float], ours: Figures, theirs: list[float], given_up: str | None
) -> Iterator[Row]:
    rows = (
        measured_row(
            f"kill/{where}/detection", "ms", Measured.of(ours["detection"]),
            aim=Aim("value", _DETECTION_MS),
            note=f"until the other aborts the step; {_when(where, moments)}",
        ),
        measured_row(
            f"kill/{where}/pause", "ms", Measured.of(ours["pause"]),
            note="until the next step, less the shards computed since",
        ),
        measured_row(
            f"kill/{where}/shards-too-many", "shards", Measured.of(ours["shards too many"]),
            aim=Aim("value", 0), note="computed, beyond its own and those of the other",
        ),
        measured_row(
            f"kill/{where}/next-step", "ms", Measured.of(ours["next step"]),
            Measured.of(theirs) if theirs else None, note=given_up,
        ),
    )  # fmt: skip
    for row in rows:
        print(line(row), flush=True)
        yield row


def _when(where: str, moments: list[float]) -> str:
    if where == "reduction":
        shares = [_handed_over(moment) for moment in moments]
        return f"killed with {_per_cent(shares)} % of a shard's gradients handed over"
    return f"killed at {_per_cent(moments)} % of a step"


def _per_cent(parts: list[float]) -> str:
    return ", ".join(f"{100 * part:.0f}" for part in parts)


def moments_of(count: int) -> list[float]:
    """The middle of each of `count` equal parts."""
    return [(number + 0.5) / count for number in range(count)]


def _handed_over(moment: float) -> float:
    return _HANDED_OVER + (1 - _HANDED_OVER) * moment


def _of_pliant(moment: float, found: dict[str, Figures]) -> None:
    with ElasticJob(_MODEL) as job:
        half = job.shards // 2
        (stays,) = job.join()
        wait_for_steps(stays, _STEPS, since=0, shards=job.shards)
        for where, kill in _KILLS.items():
            began = time.monotonic()
            (other,) = job.join()
            wait_for_steps(stays, _STEPS, since=began, shards=half)
            killed = kill(stays, other, began, moment)
            job.leave([other])
            commits = wait_for_steps(stays, _STEPS, since=killed, shards=job.shards)
            gave_up = stays.logged_at("stopped", killed)
            if gave_up is None:
                raise Late(f"no step was aborted: see {stays.log}")
            add(found[where], job.shards, commits, killed, gave_up)


def add(
    found: Figures, all_shards: int, commits: list[Commit], killed: float, gave_up: float
) -> None:
    # If the killed one had already sent all that was needed, its last step is committed
    # nevertheless.
    first = next(commit for commit in commits if commit.at >= max(killed, gave_up))
    since = [commit for commit in commits if killed <= commit.at <= first.at]
    computed = sum(end >= killed for commit in since for end in commit.ends)
    spent = first.at - killed
    found["next step"].append(spent * 1000)
    found["detection"].append((gave_up - killed) * 1000)
    found["pause"].append((spent - computed * _shard_seconds(commits)) * 1000)
    found["shards too many"].append(max(0, first.shards - all_shards))


def _shard_seconds(commits: list[Commit]) -> float:
    return statistics.median(b - a for commit in commits for a, b in pairwise(commit.ends))


def _of_torchrun(moment: float, found: dict[str, list[float]]) -> None:
    """torchrun's agents replace what was killed. Steps since the newest snapshot are repeated: the
    first step that was not done before counts."""
    with TorchrunJob(_MODEL, last_call=1) as job:
        half = job.shards // 2
        stays, other = job.join(2)
        began = 0.0
        for where, kill in _KILLS.items():
            wait_for_steps(stays, _STEPS, since=began, shards=half, patience=_RIVAL_SECONDS)
            killed = kill(stays, other, began, moment)
            done = max(commit.step for commit in stays.commits() if commit.at <= killed)
            commits = wait_for_steps(
                stays, _STEPS, since=killed + 1, shards=half, patience=_RIVAL_SECONDS
            )
            first = next(commit for commit in commits if commit.step > done)
            found[where].append((first.at - killed) * 1000)
            began = first.at


def _in_reduction(
    stays: Member | Agent, other: Member | Agent, since: float, moment: float
) -> float:
    del stays, since
    return other.die_in_reduction(_handed_over(moment))


def _in_step(stays: Member | Agent, other: Member | Agent, since: float, moment: float) -> float:
    before = stays.commits()
    recent = [commit for commit in before if commit.at >= since][-_STEPS:]
    step = statistics.median(gap for _, gap in gaps(recent))
    while stays.commits()[-1].step == before[-1].step:
        time.sleep(0.002)
    time.sleep(max(0.0, stays.commits()[-1].at + step * moment - time.monotonic()))
    killed = time.monotonic()
    other.kill()
    return killed


_KILLS: dict[str, Kill] = {"reduction": _in_reduction, "computing": _in_step}
