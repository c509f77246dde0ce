"""kubectl pliant queues: queues and pools, as tables or as JSON. No I/O apart from `run`."""

from __future__ import annotations

from collections.abc import Sequence

from .job import Condition
from .kubectl import POOLS, QUEUES
from .shares import Pool, Queue, read_pool, read_queue
from .table import Column, cell, name, table
from .text import harmless
from .world import World

_QUEUE_NUMBERS = (
    ("WEIGHT", "weight", "spec.weight"),
    ("GUARANTEED", "guaranteed", "spec.guaranteed"),
    ("ENTITLED", "entitled", "status.entitled"),
    ("ALLOCATED", "allocated", "status.allocated"),
    ("BORROWED", "borrowed", "status.borrowed"),
    ("LENT", "lent", "status.lent"),
    ("RUNNING", "running", "status.running"),
    ("WAITING", "waiting", "status.waiting"),
)
_POOL_NUMBERS = (
    ("NODES", "nodes", "status.nodes"),
    ("CAPACITY", "capacity", "status.capacityGpus"),
    ("ALLOCATED", "allocated", "status.allocatedGpus"),
    ("FOREIGN", "foreign", "status.foreignGpus"),
    ("REQUESTED", "requested", "status.requestedGpus"),
    ("YIELDED", "yielded", "status.yieldedGpus"),
)
# Conditions that tell good news by False.
_GOOD_IF_FALSE = ("Overlapping",)


def problems(conditions: Sequence[Condition]) -> list[str]:
    """Conditions that ask for somebody's attention, as sentences."""
    return [
        f"{name(each.type)} is {name(each.status)} ({name(each.reason)}): {harmless(each.message or 'no message')}"
        for each in conditions
        if each.status != ("False" if each.type in _GOOD_IF_FALSE else "True")
    ]


def _noted(kind: str, found: Sequence[Queue] | Sequence[Pool]) -> list[str]:
    return [f"{kind} {name(each.name)}: {problem}" for each in found for problem in problems(each.conditions)]


def lines(queues: Sequence[Queue], pools: Sequence[Pool], max_columns: int | None) -> list[str]:
    queue_columns = [Column("QUEUE"), Column("POOL"), *(Column(title, True) for title, _, _ in _QUEUE_NUMBERS)]
    queue_rows = [
        [
            name(each.name),
            cell(each.pool, "spec.pool", each.malformed, 63),
            *(cell(getattr(each, field), path, each.malformed) for _, field, path in _QUEUE_NUMBERS),
            cell(each.reason, "status.reason", each.malformed),
        ]
        for each in queues
    ]
    pool_columns = [Column("POOL"), *(Column(title, True) for title, _, _ in _POOL_NUMBERS)]
    pool_rows = [
        [name(each.name), *(cell(getattr(each, field), path, each.malformed) for _, field, path in _POOL_NUMBERS)]
        for each in pools
    ]
    found = table([*queue_columns, Column("REASON")], queue_rows, max_columns) if queues else []
    if not queues:
        found.append("There is no TrainingQueue: all jobs are in the built-in queue default.")
    found.append("")
    found += table(pool_columns, pool_rows, None) if pools else []
    if not pools:
        found.append("There is no GpuPool: all nodes are in the built-in pool default.")
    noted = [*_noted("queue", queues), *_noted("pool", pools)]
    return [*found, *([""] if noted else []), *noted]


def _conditions(conditions: Sequence[Condition]) -> list[dict[str, object]]:
    return [
        {"type": each.type, "status": each.status, "reason": each.reason, "message": each.message}
        for each in conditions
    ]


def documents(queues: Sequence[Queue], pools: Sequence[Pool]) -> dict[str, object]:
    queue_fields = ("name", "pool", "weight", "guaranteed", "limit", "demand", "entitled", "allocated", "borrowed",
                    "lent", "running", "waiting", "reason")  # fmt: skip
    pool_fields = ("name", "nodes", "capacity", "allocated", "foreign", "requested", "yielded")

    def document(each: Queue | Pool, fields: Sequence[str]) -> dict[str, object]:
        values = {field: getattr(each, field) for field in fields}
        return {**values, "conditions": _conditions(each.conditions), "malformed": sorted(each.malformed)}

    return {
        "queues": [document(each, queue_fields) for each in queues],
        "pools": [document(each, pool_fields) for each in pools],
    }


def read(world: World) -> tuple[list[Queue], list[Pool]]:
    """Both by name."""
    queues = [read_queue(each) for each in world.kubectl.list(QUEUES, scope=())]
    pools = [read_pool(each) for each in world.kubectl.list(POOLS, scope=())]
    return sorted(queues, key=lambda each: each.name or ""), sorted(pools, key=lambda each: each.name or "")


def run(world: World, output: str) -> None:
    queues, pools = read(world)
    if output == "json":
        world.print_json(documents(queues, pools))
    else:
        world.print(lines(queues, pools, None if output == "wide" else world.terminal.columns))
