"""Maintenance of nodes: a learner is evicted, and a node is drained and uncordoned. For the training both are resizes;
neither is a failure."""

import json
from collections.abc import Mapping

from . import checks, reference
from .api_server import ApiServer
from .scene import Scene
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, Stage, with_epochs
from .watcher import Watcher
from .world import node_without_coordinator

_NAME = "moved"
_SEED = 6
_EPOCHS = 120  # more than a minute: long enough for all of this
_LEARNERS = 8
_DRAIN_SECONDS = 60.0


def eviction(pod: str) -> dict:
    """The request that `kubectl drain` and tools that reclaim nodes send."""
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": NAMESPACE}}


def counted(status: Mapping) -> tuple[str, ...]:
    """Failures that a job's status reports."""
    found = []
    if restarts := status.get("restarts", 0):
        found.append(f"{restarts} learners are said to have failed")
    if failures := status.get("failures", {}).get("count", 0):
        found.append(f"{failures} failures count against the job")
    return tuple(found)


def play(stage: Stage, screen: Screen) -> list[checks.Check]:
    stage.clear()
    job = with_epochs(stage.manifest("training-1"), _EPOCHS)
    job["metadata"]["name"] = _NAME
    job["spec"]["training"]["seed"] = _SEED
    with Watcher(ApiServer(stage.kubectl), [NAMESPACE], screen.show) as watcher:
        scene = Scene(_NAME, stage, screen, watcher)
        scene.apply(job)
        scene.wait("it trains on 8 GPUs", lambda each: each.trains_on(_LEARNERS) and bool(each.progress.step))
        _evict(scene)
        _drain(scene)
        end = scene.complete()
        status = stage.kubectl.json("get", "elastictrainingjob", _NAME)["status"]
        worlds, resizes = watcher.worlds(), watcher.resizes()
    screen.close_table()
    (sha256,) = reference.parameter_hashes(stage.kubectl, [job])
    return [
        checks.Check("who is evicted has not failed", counted(status)),
        checks.check_resizes(resizes),
        *checks.check_outcomes([checks.Outcome.of(end, sha256)]),
        *checks.check_worlds(worlds, GPUS_TOTAL),
    ]


def _evict(scene: Scene) -> None:
    name = scene.learners()[0].name
    scene.say(f"{name} is evicted")
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction"
    scene.stage.kubectl.run("create", f"--raw={path}", "-f", "-", stdin=json.dumps(eviction(name)))
    scene.wait(
        "another one trains in its place",
        lambda each: each.trains_on(_LEARNERS) and name not in each.progress.members,
    )


def _drain(scene: Scene) -> None:
    """Drains a node without the coordinator, for which the other learners would wait."""
    node = node_without_coordinator(scene.now())
    moved = {pod.name for pod in scene.learners() if pod.node == node}
    rest = _LEARNERS - len(moved)
    kubectl = scene.stage.kubectl
    scene.say(f"kubectl drain {node}")
    try:
        # As in docs/operations.md, but only the jobs' pods: the operator's replicas stay where other moments expect
        # them.
        pods = "--pod-selector=app.kubernetes.io/managed-by=pliant"
        limit = f"--timeout={_DRAIN_SECONDS:.0f}s"
        kubectl.run("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", pods, limit)
        scene.wait(
            f"it trains on the {rest} GPUs that are left",
            lambda each: each.trains_on(rest) and moved.isdisjoint(each.progress.members),
        )
    finally:
        scene.say(f"kubectl uncordon {node}")
        kubectl.run("uncordon", node)
    scene.wait("it trains on 8 GPUs again", lambda each: each.trains_on(_LEARNERS))
