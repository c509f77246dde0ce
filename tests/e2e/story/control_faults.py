"""Faults of the components around a training: the operator, the API server, etcd, a kubelet, a GPU. None of them stops
a training or changes its result. tests/cluster/README.md has the commands."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from . import checks, container, reference
from .api_server import ApiServer
from .errors import StoryError
from .faults import Fault
from .operator_pod import leader, lease_transitions
from .scene import Scene
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, Stage, with_epochs
from .table import layout
from .watcher import Watcher

_NAME = "steady"
_SEED = 6
_EPOCHS = 200  # more than two minutes: long enough for all faults
_STOPPED_SECONDS = 20.0  # longer than a lease
_AWAY_SECONDS = 5.0
_HEADER = ("fault", "seconds until the job was resized again", "steps meanwhile")


@dataclass(frozen=True)
class Answer:
    """The result of a fault: the time of a resize requested when it struck, and the steps trained until it was done."""

    fault: str
    seconds: float
    steps: int

    def row(self) -> list[str]:
        return [self.fault, f"{self.seconds:.1f} s", str(self.steps)]


def _stop_leader(scene: Scene) -> None:
    """Its lease expires while it is stopped. When it continues it must not act as the leader."""
    kubectl = scene.stage.operator_kubectl
    name, before = leader(kubectl), lease_transitions(kubectl)
    container.signal(scene.stage, kubectl, name, "SIGSTOP")
    time.sleep(_STOPPED_SECONDS)
    container.signal(scene.stage, kubectl, name, "SIGCONT")
    after = lease_transitions(kubectl)
    if after != before + 1:
        raise StoryError(f"the lease changed hands {after - before} times while its holder did not run")


def _restart(process: str) -> Callable[[Scene], None]:
    return lambda scene: container.restart(scene.stage, process, _AWAY_SECONDS)


def _kill_kubelet(scene: Scene) -> None:
    """Kills the kubelet and the device plugin, which must register with the new kubelet."""
    for process, away in (("kubelet", _AWAY_SECONDS), ("pretend-gpus", 0.0)):
        # From inside the node: outside it another process wraps it.
        container.on_node(scene.stage, "node-1", "pkill", "-KILL", "-x", process)
        container.restart(scene.stage, f"node-1/{process}", away)


_FAULTS = (
    Fault(f"SIGSTOP of the operator's leader for {_STOPPED_SECONDS:.0f} s", _stop_leader),
    Fault("SIGKILL of the API server", _restart("kube-apiserver")),
    Fault("SIGKILL of etcd", _restart("etcd")),
    Fault("SIGKILL of a kubelet", _kill_kubelet),
)


def play(stage: Stage, screen: Screen) -> list[checks.Check]:
    stage.clear()
    job = with_epochs(stage.manifest("training-1"), _EPOCHS)
    job["metadata"]["name"] = _NAME
    job["spec"]["training"]["seed"] = _SEED
    with Watcher(ApiServer(stage.kubectl), [NAMESPACE], screen.show) as watcher:
        scene = Scene(_NAME, stage, screen, watcher)
        scene.apply(job)
        scene.wait("it trains on 8 GPUs", lambda each: each.trains_on(8) and bool(each.progress.step))
        answers = []
        for number, fault in enumerate(_FAULTS):
            answers.append(_suffer(scene, fault, learners=8 if number % 2 else 6))
        _lose_a_gpu(scene)
        end = scene.complete()
        worlds = watcher.worlds()
    screen.close_table()
    for line in layout(_HEADER, [each.row() for each in answers]):
        screen.say(line)
    (sha256,) = reference.parameter_hashes(stage.kubectl, [job])
    stood_still = [each.fault for each in answers if each.steps <= 0]
    return [
        checks.Check("the training continued through all faults", tuple(stood_still)),
        *checks.check_outcomes([checks.Outcome.of(end, sha256)]),
        *checks.check_worlds(worlds, GPUS_TOTAL),
    ]


def _suffer(scene: Scene, fault: Fault, learners: int) -> Answer:
    """Requests a resize, causes the fault at once, and waits until the resize is done nevertheless."""
    step, begin = scene.now().progress.step or 0, time.monotonic()
    scene.scale(learners)
    scene.say(fault.name)
    fault.strike(scene)
    after = scene.wait(f"it trains on {learners} GPUs", lambda each: each.trains_on(learners))
    return Answer(fault.name, time.monotonic() - begin, (after.progress.step or 0) - step)


def _lose_a_gpu(scene: Scene) -> None:
    """A pod that holds the GPU keeps it while it works. The GPU is not assigned again before it is healthy."""
    scene.say("a GPU of node-2 turns unhealthy")
    file = "/run/pretend-gpus-unhealthy"
    container.on_node(scene.stage, "node-2", "sh", "-c", f"echo gpu-1 > {file}")
    try:
        for wanted, gets in ((4, 4), (8, 7)):
            scene.scale(wanted)
            scene.wait(f"it trains on {gets} GPUs", lambda each, gets=gets: each.trains_on(gets))
    finally:
        container.on_node(scene.stage, "node-2", "rm", "-f", file)
    scene.wait("the GPU is well again, and it trains on 8", lambda each: each.trains_on(8))
