"""What kubectl pliant top shows at one moment. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from . import job_list, times
from .bars import FOREIGN, IDLE, Part, bar, gauge, legend
from .efficiency import efficiency
from .job import Job
from .shares import Pool, Queue
from .table import GAP, MALFORMED, Column, cell, name, table
from .text import cut, plural, width
from .world import Terminal

_BAR_COLUMNS = 60
_GAUGE_COLUMNS = 8
_LEFT_OUT = ("EFFICIENCY", "OF ITS MAXIMUM", "SAMPLES/S")  # in this order
_MIN_REASON_COLUMNS = 24
_OTHER = "*"  # mark of queues beyond the alphabet, and of the built-in queue


@dataclass(frozen=True)
class Observed:
    """One reading of the cluster."""

    jobs: tuple[Job, ...]
    queues: tuple[Queue, ...]
    pools: tuple[Pool, ...]
    remark: str = ""  # on what could not be read


def parts_of(pool: Pool, queues: Sequence[Queue]) -> list[Part] | None:
    """The GPUs of a pool by their use; None: its numbers are not known."""
    if pool.capacity is None or pool.allocated is None:
        return None
    own = [queue for queue in queues if queue.pool == pool.name and queue.allocated]
    parts = [
        Part(mark, name(queue.name), queue.allocated or 0)
        for mark, queue in zip([*ascii_uppercase, *(_OTHER * len(own))], own)
    ]
    unnamed = pool.allocated - sum(part.gpus for part in parts)
    if unnamed > 0:
        parts.append(Part(_OTHER, "other queues", unnamed))
    parts.append(Part(FOREIGN, "other workloads", pool.foreign or 0))
    return [*parts, Part(IDLE, "idle", max(0, pool.capacity - pool.allocated))]


def _pools(seen: Observed, terminal: Terminal) -> list[str]:
    room = _BAR_COLUMNS if terminal.columns is None else max(10, min(_BAR_COLUMNS, terminal.columns - 2))
    found = []
    for pool in seen.pools:
        parts = parts_of(pool, seen.queues)
        if parts is None:
            found += [f"pool {name(pool.name)}: its GPUs are not known", ""]
            continue
        total = sum(part.gpus for part in parts)
        title = cut(f"pool {name(pool.name)}: {plural(total, 'GPU')}", terminal.columns)
        found += [title, bar(parts, room, terminal.colour), cut(legend(parts), terminal.columns), ""]
    return found


def _queues(seen: Observed, terminal: Terminal) -> list[str]:
    if not seen.queues:
        return []
    rows = [
        [
            name(each.name),
            cell(each.guaranteed, "spec.guaranteed", each.malformed),
            cell(each.entitled, "status.entitled", each.malformed),
            cell(each.allocated, "status.allocated", each.malformed),
            cell(each.waiting, "status.waiting", each.malformed),
        ]
        for each in seen.queues
    ]
    titles = ("GUARANTEED", "ENTITLED", "ALLOCATED", "WAITING")
    columns = [Column("QUEUE"), *(Column(title, True) for title in titles)]
    return [*table(columns, rows, terminal.columns), ""]


def _gauge(job: Job) -> str:
    gpus = job_list.gpus_cell(job)
    if gpus == MALFORMED or job.max_learners is None:
        return MALFORMED
    return gauge(int(gpus), job.max_learners * job.gpus_per_learner, _GAUGE_COLUMNS)


def _jobs(jobs: Sequence[Job], now: float, terminal: Terminal, with_namespace: bool) -> list[str]:
    rows = []
    for job in jobs:
        kept = efficiency(job)
        speed = job.samples_per_second
        namespace = [name(job.namespace)] if with_namespace else []
        rows.append(
            [
                *namespace,
                name(job.name),
                cell(job.queue, "spec.queue", job.malformed, 63),
                job_list.gpus_cell(job),
                _gauge(job),
                cell(None if speed is None else f"{speed:.4g}", "status.samplesPerSecond", job.malformed),
                cell(None if kept is None else f"{kept:.0%}", "status.speeds", job.malformed),
                job_list.waiting_cell(job, now),
                job_list.reason_cell(job),
            ]
        )
    columns = [
        Column("JOB"), Column("QUEUE"), Column("GPUS", True), Column("OF ITS MAXIMUM"), Column("SAMPLES/S", True),
        Column("EFFICIENCY", True), Column("WAITING", True), Column("REASON"),
    ]  # fmt: skip
    columns = [Column("NAMESPACE"), *columns] if with_namespace else columns
    found = table(*_fitting(columns, rows, terminal.columns), terminal.columns)
    return [cut(line, terminal.columns) for line in found]  # a longer line would break the redrawing


def _fitting(
    columns: list[Column], rows: list[list[str]], most: int | None
) -> tuple[list[Column], list[list[str]]]:
    """Without the columns for which a narrow terminal has no room next to the reason."""
    for title in _LEFT_OUT:
        widths = [max(map(width, cells)) for cells in zip([each.title for each in columns[:-1]], *rows)]
        if most is None or sum(widths) + len(GAP) * len(widths) + _MIN_REASON_COLUMNS <= most:
            break
        index = [each.title for each in columns].index(title)
        columns = columns[:index] + columns[index + 1 :]
        rows = [row[:index] + row[index + 1 :] for row in rows]
    return columns, rows


def frame(
    seen: Observed, now: float, terminal: Terminal, *, with_namespace: bool, max_rows: int | None = None
) -> list[str]:
    """Lines of the terminal's width. Jobs that have ended are not shown. `max_rows` limits the others."""
    jobs = [job for job in seen.jobs if not job.finished]
    jobs.sort(key=lambda job: (-(job.gpus or 0), job.waiting_since or now, job.namespace or "", job.name or ""))
    head = [f"{times.shown(now)}   {plural(len(jobs), 'job')}", ""]
    head += [*_pools(seen, terminal), *_queues(seen, terminal)]
    tail = [cut(seen.remark, terminal.columns)] if seen.remark else []
    room = len(jobs) if max_rows is None else max(1, max_rows - len(head) - len(tail) - 2)
    if len(jobs) > room:
        tail.insert(0, f"{len(jobs) - room} more; kubectl pliant list has all")
    shown = _jobs(jobs[:room], now, terminal, with_namespace) if jobs else ["there are no jobs"]
    return [*head, *shown, *tail]
