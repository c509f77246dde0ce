"""A training that is suspended, and whose learners all vanish at once. It ends as if nothing had been."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from . import checks, reference
from .api_server import ApiServer
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, Stage
from .watcher import Watcher
from .world import Progress, Training, World

_NAME = "survivor"
_SEED = 3
_CHECKPOINT_STEPS = 40
_RESIZE_SECONDS = 180.0
_TRAIN_SECONDS = 1800.0


def manifest(stage: Stage) -> dict:
    job = stage.manifest("training-1")
    job["metadata"]["name"] = _NAME
    job["spec"]["training"]["seed"] = _SEED
    job["spec"]["checkpoint"]["everySteps"] = _CHECKPOINT_STEPS
    return job


def play(stage: Stage, screen: Screen) -> list[checks.Check]:
    stage.clear()
    job = manifest(stage)
    with Watcher(ApiServer(stage.kubectl), NAMESPACE, screen.show) as watcher:
        scene = _Scene(stage, screen, watcher)
        suspended = scene.suspend(job)
        vanished = scene.vanish()
        last = scene.wait("the survivor completes", lambda training: training.job.phase == "Succeeded", _TRAIN_SECONDS)
        worlds = watcher.worlds()
    screen.close_table()
    (sha256,) = reference.parameter_hashes(stage.kubectl, [job])
    end = last.job
    outcome = checks.Outcome(_NAME, end.phase, end.step, end.steps_total, end.accuracy, end.parameters_sha256, sha256)
    return [
        checks.Check("suspending lost no step", suspended.problems()),
        checks.Check("vanished learners resumed from the newest checkpoint", vanished.problems()),
        *checks.check_outcomes([outcome]),
        # What was committed after the checkpoint goes when all learners vanish: before that is judged by `vanished`.
        *checks.check_worlds([world for world in worlds if world.time > vanished.time], GPUS_TOTAL),
    ]


@dataclass(frozen=True)
class Break:
    """The training stood still: the step that must not be lost, and the one that its next learners began with."""

    step_least: int
    step_restored: int
    time: float  # Unix seconds of its end

    def problems(self) -> tuple[str, ...]:
        if self.step_restored >= self.step_least:
            return ()
        return (f"it went on at step {self.step_restored}, although {self.step_least} was saved",)


def restored_step(logs: str) -> int:
    """Of the checkpoint that learners took up, by what they log; 0 if they began afresh."""
    lines = [json.loads(line) for line in logs.splitlines() if line.startswith("{")]
    return max((line["step"] for line in lines if line["message"] == "restored"), default=0)


class _Scene:
    def __init__(self, stage: Stage, screen: Screen, watcher: Watcher) -> None:
        self._stage = stage
        self._screen = screen
        self._watcher = watcher

    def suspend(self, job: Mapping) -> Break:
        self._screen.say("kubectl apply survivor")
        self._stage.kubectl.apply(job)
        self.wait("it trains on 8 GPUs and has a checkpoint", lambda each: each.trains_on(8) and _saved(each))
        self._screen.say("kubectl patch survivor: suspend")
        self._patch('{"spec":{"suspend":true}}')
        idle = self.wait(
            "it is suspended and holds no GPU", lambda each: each.job.phase == "Suspended" and each.gpus_held == 0
        )
        before = idle.progress
        self._screen.say(f"   suspended at step {before.step}; kubectl patch survivor: resume")
        self._patch('{"spec":{"suspend":false}}')
        again = self.wait(
            "it trains on 8 GPUs again", lambda each: each.trains_on(8) and _differs(each.progress, before)
        )
        return Break(before.step or 0, self._restored_step(again), self._watcher.worlds()[-1].time)

    def vanish(self) -> Break:
        resumed = self._watcher.worlds()[-1].trainings[_NAME].progress
        ready = self.wait(
            "it has a new checkpoint",
            lambda each: each.trains_on(8) and (each.progress.checkpoint_step or 0) > (resumed.checkpoint_step or 0),
        )
        pods = [pod.name for pod in ready.learner_pods() if pod.holds_gpu]
        self._screen.say(f"kubectl delete pods --force: all {len(pods)} learners of survivor")
        self._stage.kubectl.run("delete", "pods", *pods, "--force", "--grace-period=0", "--wait=false")
        again = self.wait(
            "new learners train on 8 GPUs",
            lambda each: each.trains_on(8) and _differs(each.progress, ready.progress),
        )
        return Break(ready.progress.checkpoint_step or 0, self._restored_step(again), self._watcher.worlds()[-1].time)

    def _restored_step(self, training: Training) -> int:
        pods = [pod.name for pod in training.learner_pods() if pod.holds_gpu]
        return max(restored_step(self._stage.kubectl.run("logs", pod)) for pod in pods)

    def wait(self, what: str, reached: Callable[[Training], bool], seconds: float = _RESIZE_SECONDS) -> Training:
        def in_world(world: World) -> bool:
            training = world.training(_NAME)
            return training is not None and reached(training)

        def hopeless(world: World) -> str | None:
            training = world.training(_NAME)
            if training and training.job.finished:
                return f"it is {training.job.phase}: {training.job.reason}"
            return None

        world = self._watcher.wait(what, in_world, seconds, hopeless)
        self._screen.say(f"   {what}", "green")
        return world.trainings[_NAME]

    def _patch(self, patch: str) -> None:
        self._stage.kubectl.run("patch", "elastictrainingjob", _NAME, "--type=merge", "-p", patch)


def _differs(progress: Progress, before: Progress) -> bool:
    return progress.membership != before.membership


def _saved(training: Training) -> bool:
    return training.progress is not None and training.progress.checkpoint_step is not None
