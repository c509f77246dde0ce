"""A pool that yields to pods of other workloads: a training shrinks between two steps, so that a pod fits which found no
node. Nobody is preempted: the pod's priority is that of the learners."""

import time

from . import ordinary_pod, reference
from .api_server import ApiServer
from .checks import Check, Outcome, check_training
from .maintenance import counted
from .scene import Scene
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, Stage, with_epochs
from .watcher import Watcher

_NAME = "yields"
_PODS = _FIRST, _SECOND = "first-notebook", "second-notebook"
_POD_GPUS = 2  # on one node
_SEED = 9
_EPOCHS = 40
# Longer than the pod then takes to run in a pool that yields.
_PENDING_SECONDS = 10
_POOL = {
    "apiVersion": "pliant.dev/v1alpha1",
    "kind": "GpuPool",
    "metadata": {"name": "default"},
    "spec": {"yieldToPending": True},
}


def play(stage: Stage, screen: Screen) -> list[Check]:
    stage.clear()
    try:
        return _train(stage, screen)
    finally:
        stage.kubectl.run("delete", "gpupool", "default", "--ignore-not-found")
        stage.kubectl.run("delete", "pods", *_PODS, "--ignore-not-found", "--wait")
        stage.clear()


def _train(stage: Stage, screen: Screen) -> list[Check]:
    job = with_epochs(stage.manifest("training-1"), _EPOCHS)
    job["metadata"]["name"] = _NAME
    job["spec"]["training"]["seed"] = _SEED
    left = GPUS_TOTAL - _POD_GPUS
    with Watcher(ApiServer(stage.kubectl), [NAMESPACE], screen.show) as watcher:
        scene = Scene(_NAME, stage, screen, watcher)
        scene.apply(job)
        scene.wait("it trains on 8 GPUs", lambda each: each.trains_on(GPUS_TOTAL) and bool(each.progress.step))
        ordinary_pod.create(stage, _FIRST, _POD_GPUS)
        time.sleep(_PENDING_SECONDS)
        ran_at_once = ordinary_pod.runs(stage, _FIRST)
        screen.say("kubectl apply GpuPool default: yieldToPending")
        begin = time.monotonic()
        stage.kubectl.apply(_POOL)
        ordinary_pod.wait_until_it_runs(stage, screen, _FIRST)
        seconds = {_FIRST: time.monotonic() - begin}
        screen.say(f"   {seconds[_FIRST]:.1f} s after the pool yields")
        scene.wait(f"it trains on the {left} GPUs that are left", lambda each: each.trains_on(left))
        stage.kubectl.run("delete", "pod", _FIRST, "--wait")
        scene.wait("it trains on 8 GPUs again", lambda each: each.trains_on(GPUS_TOTAL))
        seconds[_SECOND] = ordinary_pod.start(stage, screen, _SECOND, _POD_GPUS)
        scene.wait(f"it trains on {left} GPUs", lambda each: each.trains_on(left))
        end = scene.complete()
        status = stage.kubectl.json("get", "elastictrainingjob", _NAME)["status"]
    screen.close_table()
    stage.kubectl.run("delete", "pod", _SECOND, "--wait")
    (sha256,) = reference.parameter_hashes(stage.kubectl, [job])
    return [
        Check("a pool that does not yield keeps its GPUs", (f"{_FIRST} ran",) if ran_at_once else ()),
        Check(f"pods ran within {ordinary_pod.MAX_SECONDS:.0f} s where the pool yields", ordinary_pod.late(seconds)),
        Check("who yields has not failed", counted(status)),
        *check_training([Outcome.of(end, sha256)]),
    ]
