"""The operator's leading replica, and its sudden end."""

import time
from collections.abc import Mapping

from .container import signal
from .errors import StoryError
from .stage import Stage

_SECONDS_MOST = 60.0
_LOOK_SECONDS = 0.5


def leader_name(leases: Mapping, pods: Mapping) -> str:
    """The pod whose name the lease's holder begins with."""
    holders = [lease["spec"].get("holderIdentity", "") for lease in leases["items"]]
    for pod in pods["items"]:
        name = pod["metadata"]["name"]
        if any(holder.startswith(name) for holder in holders):
            return name
    raise StoryError(f"no pod of the operator holds its lease; the holders are {holders}")


def kill_leader(stage: Stage) -> str:
    """SIGKILL to the leader's process, from outside of its container. Returns its name when the kubelet saw it end."""
    kubectl = stage.operator_kubectl
    name = leader_name(
        kubectl.json("get", "leases"), kubectl.json("get", "pods", "-l", "app.kubernetes.io/name=pliant")
    )
    pod = kubectl.json("get", "pod", name)
    container = pod["status"]["containerStatuses"][0]
    before = container["restartCount"]
    if stage.dev is None:
        # Without hands on its node, the pod goes with it: a replica that is new takes its place.
        kubectl.run("delete", "pod", name, "--force", "--grace-period=0")
        return name
    signal(stage, kubectl, name, "SIGKILL")
    deadline = time.monotonic() + _SECONDS_MOST
    while time.monotonic() < deadline:
        (container,) = kubectl.json("get", "pod", name)["status"]["containerStatuses"]
        if container["restartCount"] > before or "terminated" in container["state"]:
            return name
        time.sleep(_LOOK_SECONDS)
    raise StoryError(f"the operator {name} was killed, but its pod shows no end of its container")
