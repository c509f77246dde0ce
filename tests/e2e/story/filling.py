"""Trainings that only fill GPUs (the chart's preset `fill`): ordinary pods preempt their learners. Measures the time
from an ordinary pod's creation until it runs on a GPU that the training held."""

from . import container, ordinary_pod, reference
from .api_server import ApiServer
from .checks import Check, Outcome, check_training
from .maintenance import counted
from .scene import Scene
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, Stage, with_epochs
from .watcher import Watcher

_NAME = "fills"
_SEED = 8
_EPOCHS = 40
_PODS = 3


def play(stage: Stage, screen: Screen) -> list[Check]:
    stage.clear()
    try:
        screen.say("helm upgrade: preset=fill")
        container.upgrade_operator(stage, "preset=fill")
        return _train(stage, screen)
    finally:
        stage.clear()
        container.install_operator(stage)


def _train(stage: Stage, screen: Screen) -> list[Check]:
    job = with_epochs(stage.manifest("training-1"), _EPOCHS)
    job["metadata"]["name"] = _NAME
    job["spec"]["training"]["seed"] = _SEED
    seconds: dict[str, float] = {}
    with Watcher(ApiServer(stage.kubectl), [NAMESPACE], screen.show) as watcher:
        scene = Scene(_NAME, stage, screen, watcher)
        scene.apply(job)
        scene.wait("it trains on 8 GPUs", lambda each: each.trains_on(GPUS_TOTAL) and bool(each.progress.step))
        for number in range(1, _PODS + 1):
            name = f"ordinary-{number}"
            seconds[name] = ordinary_pod.start(stage, screen, name)
            left = GPUS_TOTAL - number
            scene.wait(f"it trains on the {left} GPUs that are left", lambda each, left=left: each.trains_on(left))
        stage.kubectl.run("delete", "pods", *seconds, "--wait")
        scene.wait("it trains on 8 GPUs again", lambda each: each.trains_on(GPUS_TOTAL))
        end = scene.complete()
        status = stage.kubectl.json("get", "elastictrainingjob", _NAME)["status"]
    screen.close_table()
    (sha256,) = reference.parameter_hashes(stage.kubectl, [job])
    return [
        Check(f"ordinary pods ran within {ordinary_pod.MAX_SECONDS:.0f} s on GPUs that the training held", ordinary_pod.late(seconds)),
        Check("who is preempted has not failed", counted(status)),
        *check_training([Outcome.of(end, sha256)]),
    ]
