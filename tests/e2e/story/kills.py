"""The story with a native learner and a PyTorch script, while the operator's leader is killed after each step. On the local
cluster, the operator's timeline and the commands of kubectl pliant must tell what the story saw."""

from collections.abc import Callable

from . import checks, commands, examples, operator_pod, plot, timeline_checks
from .checks import Check
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, Stage
from .timeline_reader import TimelineReader
from .told import Told

_FIRST, _SECOND = "training-1", "char-transformer"
_WAITING = "training-3"  # it is suspended from the beginning, and never trains


def play(stage: Stage, screen: Screen) -> Told:
    if stage.dev is None:
        screen.say("not on the current cluster: its timeline, which the build image reads, and kubectl pliant", "yellow")
        return _play(stage, screen, lambda step: operator_pod.kill_leader(stage))
    reader = TimelineReader(stage, screen)
    differences: list[str] = []
    found: list[Check] = []

    def after(step: int) -> str:
        if step == 2:
            stage.kubectl.apply(waiting(stage))
            differences.extend(reader.compare_lanes({"running", "waiting"}))
            found.append(commands.while_both_train(stage.kubectl, _FIRST, _SECOND))
        elif step == 4:
            differences.extend(reader.compare_lanes({"running", "waiting", "ended"}))
        return reader.kill_leader()

    told = _play(stage, screen, after)
    differences += reader.compare_lanes({"ended"})
    reader.read_all()
    recorded = reader.recorded()
    told.checks += [
        *found,
        commands.after_the_end(stage.kubectl, _FIRST),
        Check("the page tells the same of each job as kubectl get", tuple(differences)),
        timeline_checks.check_stacks(reader.told(), GPUS_TOTAL),
        timeline_checks.check_nodes(recorded),
        timeline_checks.check_worlds(recorded, told.worlds, NAMESPACE),
        timeline_checks.check_replicas(recorded),
        timeline_checks.check_outlived(recorded, reader.kills),
    ]
    return told


def _play(stage: Stage, screen: Screen, kill_after: Callable[[int], str]) -> Told:
    def kill(step: int) -> None:
        screen.say(f"   killed the operator {kill_after(step)} after step {step}", "yellow")

    return plot.play(
        stage, screen, kill, jobs_on=two_kinds_of_jobs, check=checks.check_training, shard_milliseconds=100
    )


def two_kinds_of_jobs(stage: Stage) -> list[dict]:
    return [stage.manifest(_FIRST), examples.prepare(examples.CHAR_TRANSFORMER_OF_EIGHT, stage)]


def waiting(stage: Stage) -> dict:
    job = stage.manifest("training-2")
    job["metadata"]["name"] = _WAITING
    job["spec"]["suspend"] = True
    return job
