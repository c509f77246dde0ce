"""Signals to a container's first process from outside, to imitate the kernel or a machine that hangs. They need access
to the nodes, which only the local cluster has (Stage.dev)."""

import os
import subprocess
import time
from pathlib import Path

from .errors import StoryError
from .kubectl import Kubectl
from .stage import OPERATOR_NAMESPACE, Stage

_MAX_SECONDS = 60.0
_LOOK_SECONDS = 0.2


def signal(stage: Stage, kubectl: Kubectl, pod_name: str, name: str) -> None:
    pod = kubectl.json("get", "pod", pod_name)
    identity = pod["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    on_node(stage, pod["spec"]["nodeName"], "ctr", "-n", "k8s.io", "tasks", "kill", "--signal", name, identity)


def kill(stage: Stage, kubectl: Kubectl, pod_name: str) -> None:
    """Sends SIGKILL and returns when the kubelet has noticed: until then the pod's status is stale. Without access to
    the node, the pod is deleted instead."""
    if stage.dev is None:
        kubectl.run("delete", "pod", pod_name, "--force", "--grace-period=0")
        return

    def restarts() -> int | None:
        """The number of restarts; None while the container is not running."""
        (status,) = kubectl.json("get", "pod", pod_name)["status"]["containerStatuses"]
        return status["restartCount"] if "running" in status["state"] else None

    before = restarts()
    signal(stage, kubectl, pod_name, "SIGKILL")
    deadline = time.monotonic() + _MAX_SECONDS
    while time.monotonic() < deadline:
        if restarts() != before:
            return
        time.sleep(_LOOK_SECONDS)
    raise StoryError(f"{pod_name} was killed, but its pod's status does not show it")


def on_node(stage: Stage, node: str, *command: str) -> str:
    """Runs the command inside the node and returns its output."""
    if stage.dev is None:
        raise StoryError(f"only the local cluster gives access to {node}")
    return _dev(stage, "node-exec", node, *command)


def take_away(stage: Stage, node: str) -> None:
    """Ends everything that runs on the node at once."""
    _dev(stage, "node-down", node)


def bring_back(stage: Stage, node: str) -> None:
    _dev(stage, "node-up", node)


def restart(stage: Stage, process: str, away_seconds: float) -> None:
    """Kills a process of the cluster, by its name in `./dev status`, and starts it again."""
    _dev(stage, "restart", process, "--after", str(away_seconds))


def install_operator(stage: Stage, commit: str = "") -> None:
    """Installs the operator by its chart, of this tree or of a commit."""
    _dev(stage, "up", *(["--commit", commit] if commit else []))


def upgrade_operator(stage: Stage, value: str) -> None:
    """Sets a value of the operator's chart ("NAME=VALUE")."""
    chart = str(Path(__file__).resolve().parents[3] / "helm" / "pliant")
    command = ["helm", "upgrade", "pliant", chart, "--namespace", OPERATOR_NAMESPACE, "--reuse-values", "--set", value]
    _dev(stage, *command, "--wait")


def _dev(stage: Stage, *command: str) -> str:
    # The story itself runs under a ./dev that holds the lock.
    environment = {**os.environ, "PLIANT_DEV_LOCK_IS_HELD": "1"}
    result = subprocess.run([stage.dev, *command], capture_output=True, text=True, check=False, env=environment)
    if result.returncode != 0:
        raise StoryError(f"./dev {' '.join(command)}: {result.stderr.strip()}")
    return result.stdout
