"""How quickly a story's trainings go: slowly, until what is waited for was seen, and then as quickly as the machine can
(docs/contracts.md §3, PLIANT_PACE_FILE). How quick the machine is decides nothing."""

import copy
import json
import time
from collections.abc import Mapping, Sequence

from .kubectl import Kubectl

MILLISECONDS = 60  # that a shard takes, where a story does not say otherwise

_VARIABLE = "PLIANT_PACE_FILE"
_CONFIG_MAP = "pace"  # of the demo's kustomization: a file for each training
_FOLDER = "/pace"


def paced(job: Mapping) -> dict:
    """The job with a file of its own that says how quickly it goes. Pure."""
    job = unpaced(job)
    pod = job["spec"]["template"]["spec"]
    (learner,) = pod["containers"]
    learner["env"].append({"name": _VARIABLE, "value": f"{_FOLDER}/{job['metadata']['name']}"})
    learner["volumeMounts"].append({"name": _CONFIG_MAP, "mountPath": _FOLDER, "readOnly": True})
    pod["volumes"].append({"name": _CONFIG_MAP, "configMap": {"name": _CONFIG_MAP}})
    return job


def unpaced(job: Mapping) -> dict:
    """The job as quick as the machine is. Pure."""
    job = copy.deepcopy(dict(job))
    pod = job["spec"]["template"]["spec"]
    (learner,) = pod["containers"]
    learner["env"] = _without(learner.get("env", ()), _VARIABLE)
    learner["volumeMounts"] = _without(learner["volumeMounts"], _CONFIG_MAP)
    pod["volumes"] = _without(pod["volumes"], _CONFIG_MAP)
    return job


def set_pace(kubectl: Kubectl, name: str, milliseconds: int) -> None:
    """Of a shard of the training whose learners are still to come."""
    patch = json.dumps({"data": {name: str(milliseconds)}})
    kubectl.run("patch", "configmap", _CONFIG_MAP, "--type=merge", "-p", patch)


def let_go(kubectl: Kubectl, name: str) -> None:
    """What was waited for was seen: from now on only the end is."""
    set_pace(kubectl, name, 0)
    # A kubelet looks at a volume again after a minute, or when something happens to the pod. One that goes meanwhile
    # needs not be told.
    pods = f"--selector=pliant.dev/job={name},pliant.dev/role=learner"
    kubectl.attempt("annotate", "pods", pods, "--overwrite", f"pace-set={time.time():.3f}")


def _without(named: Sequence[Mapping], name: str) -> list[Mapping]:
    return [each for each in named if each["name"] != name]
