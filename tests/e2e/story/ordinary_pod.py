"""Pods of other workloads, which ask for GPUs that trainings hold. Measures the time from a pod's creation until it
runs."""

import json
import time
from collections.abc import Mapping

from .screen import Screen
from .stage import NAMESPACE, Stage
from .waiting import wait

# The end of the learners' step, of their containers, and the start of the pod on this machine.
MAX_SECONDS = 30.0
_LOOK_SECONDS = 0.1


def _manifest(name: str, image: str, gpus: int) -> dict:
    """A pod of the cluster's default priority."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": image,
                    "command": ["/usr/bin/sleep", "infinity"],
                    "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
                }
            ],
        },
    }


def create(stage: Stage, name: str, gpus: int = 1) -> None:
    manifest = json.dumps(_manifest(name, stage.learner_image, gpus))
    stage.kubectl.run("create", "-f", "-", stdin=manifest)


def runs(stage: Stage, name: str) -> bool:
    return stage.kubectl.json("get", "pod", name).get("status", {}).get("phase") == "Running"


def wait_until_it_runs(stage: Stage, screen: Screen, name: str) -> None:
    wait(stage.kubectl, screen, f"{name} runs", lambda: runs(stage, name), 120, _LOOK_SECONDS)


def start(stage: Stage, screen: Screen, name: str, gpus: int = 1) -> float:
    """Creates a pod. Returns the seconds until it runs."""
    begin = time.monotonic()
    create(stage, name, gpus)
    wait_until_it_runs(stage, screen, name)
    seconds = time.monotonic() - begin
    screen.say(f"   {seconds:.1f} s after its creation")
    return seconds


def late(seconds: Mapping[str, float]) -> tuple[str, ...]:
    are_late = {name: each for name, each in seconds.items() if each > MAX_SECONDS}
    return tuple(f"{name} took {each:.1f} s, more than {MAX_SECONDS:.0f}" for name, each in are_late.items())
