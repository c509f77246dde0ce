"""kubectl pliant cost: GPU-hours of the jobs that exist, by namespace, by queue and by job. No I/O apart from `run`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .job import Job
from .job_pages import list_jobs
from .table import MALFORMED, Column, is_malformed, name, table
from .world import World

DELETED = "Jobs that are deleted are not counted."


def hours(job: Job) -> float | None:
    """None: the status has a malformed value."""
    if is_malformed("status.attainedGpuSeconds", job.malformed):
        return None
    return (job.attained_gpu_seconds or 0) / 3600


def totals(jobs: Sequence[Job], key: Callable[[Job], str | None]) -> list[tuple[str | None, int, float]]:
    """Key, number of jobs and GPU-hours, most hours first."""
    found: dict[str | None, tuple[int, float]] = {}
    for job in jobs:
        count, total = found.get(key(job), (0, 0.0))
        found[key(job)] = count + 1, total + (hours(job) or 0.0)
    rows = [(each, count, total) for each, (count, total) in found.items()]
    return sorted(rows, key=lambda row: (-row[2], row[0] or ""))


def lines(jobs: Sequence[Job]) -> list[str]:
    found: list[str] = []
    for title, key in (("NAMESPACE", _namespace), ("QUEUE", _queue)):
        rows = [[name(each), str(count), f"{total:.2f}"] for each, count, total in totals(jobs, key)]
        found += [*table([Column(title), Column("JOBS", True), Column("GPU-HOURS", True)], rows, None), ""]
    rows = []
    for job in sorted(jobs, key=lambda job: (-(hours(job) or 0.0), job.namespace or "", job.name or "")):
        used = hours(job)
        rows.append([name(job.namespace), name(job.name), MALFORMED if used is None else f"{used:.2f}"])
    found += table([Column("NAMESPACE"), Column("JOB"), Column("GPU-HOURS", True)], rows, None)
    return [*found, "", DELETED]


def document(jobs: Sequence[Job]) -> dict[str, object]:
    def rows(key: Callable[[Job], str | None]) -> list[dict[str, object]]:
        return [{"name": each, "jobs": count, "gpuHours": total} for each, count, total in totals(jobs, key)]

    return {
        "namespaces": rows(_namespace),
        "queues": rows(_queue),
        "jobs": [{"namespace": job.namespace, "name": job.name, "gpuHours": hours(job)} for job in jobs],
    }


def _namespace(job: Job) -> str | None:
    return job.namespace


def _queue(job: Job) -> str | None:
    return job.queue


def run(world: World, output: str) -> None:
    jobs = list_jobs(world.kubectl)
    if output == "json":
        world.print_json(document(jobs))
    elif jobs:
        world.print(lines(jobs))
    else:
        world.note(f"there are no jobs. {DELETED}")
