"""A job whose minimum fits no node makes a node autoscaler add one. Here the autoscaler is this story: it starts a node
when the scheduler has found none for a placeholder, and it knows nothing of Pliant."""

import json
from collections.abc import Callable, Mapping

from . import container, pace
from .checks import Check
from .operator_pod import leader
from .screen import Screen
from .stage import GPUS_TOTAL, OPERATOR_NAMESPACE, Stage, with_epochs
from .waiting import wait

_GPUS_PER_NODE = GPUS_TOTAL // 2
_FIRST, _SECOND = "fills-the-node", "needs-a-node"
_SAYS = "; nodes for 2 learners are requested"
_EPOCHS = 1000  # longer than this takes
_POOL = {
    "apiVersion": "pliant.dev/v1alpha1",
    "kind": "GpuPool",
    "metadata": {"name": "default"},
    "spec": {"scaleUp": "Minimum"},
}


def play(stage: Stage, screen: Screen) -> list[Check]:
    stage.clear()
    node = _node_without_leader(stage)
    try:
        screen.say(f"{node} does not exist yet")
        container.take_away(stage, node)
        stage.kubectl.run("delete", "node", node)
        stage.kubectl.apply(_POOL)
        return _Plot(stage, screen, node).play()
    finally:
        container.bring_back(stage, node)
        stage.kubectl.run("delete", "gpupool", "default", "--ignore-not-found")
        stage.clear()


def _node_without_leader(stage: Stage) -> str:
    leading = stage.operator_kubectl.json("get", "pod", leader(stage.operator_kubectl))["spec"]["nodeName"]
    nodes = [node["metadata"]["name"] for node in stage.kubectl.json("get", "nodes")["items"]]
    return next(node for node in nodes if node != leading)


def gpus_without_a_node(pods: Mapping) -> int:
    """The GPUs that pods ask for which the scheduler cannot place: all that an autoscaler looks at."""
    return sum(_gpus(pod["spec"]) for pod in pods["items"] if _is_unschedulable(pod.get("status", {})))


def _is_unschedulable(status: Mapping) -> bool:
    return any(
        each["type"] == "PodScheduled" and each["status"] == "False" and each["reason"] == "Unschedulable"
        for each in status.get("conditions", ())
    )


def _gpus(spec: Mapping) -> int:
    return sum(int(each["resources"].get("limits", {}).get("nvidia.com/gpu", 0)) for each in spec["containers"])


class _Plot:
    def __init__(self, stage: Stage, screen: Screen, node: str) -> None:
        self._stage = stage
        self._screen = screen
        self._node = node

    def play(self) -> list[Check]:
        self._submit(_FIRST, _GPUS_PER_NODE, _GPUS_PER_NODE)
        self._wait("it trains on all GPUs that there are", lambda: self._trains_on(_FIRST, _GPUS_PER_NODE))
        self._submit(_SECOND, 2, GPUS_TOTAL)
        self._wait("the scheduler finds no node for two GPUs", lambda: self._lacking() == 2)
        self._wait("its pool requests them", lambda: self._pool().get("requestedGpus") == 2)
        self._wait("its reason says so", lambda: _SAYS in self._status(_SECOND).get("reason", ""))
        self._screen.say(f"an autoscaler adds {self._node}")
        container.bring_back(self._stage, self._node)
        self._wait("the job trains on the added node", lambda: self._trains_on(_SECOND, _GPUS_PER_NODE))
        self._wait("no placeholder is left", lambda: not self._placeholders()["items"])
        self._wait("its growth lacks no node", lambda: self._pool().get("requestedGpus") == 0)
        return [Check("the first training was not disturbed", self._disturbed())]

    def _submit(self, name: str, min_learners: int, max_learners: int) -> None:
        self._screen.say(f"kubectl apply {name}: {min_learners} to {max_learners} learners")
        job = with_epochs(pace.paced(self._stage.manifest("training-1")), _EPOCHS)
        job["metadata"]["name"] = name
        job = json.loads(json.dumps(job).replace("/pace/training-1", f"/pace/{name}"))
        job["spec"]["elastic"] |= {"minLearners": min_learners, "maxLearners": max_learners}
        pace.set_pace(self._stage.kubectl, name, pace.MILLISECONDS)
        self._stage.kubectl.apply(job)

    def _status(self, name: str) -> Mapping:
        return self._stage.kubectl.json("get", "elastictrainingjob", name).get("status", {})

    def _trains_on(self, name: str, learners: int) -> bool:
        status = self._status(name)
        return status.get("phase") == "Running" and status.get("learners") == learners

    def _pool(self) -> Mapping:
        return self._stage.kubectl.json("get", "gpupool", "default").get("status", {})

    def _placeholders(self) -> Mapping:
        return self._stage.operator_kubectl.json("get", "pods", "-l", "pliant.dev/nodes-for")

    def _lacking(self) -> int:
        """Over all namespaces, as an autoscaler looks."""
        return gpus_without_a_node(self._stage.kubectl.json("get", "pods", "--all-namespaces"))

    def _disturbed(self) -> tuple[str, ...]:
        restarts = self._status(_FIRST).get("restarts", 0)
        return (f"{restarts} of its learners failed",) if restarts else ()

    def _wait(self, what: str, probe: Callable[[], bool]) -> None:
        wait(self._stage.kubectl, self._screen, what, probe, 120)
