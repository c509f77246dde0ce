"""Checks what must hold on the observed states. Pure: a check yields a sentence for each violation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .world import Job, Resize, World

MIN_ACCURACY = 0.95


@dataclass(frozen=True)
class Check:
    """One requirement and its violations: none if it holds."""

    name: str
    problems: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.problems


@dataclass(frozen=True)
class Outcome:
    """The end of one training, and of the undisturbed run with the same seed."""

    name: str
    phase: str
    steps: int | None
    steps_total: int | None
    accuracy: float | None
    parameters_sha256: str
    reference_sha256: str
    evaluations: tuple[tuple[int, float | None], ...] = ()  # step and accuracy

    @staticmethod
    def of(job: Job, reference_sha256: str) -> "Outcome":
        return Outcome(
            job.name,
            job.phase,
            job.step,
            job.steps_total,
            job.accuracy,
            job.parameters_sha256,
            reference_sha256,
            job.evaluations,
        )


def check_outcomes(outcomes: Sequence[Outcome]) -> list[Check]:
    """For trainings whose test accuracy is meaningful."""
    accuracy = [
        f"{each.name} has a test accuracy of {each.accuracy}"
        for each in outcomes
        if each.accuracy is None or each.accuracy <= MIN_ACCURACY
    ]
    return [
        *check_training(outcomes),
        Check(f"every test accuracy is above {MIN_ACCURACY:.0%}", tuple(accuracy)),
        Check("every status keeps the evaluations", tuple(filter(None, map(_problem_of_evaluations, outcomes)))),
    ]


def _problem_of_evaluations(outcome: Outcome) -> str:
    steps = [step for step, _ in outcome.evaluations]
    if len(steps) < 2 or steps != sorted(set(steps)):
        return f"{outcome.name} was evaluated at the steps {steps}"
    last = outcome.evaluations[-1]
    if last != (outcome.steps or last[0], outcome.accuracy):
        return f"{outcome.name} was last evaluated at step {last[0]} with an accuracy of {last[1]}"
    return ""


def check_training(outcomes: Sequence[Outcome]) -> list[Check]:
    def off(problem: str, outcome: Outcome) -> str:
        return f"{outcome.name} {problem}"

    succeeded = [off(f"is {each.phase}", each) for each in outcomes if each.phase != "Succeeded"]
    steps = [
        off(f"ended at step {each.steps} of {each.steps_total}", each)
        for each in outcomes
        if each.steps is None or each.steps != each.steps_total
    ]
    hashes = [
        off(f"ended with {each.parameters_sha256 or 'no hash'}, the undisturbed run with {each.reference_sha256}", each)
        for each in outcomes
        if not each.parameters_sha256 or each.parameters_sha256 != each.reference_sha256
    ]
    return [
        Check("every training succeeded", tuple(succeeded)),
        Check("every training took all of its steps", tuple(steps)),
        Check("parameter hashes equal those of undisturbed runs with one learner", tuple(hashes)),
    ]


def check_worlds(worlds: Sequence[World], gpus_total: int) -> list[Check]:
    """Requirements that hold at every moment."""
    return [
        Check("GPUs were never granted beyond capacity", tuple(_beyond_capacity(worlds, gpus_total))),
        Check(
            "no training was allocated less than its minimum or more than its maximum", tuple(_beyond_bounds(worlds))
        ),
        Check("committed steps never went back", tuple(_steps_back(worlds))),
    ]


def check_resizes(resizes: Sequence[tuple[str, Resize]]) -> Check:
    lost = [
        f"{job} lost {resize.steps_lost} steps from {resize.learners_from} to {resize.learners_to} learners"
        for job, resize in resizes
        if resize.steps_lost
    ]
    return Check("no resize lost a step", tuple(lost))


def _beyond_capacity(worlds: Sequence[World], gpus_total: int) -> Iterator[str]:
    worst = max(worlds, key=lambda world: world.gpus_held, default=None)
    if worst and worst.gpus_held > gpus_total:
        yield f"{worst.gpus_held} of {gpus_total} GPUs were held"


def _beyond_bounds(worlds: Sequence[World]) -> Iterator[str]:
    seen = set()
    for world in worlds:
        for name, training in world.trainings.items():
            wanted, job = training.job.learners_desired, training.job
            if job.observed_generation < job.generation:
                continue  # the bounds were changed a moment ago
            if wanted and not job.min_learners <= wanted <= job.max_learners and (name, wanted) not in seen:
                seen.add((name, wanted))
                yield f"{name} was allocated {wanted} learners, outside of {job.min_learners} to {job.max_learners}"


def _steps_back(worlds: Sequence[World]) -> Iterator[str]:
    last: dict[str, int] = {}
    for world in worlds:
        for name, training in world.trainings.items():
            if training.progress is None or training.progress.step is None:
                continue
            step, uid = training.progress.step, training.job.uid
            if step < last.get(uid, 0):
                yield f"{name} went from step {last[uid]} back to {step}"
            last[uid] = step
