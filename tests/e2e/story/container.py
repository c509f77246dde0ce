"""Signals to a container's first process, from outside of it: as the kernel, or a machine that hangs, would. They need
hands on the nodes, which only the local cluster gives (Stage.dev)."""

import os
import subprocess
import time

from .errors import StoryError
from .kubectl import Kubectl
from .stage import Stage

_MAX_SECONDS = 60.0
_LOOK_SECONDS = 0.2


def signal(stage: Stage, kubectl: Kubectl, pod_name: str, name: str) -> None:
    pod = kubectl.json("get", "pod", pod_name)
    identity = pod["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    on_node(stage, pod["spec"]["nodeName"], "ctr", "-n", "k8s.io", "tasks", "kill", "--signal", name, identity)


def kill(stage: Stage, kubectl: Kubectl, pod_name: str) -> None:
    """SIGKILL. Returns when the kubelet has seen it: until then the pod's status is that of the dead process. Without
    hands on its node, the pod goes with it."""
    if stage.dev is None:
        kubectl.run("delete", "pod", pod_name, "--force", "--grace-period=0")
        return

    def restarts() -> int | None:
        """Nothing while the container is not running."""
        (status,) = kubectl.json("get", "pod", pod_name)["status"]["containerStatuses"]
        return status["restartCount"] if "running" in status["state"] else None

    before = restarts()
    signal(stage, kubectl, pod_name, "SIGKILL")
    deadline = time.monotonic() + _MAX_SECONDS
    while time.monotonic() < deadline:
        if restarts() != before:
            return
        time.sleep(_LOOK_SECONDS)
    raise StoryError(f"{pod_name} was killed, but its pod shows no end of its container")


def on_node(stage: Stage, node: str, *command: str) -> str:
    """What the command, run inside the node, writes."""
    if stage.dev is None:
        raise StoryError(f"only the local cluster lets anybody into {node}")
    return _dev(stage, "node-exec", node, *command)


def take_away(stage: Stage, node: str) -> None:
    """Everything that runs on the node ends at once."""
    _dev(stage, "node-down", node)


def bring_back(stage: Stage, node: str) -> None:
    _dev(stage, "node-up", node)


def restart(stage: Stage, process: str, away_seconds: float) -> None:
    """Kills a process of the cluster, by its name in `./dev status`, and starts it again."""
    _dev(stage, "restart", process, "--after", str(away_seconds))


def install_operator(stage: Stage, commit: str = "") -> None:
    """By its chart: the present one, or that of a commit."""
    _dev(stage, "up", *(["--commit", commit] if commit else []))


def _dev(stage: Stage, *command: str) -> str:
    # The story is itself run by a ./dev, which holds the lock.
    environment = {**os.environ, "PLIANT_DEV_LOCK_IS_HELD": "1"}
    result = subprocess.run([stage.dev, *command], capture_output=True, text=True, check=False, env=environment)
    if result.returncode != 0:
        raise StoryError(f"./dev {' '.join(command)}: {result.stderr.strip()}")
    return result.stdout
