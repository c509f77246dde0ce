"""A pool of which GPUs are another extended resource, such as a MIG profile: a training of its queue shrinks and grows on
that, while another trains on GPUs. The nodes offer it because their status says so."""

import json
from collections.abc import Mapping

from . import reference
from .api_server import ApiServer
from .checks import Check, Outcome, check_training
from .maintenance import counted
from .scene import Scene
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, Stage, with_epochs
from .waiting import wait
from .watcher import Watcher

RESOURCE = "example.com/slice"
_SLICES = 3
_POOL = "slices"
_WHOLE, _SLICED = "on-gpus", "on-slices"
_EPOCHS = 30
_OBJECTS = (
    {
        "apiVersion": "pliant.dev/v1alpha1",
        "kind": "GpuPool",
        "metadata": {"name": _POOL},
        "spec": {"nodeSelector": {"matchLabels": {_POOL: "yes"}}, "resourceName": RESOURCE},
    },
    {
        "apiVersion": "pliant.dev/v1alpha1",
        "kind": "TrainingQueue",
        "metadata": {"name": _POOL},
        "spec": {"pool": _POOL, "namespaceSelector": {}},
    },
)


def play(stage: Stage, screen: Screen) -> list[Check]:
    stage.clear()
    node = stage.kubectl.json("get", "nodes")["items"][0]["metadata"]["name"]
    try:
        _offer(stage, node, _SLICES)
        wait(stage.kubectl, screen, f"{node} offers {_SLICES} slices", lambda: _offered(stage, node) == _SLICES, 60)
        stage.kubectl.run("label", "node", node, f"{_POOL}=yes", "--overwrite")
        for each in _OBJECTS:
            stage.kubectl.apply(each)
        return _train(stage, screen)
    finally:
        stage.clear()
        stage.kubectl.run("label", "node", node, f"{_POOL}-")
        for kind in ("trainingqueue", "gpupool"):
            stage.kubectl.run("delete", kind, _POOL, "--ignore-not-found")
        _offer(stage, node, None)


def _offer(stage: Stage, node: str, slices: int | None) -> None:
    """None: it no longer offers any."""
    amount = None if slices is None else str(slices)
    patch = {"status": {list_name: {RESOURCE: amount} for list_name in ("capacity", "allocatable")}}
    stage.kubectl.run("patch", "node", node, "--subresource=status", "--type=merge", f"--patch={json.dumps(patch)}")


def _offered(stage: Stage, node: str) -> int:
    return int(stage.kubectl.json("get", "node", node)["status"]["allocatable"].get(RESOURCE, "0"))


def _job(stage: Stage, name: str) -> dict:
    job = with_epochs(stage.manifest("training-1"), _EPOCHS)
    job["metadata"]["name"] = name
    return job


def _train(stage: Stage, screen: Screen) -> list[Check]:
    whole = _job(stage, _WHOLE)
    sliced = _job(stage, _SLICED)
    sliced["spec"]["queue"] = _POOL
    left = GPUS_TOTAL // 2  # the other node is in the pool of slices
    with Watcher(ApiServer(stage.kubectl), [NAMESPACE], screen.show) as watcher:
        on_gpus = Scene(_WHOLE, stage, screen, watcher)
        on_slices = Scene(_SLICED, stage, screen, watcher)
        on_gpus.apply(whole)
        on_slices.apply(sliced)
        on_slices.wait(f"it trains on {_SLICES} slices", lambda each: each.trains_on(_SLICES))
        on_gpus.wait(f"the other trains on {left} GPUs", lambda each: each.trains_on(left))
        pods = stage.kubectl.json("get", "pods", "-l", f"pliant.dev/job={_SLICED},pliant.dev/role=learner")
        pool = stage.kubectl.json("get", "gpupool", _POOL)["status"]
        stage.kubectl.run("scale", "elastictrainingjob", _SLICED, "--replicas=1")
        on_slices.wait("it trains on one slice", lambda each: each.trains_on(1))
        end = on_slices.complete()
        on_gpus.complete()
        status = stage.kubectl.json("get", "elastictrainingjob", _SLICED)["status"]
    screen.close_table()
    (sha256,) = reference.parameter_hashes(stage.kubectl, [_job(stage, _SLICED)])
    capacity = pool.get("capacityGpus")
    return [
        Check("learners ask for slices only", asks_for_others(pods)),
        Check("the pool has the slices", () if capacity == _SLICES else (f"capacityGpus is {capacity}",)),
        Check("nothing has failed", counted(status)),
        *check_training([Outcome.of(end, sha256)]),
    ]


def asks_for_others(pods: Mapping) -> tuple[str, ...]:
    """Names learners that ask for something else than slices."""
    found = []
    for pod in pods["items"]:
        limits = pod["spec"]["containers"][0]["resources"].get("limits", {})
        if limits.get(RESOURCE) != "1" or "nvidia.com/gpu" in limits:
            found.append(f"{pod['metadata']['name']} asks for {limits}")
    return tuple(found) if pods["items"] else ("there are no learners",)
