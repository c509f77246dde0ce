"""kubectl pliant priority, suspend, resume, scale: a merge patch, and what the operator makes of it."""

from __future__ import annotations

import time

from . import job_list
from .errors import CommandError
from .job import Job, read_job
from .kubectl import JOBS
from .names import job_name
from .table import name
from .text import harmless, plural
from .world import World

_PERIOD_SECONDS = 0.5


def is_seen(job: Job, generation: int | None) -> bool:
    """The status is based on the spec of that generation, or a later one."""
    return generation is None or (job.observed_generation is not None and job.observed_generation >= generation)


def sentence(before: Job, after: Job) -> str:
    """What changed: "8 -> 5 GPUs: the reason"."""
    old, new = before.desired_gpus or 0, after.desired_gpus or 0
    gpus = plural(new, "GPU") if old == new else f"{old} -> {plural(new, 'GPU')}"
    return f"{gpus}: {harmless(after.reason)}" if after.reason else gpus


def run(world: World, *, job: str, spec: dict[str, object], timeout: float, output: str) -> None:
    before = read_job(world.kubectl.patch(JOBS, job_name(job), {"spec": spec}))
    if before.finished:
        raise CommandError(f"{job} has ended ({before.phase}): the change has no effect")
    after = _wait(world, before, job, timeout)
    if output == "json":
        document = {"job": job_list.document(after), "gpusBefore": before.desired_gpus}
        world.print_json({**document, "gpusAfter": after.desired_gpus})
    else:
        world.print([f"{name(after.name)}: {sentence(before, after)}"])


def _wait(world: World, changed: Job, job: str, timeout: float) -> Job:
    """Polls, because kubectl cannot wait for a number that is at least another one."""
    deadline = time.monotonic() + timeout
    now = changed
    while not is_seen(now, changed.generation):
        if time.monotonic() >= deadline:
            raise CommandError(
                f"{job} is changed, and the operator has not answered within {timeout:g} s: see later what it says "
                f"with kubectl pliant explain {job}, or ask an administrator whether it runs"
            )
        time.sleep(_PERIOD_SECONDS)
        now = read_job(world.kubectl.get(JOBS, job_name(job)))
    return now
