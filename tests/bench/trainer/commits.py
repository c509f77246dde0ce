"""The line that a learner of a bench, ours or a rival's, writes at each committed step; and its
analysis."""

import json
import os
import resource
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


_STEPS_FOR_A_MEDIAN = 5


@dataclass(frozen=True)
class Commit:
    step: int
    at: float  # seconds of the monotonic clock, which all processes of a machine share
    shards: int  # number that the learner computed for the step
    ends: tuple[float, ...] = ()  # when each shard was finished, like `at`
    cpu: float | None = None  # seconds, from the process's start to its first commit
    used: float | None = None  # seconds of processors since the commit before
    sha: str | None = None  # of the parameters, at some steps only
    waited: float | None = None  # seconds since the commit before in which it did not compute


class CommitLog:
    """Appends to the file. A process that replaces another one continues its file."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._used: float | None = None  # at the last commit

    def add(
        self,
        step: int,
        shards: int,
        *,
        ends: Sequence[float] = (),
        sha: str | None = None,
        waited: float | None = None,
    ) -> None:
        line: dict[str, object] = {"step": step, "at": time.monotonic(), "shards": shards}
        if ends:
            line["ends"] = ends
        usage = resource.getrusage(resource.RUSAGE_SELF)
        used = usage.ru_utime + usage.ru_stime
        if self._used is None:
            line["cpu"] = used
        else:
            line["used"] = used - self._used
        self._used = used
        if sha:
            line["sha"] = sha
        if waited is not None:
            line["waited"] = waited
        os.write(self._file, (json.dumps(line) + "\n").encode())


def read(path: Path) -> list[Commit]:
    """Reads all complete lines."""
    if not path.exists():
        return []
    whole = path.read_text().rpartition("\n")[0]
    return [Commit(**json.loads(line)) for line in whole.splitlines()]


def gaps(commits: Sequence[Commit]) -> list[tuple[Commit, float]]:
    """Each commit except the first, with the time since the one before."""
    return [(now, now.at - before.at) for before, now in zip(commits, commits[1:])]


def hashes(commits: Iterable[Commit]) -> dict[int, set[str]]:
    """By step: the hashes of the parameters that any learner reported after it."""
    found = defaultdict(set)
    for commit in commits:
        if commit.sha:
            found[commit.step].add(commit.sha)
    return dict(found)


def differing(one: dict[int, set[str]], other: dict[int, set[str]]) -> list[int]:
    """The steps of two runs after which the learners' parameters differed."""
    told = {
        step: one.get(step, set()) | other.get(step, set()) for step in one.keys() | other.keys()
    }
    return sorted(step for step, found in told.items() if len(found) > 1)


def pause(commits: Sequence[Commit], since: float) -> float:
    """The longest gap between two commits since `since`, less the time of a step.

    Learners that come or go change the time of a step, so a gap is compared with the median step
    of the same number of shards. Sizes with too few steps for a median use that of the last size.
    """
    by_size = defaultdict(list)
    for commit, gap in gaps(commits):
        by_size[commit.shards].append(gap)
    last = statistics.median(by_size[commits[-1].shards])
    steps = {
        size: statistics.median(found) if len(found) >= _STEPS_FOR_A_MEDIAN else last
        for size, found in by_size.items()
    }
    return max(gap - steps[commit.shards] for commit, gap in gaps(commits) if commit.at >= since)
