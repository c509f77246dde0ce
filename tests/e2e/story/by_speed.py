"""A queue that gives GPUs where they speed something up. Two trainings, paced: with two learners the first is as
fast as with one, and beyond two it is slower; the second is faster with each. So the first ends with one GPU, although
others are idle in the end."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from . import examples, reference
from .api_server import ApiServer
from .checks import Check, Outcome, check_training, check_worlds
from .maintenance import counted
from .scene import Scene
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, TEAM_LABEL, Stage
from .waiting import wait
from .watcher import Watcher
from .world import Training

_PROGRAM = Path(__file__).resolve().parents[1] / "programs" / "costly_exchange.py"
_QUEUE = "by-speed"
_FLAT, _STEEP = "falls-off", "scales"
_SHARDS = 32
_SHARD_MILLISECONDS = 30
_EPOCHS = 50  # of ten steps
# Shards whose time each further learner costs. With 16 of 32, a step takes as long as 32 shards with one learner or two,
# 43 with three, 56 with four, 116 with eight.
_COST_SHARDS = {_FLAT: 16, _STEEP: 0}
_ENOUGH = 1
_IDLE_SECONDS = 25.0
_SETTLE_SECONDS = 240.0


def play(stage: Stage, screen: Screen) -> list[Check]:
    stage.clear()
    stage.kubectl.apply(queue())
    script = f"--from-file=train.py={_PROGRAM}"
    text = stage.kubectl.run("create", "configmap", f"{_QUEUE}-program", script, "--dry-run=client", "-o", "json")
    stage.kubectl.run("apply", "-f", "-", stdin=text)
    run = f"{time.time():.0f}"
    jobs = {name: job(examples.prepare(examples.CHAR_TRANSFORMER, stage), name, run) for name in (_FLAT, _STEEP)}
    rest = GPUS_TOTAL - _ENOUGH
    with Watcher(ApiServer(stage.kubectl), [NAMESPACE], screen.show) as watcher:
        scenes = {name: Scene(name, stage, screen, watcher) for name in jobs}
        screen.say(f"1. {_FLAT}: it may have all GPUs, but beyond two learners it is slower", "bold")
        scenes[_FLAT].apply(jobs[_FLAT], _SHARD_MILLISECONDS)
        scenes[_FLAT].wait(
            f"it has measured more, and trains on {_ENOUGH}", settled_at(_ENOUGH), _SETTLE_SECONDS
        )
        screen.say(f"2. {_STEEP}: the same program without the cost of further learners", "bold")
        scenes[_STEEP].apply(jobs[_STEEP], _SHARD_MILLISECONDS)
        scenes[_STEEP].wait(f"it trains on {rest} GPUs", lambda each: each.trains_on(rest), _SETTLE_SECONDS)
        scenes[_FLAT].wait(f"the first trains on {_ENOUGH}", lambda each: each.trains_on(_ENOUGH))
        wait(
            stage.kubectl, screen, f"the speed with {_ENOUGH} was measured",
            lambda: _ENOUGH in speeds_of(_status(stage, _FLAT)), _SETTLE_SECONDS,
        )  # fmt: skip
        shown = [*_transcript(stage, "get", "etj"), *(f"  {name}: {_reason(stage, name)}" for name in jobs)]
        screen.lines([*shown, ""])
        screen.say(f"3. {_STEEP} trains to its end, at full speed", "bold")
        ends = {_STEEP: scenes[_STEEP].complete()}
        time.sleep(_IDLE_SECONDS)
        kept, reason = scenes[_FLAT].now().job.learners_desired, _reason(stage, _FLAT)
        screen.say(f"   {_FLAT}: {reason}")
        ends[_FLAT] = scenes[_FLAT].complete()
        worlds = watcher.worlds()
        statuses = {name: _status(stage, name) for name in jobs}
    screen.close_table()
    hashes = reference.parameter_hashes(stage.kubectl, [*jobs.values()])
    failed = [problem for status in statuses.values() for problem in counted(status)]
    outcomes = [Outcome.of(ends[name], sha256) for name, sha256 in zip(jobs, hashes, strict=True)]
    return [
        Check(f"{_FLAT} keeps one GPU while others are idle", () if kept == _ENOUGH else (f"it has {kept}",)),
        Check("its reason says why", () if "slower" in reason else (reason,)),
        Check(f"it was measured to be faster with {_ENOUGH} than with more", slower(speeds_of(statuses[_FLAT]))),
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


def job(example: Mapping, name: str, run: str) -> dict:
    """The job of an example, with the paced program instead of its own. Each run has templates of its own: otherwise it
    would begin with the curves of the one before. Pure."""
    made = dict(example)
    made["metadata"] = {**example["metadata"], "name": name}
    spec = made["spec"] = dict(example["spec"])
    spec["queue"] = _QUEUE
    spec["elastic"] = {"minLearners": 1, "maxLearners": GPUS_TOTAL}
    spec["training"] = {**spec["training"], "globalBatchSize": 64, "logicalShards": _SHARDS}
    spec["resize"] = {"gracePeriodSeconds": 30}
    pod = spec["template"]["spec"]
    (learner,) = pod["containers"]
    environment = {"EPOCHS": str(_EPOCHS), "COST_SHARDS": str(_COST_SHARDS[name]), "RUN": run}
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


def settled_at(learners: int) -> Callable[[Training], bool]:
    """Whether a training has shrunk to this number, after it had more. Keeps state."""
    most = 0

    def reached(training: Training) -> bool:
        nonlocal most
        most = max(most, training.job.learners_desired or 0)
        return most > learners and training.trains_on(learners)

    return reached


def speeds_of(status: Mapping) -> dict[int, float]:
    """Measured samples per second, by the number of learners. Pure."""
    return {each["learners"]: each["samplesPerSecond"] for each in status.get("speeds", ())}


def slower(speeds: Mapping[int, float]) -> tuple[str, ...]:
    """Pure."""
    more = {learners: speed for learners, speed in speeds.items() if learners > 2}  # with two it is as fast
    if _ENOUGH not in speeds or not more:
        return (f"status.speeds has {sorted(speeds)}",)
    return tuple(
        f"{speed} samples/s with {learners} learners, {speeds[_ENOUGH]} with {_ENOUGH}"
        for learners, speed in more.items()
        if speed >= speeds[_ENOUGH]
    )


def _status(stage: Stage, name: str) -> Mapping:
    return stage.kubectl.json("get", "elastictrainingjob", name).get("status", {})


def _reason(stage: Stage, name: str) -> str:
    return stage.kubectl.run("get", "etj", name, "-o", "jsonpath={.status.reason}")


def _transcript(stage: Stage, *arguments: str) -> list[str]:
    return [f"  $ kubectl {' '.join(arguments)}", *(f"  {line}" for line in stage.kubectl.run(*arguments).splitlines())]
