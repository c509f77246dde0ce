"""Learners with two GPUs and a process for each: the job grows, shrinks and crashes by whole learners."""

from . import checks, container, reference
from .api_server import ApiServer
from .scene import Scene
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, Stage, with_epochs
from .watcher import Watcher
from .world import Training

_NAME = "pairs"
_SEED = 6
_EPOCHS = 60
_GPUS = 2  # per learner
_LEARNERS = GPUS_TOTAL // _GPUS


def _manifest(stage: Stage) -> dict:
    job = with_epochs(stage.manifest("training-1"), _EPOCHS)
    job["metadata"]["name"] = _NAME
    job["spec"]["training"]["seed"] = _SEED
    job["spec"]["elastic"] = {"minLearners": 1, "maxLearners": _LEARNERS, "gpusPerLearner": _GPUS}
    return job


def play(stage: Stage, screen: Screen) -> list[checks.Check]:
    stage.clear()
    job = _manifest(stage)
    with Watcher(ApiServer(stage.kubectl), [NAMESPACE], screen.show) as watcher:
        scene = Scene(_NAME, stage, screen, watcher)
        scene.apply(job)
        scene.wait(f"{_LEARNERS} learners of {_GPUS} GPUs train", lambda each: each.trains_on(_LEARNERS))
        told = _gpus_told(scene.now())
        scene.scale(1)
        scene.wait("one learner trains", lambda each: each.trains_on(1))
        scene.scale(3)
        scene.wait("three learners train", lambda each: each.trains_on(3))
        before = scene.now().progress
        victim = scene.learners()[0].name
        scene.say(f"SIGKILL of {victim}: both of its ranks")
        container.kill(stage, stage.kubectl, victim)
        scene.wait(
            "three learners train again",
            lambda each: each.trains_on(3) and each.progress.membership != before.membership,
        )
        end = scene.complete()
        worlds = watcher.worlds()
    screen.close_table()
    (sha256,) = reference.parameter_hashes(stage.kubectl, [job])
    return [
        checks.Check("the reason counts GPUs", told),
        *checks.check_outcomes([checks.Outcome.of(end, sha256)]),
        *checks.check_worlds(worlds, _LEARNERS),  # counts pods, each of which holds two GPUs
    ]


def _gpus_told(training: Training) -> tuple[str, ...]:
    if f"{GPUS_TOTAL} of {GPUS_TOTAL} GPUs" in training.job.reason:
        return ()
    return (f"it is: {training.job.reason}",)
