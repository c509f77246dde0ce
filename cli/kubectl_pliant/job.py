"""An ElasticTrainingJob as the commands see it. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from .fields import Fields

FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Condition:
    type: str | None
    status: str | None
    reason: str | None
    message: str | None
    since: float | None


@dataclass(frozen=True)
class Speed:
    learners: int
    samples_per_second: float


@dataclass(frozen=True)
class Job:
    """A value that the object lacks, or that is malformed, is None."""

    namespace: str | None = None
    name: str | None = None
    uid: str | None = None
    generation: int | None = None
    observed_generation: int | None = None
    queue: str | None = None
    priority: int | None = None
    suspend: bool = False
    min_learners: int | None = None
    max_learners: int | None = None
    gpus_per_learner: int = 1
    learners: int | None = None
    desired_learners: int | None = None
    gpus: int | None = None
    entitlement: int | None = None  # learners
    phase: str | None = None
    reason: str | None = None
    step: int | None = None
    total_steps: int | None = None
    epoch: int | None = None
    samples_per_second: float | None = None
    speeds: tuple[Speed, ...] = ()
    waiting_since: float | None = None
    estimated_start: float | None = None
    estimated_completion: float | None = None
    completion: float | None = None
    checkpoint_step: int | None = None
    checkpoint_time: float | None = None
    attained_gpu_seconds: int | None = None
    admitted_minimum: int | None = None
    entitled_gpus: int | None = None
    demand_learners: int | None = None
    jobs_before: int | None = None
    limited_by: str | None = None
    conditions: tuple[Condition, ...] = ()
    malformed: frozenset[str] = frozenset()  # paths of values that are not understood

    @property
    def desired_gpus(self) -> int | None:
        learners = self.desired_learners
        return None if learners is None else learners * self.gpus_per_learner

    @property
    def progress(self) -> float | None:
        """The part of all steps that is done, from 0 to 1."""
        if self.step is None or not self.total_steps:
            return None
        return min(1.0, self.step / self.total_steps)

    @property
    def finished(self) -> bool:
        return self.phase in FINISHED

    def condition(self, type_name: str) -> Condition | None:
        return next((each for each in self.conditions if each.type == type_name), None)


def read_condition(fields: Fields) -> Condition:
    return Condition(
        type=fields.text("type"),
        status=fields.text("status"),
        reason=fields.text("reason"),
        message=fields.text("message"),
        since=fields.time("lastTransitionTime"),
    )


def _read_speeds(status: Fields) -> tuple[Speed, ...]:
    found = []
    for each in status.items("speeds"):
        learners, speed = each.integer("learners"), each.number("samplesPerSecond")
        if learners and speed is not None and speed > 0:
            found.append(Speed(learners, speed))
    return tuple(found)


def read_job(value: object) -> Job:
    root = Fields(value)
    metadata, spec, status = root.below("metadata"), root.below("spec"), root.below("status")
    elastic, share = spec.below("elastic"), status.below("share")
    checkpoint = status.below("lastCheckpoint")
    return Job(
        namespace=metadata.text("namespace"),
        name=metadata.text("name"),
        uid=metadata.text("uid"),
        generation=metadata.integer("generation"),
        observed_generation=status.integer("observedGeneration"),
        queue=spec.text("queue"),
        priority=spec.integer("priority"),
        suspend=spec.boolean("suspend") or False,
        min_learners=elastic.integer("minLearners"),
        max_learners=elastic.integer("maxLearners"),
        gpus_per_learner=elastic.integer("gpusPerLearner") or 1,
        learners=status.integer("learners"),
        desired_learners=status.integer("desiredLearners"),
        gpus=status.integer("gpus"),
        entitlement=status.integer("entitlement"),
        phase=status.text("phase"),
        reason=status.text("reason"),
        step=status.integer("step"),
        total_steps=status.integer("totalSteps"),
        epoch=status.integer("epoch"),
        samples_per_second=status.number("samplesPerSecond"),
        speeds=_read_speeds(status),
        waiting_since=status.time("waitingSince"),
        estimated_start=status.time("estimatedStartTime"),
        estimated_completion=status.time("estimatedCompletionTime"),
        completion=status.time("completionTime"),
        checkpoint_step=checkpoint.integer("step"),
        checkpoint_time=checkpoint.time("time"),
        attained_gpu_seconds=status.integer("attainedGpuSeconds"),
        admitted_minimum=share.integer("admittedMinimum"),
        entitled_gpus=share.integer("entitledGpus"),
        demand_learners=share.integer("demandLearners"),
        jobs_before=share.integer("jobsBefore"),
        limited_by=share.text("limitedBy"),
        conditions=tuple(read_condition(each) for each in status.items("conditions")),
        malformed=frozenset(root.malformed),
    )
