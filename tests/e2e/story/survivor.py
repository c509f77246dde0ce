"""A training that is suspended, and later loses all learners at once. It ends with the result of an undisturbed run."""

from collections.abc import Mapping
from dataclasses import dataclass

from . import checks, reference
from .api_server import ApiServer
from .scene import Scene, differs, restored_step
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, Stage
from .watcher import Watcher
from .world import Training

_NAME = "survivor"
_SEED = 3
_CHECKPOINT_STEPS = 40


def manifest(stage: Stage) -> dict:
    job = stage.manifest("training-1")
    job["metadata"]["name"] = _NAME
    job["spec"]["training"]["seed"] = _SEED
    job["spec"]["checkpoint"]["everySteps"] = _CHECKPOINT_STEPS
    return job


def play(stage: Stage, screen: Screen) -> list[checks.Check]:
    stage.clear()
    job = manifest(stage)
    with Watcher(ApiServer(stage.kubectl), [NAMESPACE], screen.show) as watcher:
        scene = Scene(_NAME, stage, screen, watcher)
        suspended = _suspend(scene, job)
        vanished = _vanish(scene)
        end = scene.complete()
        worlds = watcher.worlds()
    screen.close_table()
    (sha256,) = reference.parameter_hashes(stage.kubectl, [job])
    return [
        checks.Check("suspending lost no step", suspended.problems()),
        checks.Check("vanished learners resumed from the newest checkpoint", vanished.problems()),
        *checks.check_outcomes([checks.Outcome.of(end, sha256)]),
        # Steps committed after the checkpoint are lost when all learners vanish. `vanished` checks the time before
        # that.
        *checks.check_worlds([world for world in worlds if world.time > vanished.time], GPUS_TOTAL),
    ]


@dataclass(frozen=True)
class Break:
    """An interruption of the training: the step that must not be lost, and the step from which new learners resumed."""

    min_step: int
    step_restored: int
    time: float  # Unix seconds of its end

    def problems(self) -> tuple[str, ...]:
        if self.step_restored >= self.min_step:
            return ()
        return (f"it resumed from step {self.step_restored}, although step {self.min_step} was saved",)


def _suspend(scene: Scene, job: Mapping) -> Break:
    scene.apply(job)
    scene.wait("it trains on 8 GPUs and has a checkpoint", lambda each: each.trains_on(8) and _saved(each))
    idle = scene.suspend()
    scene.say(f"   suspended at step {idle.progress.step}")
    scene.resume(8)
    return _break(scene, idle.progress.step or 0)


def _vanish(scene: Scene) -> Break:
    resumed = scene.now().progress
    ready = scene.wait(
        "it has a new checkpoint",
        lambda each: each.trains_on(8) and (each.progress.checkpoint_step or 0) > (resumed.checkpoint_step or 0),
    )
    pods = [pod.name for pod in scene.learners()]
    scene.say(f"kubectl delete pods --force: all {len(pods)} learners of {_NAME}")
    scene.stage.kubectl.run("delete", "pods", *pods, "--force", "--grace-period=0", "--wait=false")
    scene.wait(
        "new learners train on 8 GPUs",
        lambda each: each.trains_on(8) and differs(each.progress, ready.progress),
    )
    return _break(scene, ready.progress.checkpoint_step or 0)


def _break(scene: Scene, min_step: int) -> Break:
    return Break(min_step, restored_step(scene.logs()), scene.watcher.worlds()[-1].time)


def _saved(training: Training) -> bool:
    return training.progress is not None and training.progress.checkpoint_step is not None
