"""The operator's leading replica, and its sudden end."""

from collections.abc import Mapping

from . import container
from .errors import StoryError
from .kubectl import Kubectl
from .stage import Stage


def leader_name(leases: Mapping, pods: Mapping) -> str:
    """The pod whose name the lease's holder begins with."""
    holders = [lease["spec"].get("holderIdentity", "") for lease in leases["items"]]
    for pod in pods["items"]:
        name = pod["metadata"]["name"]
        if any(holder.startswith(name) for holder in holders):
            return name
    raise StoryError(f"no pod of the operator holds its lease; the holders are {holders}")


def leader(kubectl: Kubectl) -> str:
    """The pod that leads now."""
    return leader_name(
        kubectl.json("get", "leases"), kubectl.json("get", "pods", "-l", "app.kubernetes.io/name=pliant")
    )


def lease_transitions(kubectl: Kubectl) -> int:
    """How often the lease has changed hands."""
    return sum(lease["spec"].get("leaseTransitions", 0) for lease in kubectl.json("get", "leases")["items"])


def kill_leader(stage: Stage) -> str:
    """Its sudden end. Returns its name."""
    kubectl = stage.operator_kubectl
    name = leader(kubectl)
    container.kill(stage, kubectl, name)
    return name
