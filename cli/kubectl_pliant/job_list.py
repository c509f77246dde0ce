"""kubectl pliant list: the jobs, as a table or as JSON. No I/O apart from `run`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable

from . import times
from .efficiency import efficiency
from .job import Job
from .job_pages import list_jobs
from .table import MALFORMED, Column, cell, is_malformed, name, table
from .world import World

_LAST = float("inf")


def _falling(value: float | None) -> float:
    return _LAST if value is None else -value


def _rising(value: float | None) -> float:
    return _LAST if value is None else value


# Jobs without the value come last.
_ORDERS: dict[str, Callable[[Job], tuple[object, ...]]] = {
    "name": lambda job: (),
    "queue": lambda job: (job.queue or "",),
    "priority": lambda job: (_falling(job.priority),),
    "gpus": lambda job: (_falling(job.gpus),),
    "progress": lambda job: (_falling(job.progress),),
    "eta": lambda job: (_rising(job.estimated_completion),),
    "waiting": lambda job: (_rising(job.waiting_since),),
}
ORDERS = tuple(_ORDERS)


def in_order(jobs: Sequence[Job], order: str) -> list[Job]:
    key = _ORDERS[order]
    return sorted(jobs, key=lambda job: (*key(job), job.namespace or "", job.name or ""))


def learners_cell(job: Job) -> str:
    """Present and wanted learners: 3/5."""
    have = cell(job.learners, "status.learners", job.malformed) or "0"
    want = cell(job.desired_learners, "status.desiredLearners", job.malformed) or "0"
    return have if have == want else f"{have}/{want}"


def gpus_cell(job: Job) -> str:
    if job.gpus is not None:
        return str(job.gpus)
    broken = is_malformed("status.gpus", job.malformed)
    return MALFORMED if broken else "0"


def progress_cell(job: Job) -> str:
    if job.progress is not None:
        return f"{job.progress:.0%}" if job.progress == 1 else f"{min(99, int(job.progress * 100))}%"
    paths = ("status.step", "status.totalSteps")
    return MALFORMED if any(is_malformed(path, job.malformed) for path in paths) else ""


def eta_cell(job: Job, now: float) -> str:
    shown = "" if job.finished else times.until(job.estimated_completion, now)
    return shown or cell(None, "status.estimatedCompletionTime", job.malformed)


def waiting_cell(job: Job, now: float) -> str:
    return times.since(job.waiting_since, now) or cell(None, "status.waitingSince", job.malformed)


def reason_cell(job: Job) -> str:
    return cell(job.reason, "status.reason", job.malformed)


def lines(jobs: Sequence[Job], now: float, *, with_namespace: bool, max_columns: int | None) -> list[str]:
    columns = [
        Column("NAME"), Column("QUEUE"), Column("PRIORITY", True), Column("GPUS", True),
        Column("LEARNERS", True), Column("PHASE"), Column("DONE", True), Column("ETA", True),
        Column("WAITING", True), Column("REASON"),
    ]  # fmt: skip
    rows = []
    for job in jobs:
        row = [
            name(job.name),
            cell(job.queue, "spec.queue", job.malformed, 63),
            cell(job.priority, "spec.priority", job.malformed),
            gpus_cell(job),
            learners_cell(job),
            cell(job.phase, "status.phase", job.malformed, 32),
            progress_cell(job),
            eta_cell(job, now),
            waiting_cell(job, now),
            reason_cell(job),
        ]
        rows.append([name(job.namespace), *row] if with_namespace else row)
    return table([Column("NAMESPACE"), *columns] if with_namespace else columns, rows, max_columns)


def document(job: Job) -> dict[str, object]:
    """The job in documents for programs. Values that the object lacks, or that are malformed, are null."""
    return {
        "namespace": job.namespace,
        "name": job.name,
        "queue": job.queue,
        "priority": job.priority,
        "phase": job.phase,
        "gpus": job.gpus,
        "desiredGpus": job.desired_gpus,
        "learners": job.learners,
        "desiredLearners": job.desired_learners,
        "minLearners": job.min_learners,
        "maxLearners": job.max_learners,
        "gpusPerLearner": job.gpus_per_learner,
        "step": job.step,
        "totalSteps": job.total_steps,
        "progress": job.progress,
        "samplesPerSecond": job.samples_per_second,
        "efficiency": efficiency(job),
        "estimatedStartTime": _time(job.estimated_start),
        "estimatedCompletionTime": _time(job.estimated_completion),
        "waitingSince": _time(job.waiting_since),
        "reason": job.reason,
        "malformed": sorted(job.malformed),
    }


def _time(time: float | None) -> str | None:
    return None if time is None else times.shown(time)


def run(world: World, *, queue: str | None, order: str, output: str) -> None:
    jobs = in_order([job for job in list_jobs(world.kubectl) if queue in (None, job.queue)], order)
    if output == "json":
        world.print_json({"jobs": [document(job) for job in jobs]})
        return
    if not jobs:
        wide = world.kubectl.connection.all_namespaces
        world.note(f"there are no jobs{'' if wide else ' in this namespace; -A lists all namespaces'}")
        return
    world.print(
        lines(
            jobs,
            world.now(),
            with_namespace=world.kubectl.connection.all_namespaces,
            max_columns=None if output == "wide" else world.terminal.columns,
        )
    )
