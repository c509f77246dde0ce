"""kubectl pliant history: what happened to a job, by its events, oldest first. No I/O apart from `run`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import times
from .fields import Fields
from .job import Job
from .names import job_uid
from .table import Column, cell, table
from .world import World

# The operator's note of the events Resizing, Reclaimed and Released.
_RESIZED = re.compile(r"from (\d{1,4}) to (\d{1,4}) learners: (.*)", re.DOTALL)


@dataclass(frozen=True)
class JobEvent:
    first: float | None  # when it happened first, and last
    last: float | None
    count: int
    type: str | None  # Normal, Warning
    reason: str | None
    size: str  # learners before and after: "8 -> 5"
    note: str | None
    malformed: frozenset[str]


def read_event(value: object) -> JobEvent:
    root = Fields(value)
    first = root.time("eventTime") or root.time("firstTimestamp") or root.below("metadata").time("creationTimestamp")
    series = root.below("series")
    note = root.text("message")
    resized = _RESIZED.fullmatch(note) if note is not None else None
    return JobEvent(
        first=first,
        last=series.time("lastObservedTime") or root.time("lastTimestamp") or first,
        count=series.integer("count") or root.integer("count") or 1,
        type=root.text("type"),
        reason=root.text("reason"),
        size=f"{resized[1]} -> {resized[2]}" if resized else "",
        note=resized[3] if resized else note,
        malformed=frozenset(root.malformed),
    )


def in_order(events: list[JobEvent]) -> list[JobEvent]:
    return sorted(events, key=lambda event: (event.first or 0.0, event.last or 0.0, event.reason or ""))


def lines(events: list[JobEvent], max_columns: int | None) -> list[str]:
    rows = []
    for event in events:
        repeated = f" ({event.count} times until {times.shown(event.last)})" if event.count > 1 and event.last else ""
        note = cell(event.note, "message", event.malformed)
        rows.append(
            [
                "?" if event.first is None else times.shown(event.first),
                cell(event.type, "type", event.malformed, 16),
                cell(event.reason, "reason", event.malformed, 64),
                event.size,
                f"{note}{repeated}",
            ]
        )
    columns = [Column("TIME"), Column("TYPE"), Column("REASON"), Column("LEARNERS", True), Column("MESSAGE")]
    return table(columns, rows, max_columns)


def document(event: JobEvent) -> dict[str, object]:
    return {
        "time": None if event.first is None else times.shown(event.first),
        "lastTime": None if event.last is None else times.shown(event.last),
        "count": event.count,
        "type": event.type,
        "reason": event.reason,
        "learners": event.size or None,
        "message": event.note,
    }


def run(world: World, job: Job, output: str) -> None:
    of_job = f"--field-selector=involvedObject.uid={job_uid(job.uid)}"
    events = in_order([read_event(each) for each in world.kubectl.list("events", options=[of_job])])
    if output == "json":
        world.print_json({"events": [document(each) for each in events]})
    elif events:
        world.print(lines(events, None if output == "wide" else world.terminal.columns))
    else:
        world.note("there are no events of the job: the API server keeps them for an hour, unless it is set otherwise")
