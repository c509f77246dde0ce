"""TrainingQueues and GpuPools as the commands see them. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from .fields import Fields
from .job import Condition, read_condition


@dataclass(frozen=True)
class Queue:
    """Numbers are GPUs, apart from those of jobs. A value that the object lacks, or that is malformed, is None."""

    name: str | None = None
    pool: str | None = None
    weight: int | None = None
    guaranteed: int | None = None
    limit: int | None = None
    demand: int | None = None
    entitled: int | None = None
    allocated: int | None = None
    borrowed: int | None = None
    lent: int | None = None
    running: int | None = None  # jobs
    waiting: int | None = None  # jobs
    reason: str | None = None
    conditions: tuple[Condition, ...] = ()
    malformed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Pool:
    """Numbers are GPUs, apart from the nodes."""

    name: str | None = None
    nodes: int | None = None
    capacity: int | None = None  # without those that other pods hold
    allocated: int | None = None
    foreign: int | None = None  # held by pods of other workloads
    requested: int | None = None
    yielded: int | None = None
    conditions: tuple[Condition, ...] = ()
    malformed: frozenset[str] = frozenset()


def read_queue(value: object) -> Queue:
    root = Fields(value)
    spec, status = root.below("spec"), root.below("status")
    return Queue(
        name=root.below("metadata").text("name"),
        pool=spec.text("pool"),
        weight=spec.integer("weight"),
        guaranteed=spec.integer("guaranteed"),
        limit=spec.integer("limit"),
        demand=status.integer("demand"),
        entitled=status.integer("entitled"),
        allocated=status.integer("allocated"),
        borrowed=status.integer("borrowed"),
        lent=status.integer("lent"),
        running=status.integer("running"),
        waiting=status.integer("waiting"),
        reason=status.text("reason"),
        conditions=tuple(read_condition(each) for each in status.items("conditions")),
        malformed=frozenset(root.malformed),
    )


def read_pool(value: object) -> Pool:
    root = Fields(value)
    status = root.below("status")
    return Pool(
        name=root.below("metadata").text("name"),
        nodes=status.integer("nodes"),
        capacity=status.integer("capacityGpus"),
        allocated=status.integer("allocatedGpus"),
        foreign=status.integer("foreignGpus"),
        requested=status.integer("requestedGpus"),
        yielded=status.integer("yieldedGpus"),
        conditions=tuple(read_condition(each) for each in status.items("conditions")),
        malformed=frozenset(root.malformed),
    )
