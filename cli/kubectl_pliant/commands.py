"""The commands: each takes the world and its parsed arguments."""

from __future__ import annotations

from argparse import Namespace

from . import edits, explanation, job_list
from . import logs as job_logs
from .job import Job, read_job
from .kubectl import JOBS
from .names import job_name
from .world import World


def get_job(world: World, name: str) -> Job:
    return read_job(world.kubectl.get(JOBS, job_name(name)))


def list_jobs(world: World, given: Namespace) -> None:
    job_list.run(world, queue=given.queue, order=given.sort, output=given.output)


def explain(world: World, given: Namespace) -> None:
    job = get_job(world, given.job)
    sections = explanation.explain(job, world.now())
    if given.output == "json":
        said = [{"about": each.about, "sentences": list(each.sentences)} for each in sections]
        world.print_json({"job": job_list.document(job), "sections": said})
    else:
        world.print(explanation.lines(sections, world.terminal.columns))


def priority(world: World, given: Namespace) -> None:
    _edit(world, given, {"priority": given.priority})


def suspend(world: World, given: Namespace) -> None:
    _edit(world, given, {"suspend": True})


def resume(world: World, given: Namespace) -> None:
    _edit(world, given, {"suspend": False})


def scale(world: World, given: Namespace) -> None:
    _edit(world, given, {"elastic": {"maxLearners": given.max_learners}})


def _edit(world: World, given: Namespace, spec: dict[str, object]) -> None:
    edits.run(world, job=given.job, spec=spec, timeout=given.timeout, output=given.output)


def logs(world: World, given: Namespace) -> None:
    job = get_job(world, given.job)
    choice = job_logs.Choice(given.learner, given.tail)
    if given.follow:
        job_logs.Follower(world, job, choice).run()
    else:
        job_logs.show(world, job, choice)
