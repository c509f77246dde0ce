"""The pace of a story's trainings: slow until the awaited states were seen, then as fast as the machine can
(docs/contracts.md §3, PLIANT_PACE_FILE). So the machine's speed does not affect the story."""

import copy
import json
import time
from collections.abc import Mapping, Sequence

from .kubectl import Kubectl

MILLISECONDS = 60  # duration of a shard, the default of all stories

_VARIABLE = "PLIANT_PACE_FILE"
_CONFIG_MAP = "pace"  # in the demo's kustomization, with a file for each training
_FOLDER = "/pace"


def paced(job: Mapping) -> dict:
    """The job with its own pace file. Pure."""
    job = unpaced(job)
    pod = job["spec"]["template"]["spec"]
    (learner,) = pod["containers"]
    learner["env"].append({"name": _VARIABLE, "value": f"{_FOLDER}/{job['metadata']['name']}"})
    learner["volumeMounts"].append({"name": _CONFIG_MAP, "mountPath": _FOLDER, "readOnly": True})
    pod["volumes"].append({"name": _CONFIG_MAP, "configMap": {"name": _CONFIG_MAP}})
    return job


def unpaced(job: Mapping) -> dict:
    """The job as fast as the machine can. Pure."""
    job = copy.deepcopy(dict(job))
    pod = job["spec"]["template"]["spec"]
    (learner,) = pod["containers"]
    learner["env"] = _without(learner.get("env", ()), _VARIABLE)
    learner["volumeMounts"] = _without(learner["volumeMounts"], _CONFIG_MAP)
    pod["volumes"] = _without(pod["volumes"], _CONFIG_MAP)
    return job


def set_pace(kubectl: Kubectl, name: str, milliseconds: int) -> None:
    """Sets the duration of a shard, for learners of the training that start later."""
    patch = json.dumps({"data": {name: str(milliseconds)}})
    kubectl.run("patch", "configmap", _CONFIG_MAP, "--type=merge", "-p", patch)


def let_go(kubectl: Kubectl, name: str) -> None:
    """Removes the pace: all awaited states were seen, and only the end is awaited."""
    set_pace(kubectl, name, 0)
    # A kubelet updates a volume about once a minute, or when the pod changes: the annotation changes it. It may fail
    # for a pod that is deleted meanwhile.
    pods = f"--selector=pliant.dev/job={name},pliant.dev/role=learner"
    kubectl.attempt("annotate", "pods", pods, "--overwrite", f"pace-set={time.time():.3f}")


def _without(named: Sequence[Mapping], name: str) -> list[Mapping]:
    return [each for each in named if each["name"] != name]
