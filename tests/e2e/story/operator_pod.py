"""Finds the operator's leading replica, and kills it."""

from collections.abc import Mapping

from . import container
from .errors import StoryError
from .kubectl import Kubectl
from .stage import Stage


def leader_name(leases: Mapping, pods: Mapping) -> str:
    """The pod whose name is the beginning of the lease's holder."""
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
    """The number of times that the lease has changed hands."""
    return sum(lease["spec"].get("leaseTransitions", 0) for lease in kubectl.json("get", "leases")["items"])


def kill_leader(stage: Stage) -> str:
    """Kills the leader and returns its name."""
    kubectl = stage.operator_kubectl
    name = leader(kubectl)
    container.kill(stage, kubectl, name)
    return name
