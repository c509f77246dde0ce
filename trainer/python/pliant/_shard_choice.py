"""Which number of logical shards would make a job fastest, by measured times of a shard. No I/O."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ._job_file import JobShards

_MAX_SHARDS = 4096  # as in the schema of the job
_AS_FAST = 1.05  # times the least time: smaller differences are noise

# Samples of a shard → seconds of its forward and backward pass.
ShardSeconds = Callable[[int], float]


@dataclass(frozen=True)
class Choice:
    shards: int  # the job's own number if no other is clearly faster
    seconds: float  # of all shards of a step on the busiest rank, with the maximum of learners
    gain: float  # the time with the job's own number, divided by `seconds`
    # The least and the largest gain with any number of learners that the job may have.
    least_gain: float
    most_gain: float


def step_seconds(batch: int, shards: int, ranks: int, seconds: ShardSeconds) -> float:
    """The busiest rank decides. Sums, the optimizer and the network are left out: they do not
    depend on the number of shards, or little."""
    return -(-shards // ranks) * seconds(batch // shards)


def possible(job: JobShards) -> Iterator[int]:
    """Numbers with which the API server would accept the job, in rising order."""
    shards = 1
    while shards <= _MAX_SHARDS and job.batch % shards == 0:
        if shards >= job.max_ranks:
            yield shards
        shards *= 2


def choose(job: JobShards, seconds: ShardSeconds) -> Choice:
    """The fastest number with the maximum of learners. Of those that are as fast: the job's own,
    else the smallest, because larger shards suit other machines and layers better."""

    def time(shards: int, learners: int) -> float:
        return step_seconds(job.batch, shards, learners * job.ranks_of_learner, seconds)

    times = {each: time(each, job.max_learners) for each in [job.shards, *possible(job)]}
    enough = _AS_FAST * min(times.values())
    own = times[job.shards]
    best = job.shards
    if own > enough:
        best = min(each for each, seconds_of_it in times.items() if seconds_of_it <= enough)
    gains = [
        time(job.shards, learners) / time(best, learners)
        for learners in range(job.min_learners, job.max_learners + 1)
    ]
    return Choice(best, times[best], own / times[best], min(gains), max(gains))


def report(job: JobShards, seconds: ShardSeconds) -> str:
    """One line for people."""
    if not job.bitwise:
        return (
            f"{job.name}: it is Statistical, so a learner computes its share of a batch at once, "
            "and logicalShards does not change its speed."
        )
    choice = choose(job, seconds)
    most = f"{job.max_ranks} GPUs" if job.max_ranks > 1 else "1 GPU"
    own = f"its logicalShards {job.shards}, shards of {_samples(job.batch // job.shards)}"
    if choice.shards == job.shards:
        return (
            f"{job.name}: {own}, is as fast as any number here with {most}, for a network like "
            f"this one: {choice.seconds * 1e3:.1f} ms for the shards of a step."
        )
    others = (
        ""
        if job.min_learners == job.max_learners
        else f" ({choice.least_gain:.1f} to {choice.most_gain:.1f} times with {job.min_learners} "
        f"to {job.max_learners} learners)"
    )
    return (
        f"{job.name}: logicalShards {choice.shards}, shards of "
        f"{_samples(job.batch // choice.shards)}, would be fastest here with {most}, for a network "
        f"like this one: {choice.seconds * 1e3:.1f} ms for the shards of a step, "
        f"{choice.gain:.1f} times as fast as {own}{others}. The number stays yours to set, because "
        "the result depends on it."
    )


def _samples(count: int) -> str:
    return f"{count} samples" if count != 1 else "1 sample"
