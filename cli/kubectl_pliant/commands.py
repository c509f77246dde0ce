"""The commands: each takes the world and its parsed arguments."""

from __future__ import annotations

from argparse import Namespace

from . import __version__, edits, explanation, job_list, kept_output, page, what_if
from . import cost as gpu_hours
from . import history as job_history
from . import logs as job_logs
from . import queues as all_queues
from . import top as live
from .completion import SCRIPTS
from .errors import WRONG_USE, CommandError
from .job import Job, read_job
from .kubectl import JOBS
from .names import job_name, object_name
from .operator_pod import ask_leader
from .text import harmless
from .world import World


def get_job(world: World, name: str) -> Job:
    return read_job(world.kubectl.get(JOBS, job_name(name)))


def list_jobs(world: World, given: Namespace) -> None:
    job_list.run(world, queue=given.queue, order=given.sort, output=given.output)


def explain(world: World, given: Namespace) -> None:
    job = get_job(world, given.job)
    if given.deep:
        _explain_deeply(world, job, given)
        return
    sections = explanation.explain(job, world.now())
    if given.output == "json":
        said = [{"about": each.about, "sentences": list(each.sentences)} for each in sections]
        world.print_json({"job": job_list.document(job), "sections": said})
    else:
        world.print(explanation.lines(sections, world.terminal.columns))


def _explain_deeply(world: World, job: Job, given: Namespace) -> None:
    namespace = object_name(job.namespace or "", "the job's namespace")
    path = f"/debug/explain?job={namespace}/{job_name(job.name or '')}"
    text = ask_leader(world.kubectl, given.operator_namespace, path).decode(errors="replace")
    if given.output == "json":
        world.print_json({"job": job_list.document(job), "plan": text})
    else:
        world.print(harmless(line, 4096) for line in text.splitlines())


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
    choice = job_logs.Choice(given.learner, given.tail)
    if given.kept:
        kept_output.show(world, given.job, choice, given.image)
        return
    job = get_job(world, given.job)
    if given.follow:
        job_logs.Follower(world, job, choice).run()
    else:
        job_logs.show(world, job, choice)


def queues(world: World, given: Namespace) -> None:
    all_queues.run(world, given.output)


def history(world: World, given: Namespace) -> None:
    job_history.run(world, get_job(world, given.job), given.output)


def cost(world: World, given: Namespace) -> None:
    gpu_hours.run(world, given.output)


def top(world: World, given: Namespace) -> None:
    live.run(world, once=given.once, output=given.output)


def ui(world: World, given: Namespace) -> None:
    if given.save is not None:
        page.save(world, given.operator_namespace, given.save, given.since or page.DEFAULT_SECONDS)
    elif given.since is not None:
        raise CommandError("--since is for a saved page: name its file with --save", WRONG_USE)
    else:
        page.run(world, given.operator_namespace, given.browser)


def whatif(world: World, given: Namespace) -> None:
    options = [f"--{option}" for option in ("all", "forward") if getattr(given, option)]
    what_if.run(world, given.operator_namespace, given.edits, options)


def completion(world: World, given: Namespace) -> None:
    world.print([SCRIPTS[given.shell]])


def version(world: World, given: Namespace) -> None:
    if given.output == "json":
        world.print_json({"kubectlPliant": __version__})
    else:
        world.print([f"kubectl-pliant {__version__}"])
