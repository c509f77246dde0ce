"""A queue that gives GPUs where they speed something up. Two trainings, paced: of the first, more than two learners are
slower; so it gives its GPUs to the second, which all of them speed up."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from . import examples, reference
from .api_server import ApiServer
from .checks import Check, Outcome, check_training, check_worlds
from .maintenance import counted
from .scene import Scene
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, TEAM_LABEL, Stage
from .watcher import Watcher
from .world import World

_PROGRAM = Path(__file__).resolve().parents[1] / "programs" / "costly_exchange.py"
_QUEUE = "by-speed"
_FLAT, _STEEP = "falls-off", "scales"
_SHARDS = 32
_SHARD_MILLISECONDS = 30
_EPOCHS = 25  # of ten steps
# Shards whose time each further learner costs. With 8 of 32, a step takes as long as 32 shards with one learner, 24 with
# two, 27 with three, 32 with four, 60 with eight.
_COST_SHARDS = {_FLAT: 8, _STEEP: 0}
_ENOUGH = 2
_SETTLE_SECONDS = 240.0


def play(stage: Stage, screen: Screen) -> list[Check]:
    stage.clear()
    stage.kubectl.apply(queue())
    script = f"--from-file=train.py={_PROGRAM}"
    text = stage.kubectl.run("create", "configmap", f"{_QUEUE}-program", script, "--dry-run=client", "-o", "json")
    stage.kubectl.run("apply", "-f", "-", stdin=text)
    jobs = {name: job(examples.prepare(examples.CHAR_TRANSFORMER, stage), name) for name in (_FLAT, _STEEP)}
    rest = GPUS_TOTAL - _ENOUGH
    with Watcher(ApiServer(stage.kubectl), [NAMESPACE], screen.show) as watcher:
        scenes = {name: Scene(name, stage, screen, watcher) for name in jobs}
        screen.say(f"1. {_FLAT}: it may have all GPUs, but a third makes steps longer", "bold")
        scenes[_FLAT].apply(jobs[_FLAT], _SHARD_MILLISECONDS)
        scenes[_FLAT].wait(
            f"it has measured that more than {_ENOUGH} are slower", settled_at(_ENOUGH), _SETTLE_SECONDS
        )
        reason = _reason(stage, _FLAT)
        screen.say(f"2. {_STEEP}: the same program without that limit", "bold")
        scenes[_STEEP].apply(jobs[_STEEP], _SHARD_MILLISECONDS)
        scenes[_STEEP].wait(f"it trains on the {rest} others", lambda each: each.trains_on(rest), _SETTLE_SECONDS)
        scenes[_FLAT].wait(f"the first still trains on {_ENOUGH}", lambda each: each.trains_on(_ENOUGH))
        shown = [*_transcript(stage, "get", "etj"), *(f"  {name}: {_reason(stage, name)}" for name in jobs)]
        screen.lines([*shown, ""])
        screen.say("3. both train to their ends, at full speed", "bold")
        ends = [scene.complete() for scene in scenes.values()]
        worlds = watcher.worlds()
        statuses = [stage.kubectl.json("get", "elastictrainingjob", name)["status"] for name in jobs]
    screen.close_table()
    hashes = reference.parameter_hashes(stage.kubectl, [*jobs.values()])
    failed = [problem for status in statuses for problem in counted(status)]
    outcomes = [Outcome.of(end, sha256) for end, sha256 in zip(ends, hashes, strict=True)]
    return [
        Check(f"{_FLAT} tried more learners than it keeps", tried(worlds, _FLAT)),
        Check("its reason says why it has no more", () if "slower" in reason or "faster" in reason else (reason,)),
        Check("its measured speeds are in its status", measured(statuses[0])),
        Check("no learner failed", tuple(failed)),
        *check_training(outcomes),
        *check_worlds(worlds, GPUS_TOTAL),
    ]


def queue() -> dict:
    return {
        "apiVersion": "pliant.dev/v1alpha1",
        "kind": "TrainingQueue",
        "metadata": {"name": _QUEUE, "labels": {TEAM_LABEL: _QUEUE}},
        "spec": {"namespaceSelector": {}, "policy": "Throughput"},
    }


def job(example: Mapping, name: str) -> dict:
    """The job of an example, with the paced program instead of its own. Pure."""
    made = dict(example)
    made["metadata"] = {**example["metadata"], "name": name}
    spec = made["spec"] = dict(example["spec"])
    spec["queue"] = _QUEUE
    spec["elastic"] = {"minLearners": 1, "maxLearners": GPUS_TOTAL}
    spec["training"] = {**spec["training"], "globalBatchSize": 64, "logicalShards": _SHARDS}
    spec["resize"] = {"gracePeriodSeconds": 30}
    pod = spec["template"]["spec"]
    (learner,) = pod["containers"]
    environment = {"EPOCHS": str(_EPOCHS), "COST_SHARDS": str(_COST_SHARDS[name])}
    container = {
        **learner,
        "args": ["train.py"],
        "env": [*learner.get("env", ()), *({"name": key, "value": value} for key, value in environment.items())],
    }
    volumes = [
        {**each, "configMap": {"name": f"{_QUEUE}-program"}} if each["name"] == "program" else each
        for each in pod["volumes"]
    ]
    spec["template"] = {**spec["template"], "spec": {**pod, "containers": [container], "volumes": volumes}}
    return made


def settled_at(learners: int):
    """Whether a training has shrunk to this number, after it had more. Keeps state."""
    most = 0

    def reached(training) -> bool:
        nonlocal most
        most = max(most, training.job.learners_desired or 0)
        return most > learners and training.trains_on(learners)

    return reached


def tried(worlds: Sequence[World], name: str) -> tuple[str, ...]:
    """Pure."""
    sizes = [world.trainings[name].job.learners_desired or 0 for world in worlds if name in world.trainings]
    return () if max(sizes, default=0) > _ENOUGH else (f"it had at most {max(sizes, default=0)}",)


def measured(status: Mapping) -> tuple[str, ...]:
    """Pure."""
    sizes = {each["learners"] for each in status.get("speeds", ())}
    return () if _ENOUGH in sizes and len(sizes) > 1 else (f"status.speeds has {sorted(sizes)}",)


def _reason(stage: Stage, name: str) -> str:
    return stage.kubectl.run("get", "etj", name, "-o", "jsonpath={.status.reason}")


def _transcript(stage: Stage, *arguments: str) -> list[str]:
    return [f"  $ kubectl {' '.join(arguments)}", *(f"  {line}" for line in stage.kubectl.run(*arguments).splitlines())]
