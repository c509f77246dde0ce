"""kubectl pliant explain: a job in sentences, from its status alone. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from . import times
from .advice import BY_REASON, LIMITS
from .efficiency import efficiency
from .job import Condition, Job
from .table import is_malformed, name
from .text import harmless, plural, wrap

_MAX_MESSAGE_CHARS = 2048
# Condition types of which True is bad news.
_BAD_IF_TRUE = ("Failed", "Limited", "Quarantined")


@dataclass(frozen=True)
class Section:
    about: str
    sentences: tuple[str, ...]


def explain(job: Job, now: float) -> list[Section]:
    sections = [
        Section("Now", tuple(_now(job, now))),
        Section("Share", tuple(_share(job))),
        Section("Waits", tuple(_waits(job, now))),
        Section("Time", tuple(_time(job, now))),
        Section("Conditions", tuple(_conditions(job, now))),
        Section("What to do", tuple(_to_do(job))),
        Section("Malformed", tuple(_malformed(job))),
    ]
    return [each for each in sections if each.sentences]


def _now(job: Job, now: float) -> list[str]:
    phase = "without a phase: the operator has not seen it"
    if job.phase is not None:
        phase = harmless(job.phase, 32)
    elif is_malformed("status.phase", job.malformed):
        phase = "of a phase that is not understood"
    found = [f"{name(job.name)} of namespace {name(job.namespace)} is {phase}."]
    if job.reason:
        found.append(_sentence(job.reason))
    if job.gpus is not None and job.learners is not None and not job.finished:
        has = f"It has {plural(job.learners, 'learner')} with {plural(job.gpus, 'GPU')}"
        wants = job.desired_learners
        planned = "" if wants in (None, job.learners) else f"; the plan gives it {plural(wants or 0, 'learner')}"
        found.append(f"{has}{planned}.")
    if job.step is not None and job.total_steps:
        done = f" ({int((job.progress or 0) * 100)} %)"
        found.append(f"It has done {job.step} of {job.total_steps} steps{done}.")
    if job.samples_per_second is not None and not job.finished and job.learners:
        per_learner = efficiency(job)
        kept = "" if per_learner is None else f", at {per_learner:.0%} of the speed in proportion to its learners"
        found.append(f"It trains {job.samples_per_second:.4g} samples per second{kept}.")
    if job.checkpoint_step is not None:
        age = "" if job.checkpoint_time is None else f", {times.span(now - job.checkpoint_time)} ago"
        found.append(f"Its last checkpoint is of step {job.checkpoint_step}{age}.")
    return found


def _share(job: Job) -> list[str]:
    if job.finished:
        return []
    queue = f"queue {harmless(job.queue, 63)}" if job.queue else "its queue"
    found = []
    if job.entitled_gpus is not None:
        found.append(f"Its part of the share of {queue} is {plural(job.entitled_gpus, 'GPU')}.")
    elif job.entitlement is not None:
        found.append(f"Its fair share in {queue} is {plural(job.entitlement, 'learner')}.")
    if job.demand_learners is not None:
        found.append(f"It could use {plural(job.demand_learners, 'learner')} now.")
    limit = job.limited_by
    if limit is not None:
        meaning = LIMITS.get(limit, f"the operator calls it {harmless(limit, 64)}")
        found.append(f"What keeps it from more: {meaning}.")
    if job.admitted_minimum not in (None, job.min_learners):
        found.append(
            f"Its minimum counts as {plural(job.admitted_minimum or 0, 'learner')}, those with which it was "
            f"admitted; spec.elastic.minLearners is {job.min_learners}."
        )
    return found


def _waits(job: Job, now: float) -> list[str]:
    if job.waiting_since is None:
        return []
    found = [f"It has waited for {times.span(now - job.waiting_since)}."]
    if job.jobs_before == 0:
        found.append("No job of its queue is before it.")
    elif job.jobs_before is not None:
        verb = "is" if job.jobs_before == 1 else "are"
        found.append(f"{plural(job.jobs_before, 'job')} of its queue {verb} before it.")
    return found


def _time(job: Job, now: float) -> list[str]:
    if job.completion is not None:
        return [f"It ended {times.span(now - job.completion)} ago, at {times.shown(job.completion)}."]
    if job.finished:
        return []
    found = []
    for verb, time in (("start", job.estimated_start), ("complete", job.estimated_completion)):
        if time is not None and time > now:
            found.append(f"It is estimated to {verb} in {times.span(time - now)}, at {times.shown(time)}.")
        elif time is not None:
            found.append(f"It was estimated to {verb} at {times.shown(time)}.")
    return found or ["When it completes is not known."]


def _conditions(job: Job, now: float) -> list[str]:
    return [_condition(each, job.reason, now) for each in job.conditions]


def _condition(condition: Condition, said_above: str | None, now: float) -> str:
    what = f"{name(condition.type)} is {name(condition.status)}"
    if condition.since is not None:
        what += f" for {times.span(now - condition.since)}"
    if condition.reason:
        what += f" ({harmless(condition.reason, 64)})"
    message = condition.message or ""
    message = "" if message == said_above else harmless(message, _MAX_MESSAGE_CHARS)
    return _sentence(f"{what}: {message}" if message else what)


def is_bad(condition: Condition) -> bool:
    bad = "True" if condition.type in _BAD_IF_TRUE else "False"
    return condition.status == bad and condition.type not in ("Complete", "HasPlace", "Running")


def _to_do(job: Job) -> list[str]:
    if job.phase == "Succeeded":
        return []
    found = []
    if job.phase is None and not is_malformed("status.phase", job.malformed):
        found.append("If it stays so, ask an administrator whether the operator runs and watches the namespace.")
    for condition in job.conditions:
        # A job that waits has Progressing False with the reason of HasPlace.
        if is_bad(condition) and condition.reason not in BY_REASON:
            found.append(f"Fix what {name(condition.type)} says; docs/conditions.md explains its reasons.")
    has_place = job.condition("HasPlace")
    advice = BY_REASON.get(has_place.reason or "") if has_place else None
    if advice:
        found.append(advice.format(job=name(job.name)))
    if not found and not job.finished:
        found.append("Nothing.")
    return found


def _malformed(job: Job) -> list[str]:
    if not job.malformed:
        return []
    paths = ", ".join(harmless(path, 128) for path in sorted(job.malformed)[:8])
    return [f"The values of these fields are not understood: {paths}."]


def _sentence(text: str) -> str:
    shown = harmless(text, _MAX_MESSAGE_CHARS)
    return shown if shown.endswith((".", "!", "?")) else f"{shown}."


def lines(sections: list[Section], max_columns: int | None) -> list[str]:
    found: list[str] = []
    for section in sections:
        found += ["", section.about] if found else [section.about]
        for sentence in section.sentences:
            found += wrap(sentence, max_columns, "  ")
    return found
