"""The undisturbed run that a training is compared with: the same program with the same seed, alone in a plain pod."""

import json
import time
from collections.abc import Mapping, Sequence

from . import pace
from .errors import StoryError
from .kubectl import Kubectl

_MAX_SECONDS = 3600.0
_LOOK_SECONDS = 1.0

# By the pod that gave it, as JSON without its name: several moments train the same.
_known: dict[str, str] = {}
_running: dict[str, str] = {}  # of those that give it later, the names
_UNKNOWN_EXIT = 255  # the kubelet's exit code of a container that it found gone


def pod(job: Mapping) -> dict:
    """A pod that trains what the job trains, without a coordinator, as quickly as the machine can."""
    job = pace.unpaced(job)
    spec, training = job["spec"], job["spec"]["training"]
    template = spec["template"]["spec"]
    (container,) = template["containers"]
    environment = {
        # A folder of its own: otherwise it would resume from a checkpoint that it finds.
        "PLIANT_CHECKPOINT_DIR": "/checkpoints/reference-$(POD_UID)",
        "PLIANT_GLOBAL_BATCH_SIZE": str(training["globalBatchSize"]),
        "PLIANT_LOGICAL_SHARDS": str(training["logicalShards"]),
        "PLIANT_SEED": str(training["seed"]),
        # Without a job it writes a termination message only where this says.
        "PLIANT_TERMINATION_LOG": "/dev/termination-log",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"reference-{job['metadata']['name']}"},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "volumes": [*template["volumes"], {"name": "checkpoints", **spec["checkpoint"]["volume"]}],
            "containers": [
                {
                    **container,
                    "env": [
                        *container["env"],
                        {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
                        *({"name": name, "value": value} for name, value in environment.items()),
                    ],
                    "volumeMounts": [
                        *container["volumeMounts"],
                        {"name": "checkpoints", "mountPath": "/checkpoints"},
                    ],
                }
            ],
        },
    }


def begin(kubectl: Kubectl, jobs: Sequence[Mapping]) -> None:
    """Starts the references of the jobs, all at once. What ran before, or runs, is not run again."""
    new = [each for each in map(pod, jobs) if _program(each) not in _known | _running]
    names = [each["metadata"]["name"] for each in new]
    if new:
        kubectl.run("delete", "pods", *names, "--ignore-not-found", "--wait")
        for each, name in zip(new, names, strict=True):
            kubectl.apply(each)
            _running[_program(each)] = name


def forget() -> None:
    """The pods of those that run were deleted."""
    _running.clear()


def parameter_hashes(kubectl: Kubectl, jobs: Sequence[Mapping]) -> list[str]:
    """Waits for the references of the jobs, begins those that nobody has begun, and removes their pods."""
    begin(kubectl, jobs)
    programs = [_program(pod(job)) for job in jobs]
    for job, program in zip(jobs, programs, strict=True):
        if program not in _known:
            name = _running[program]
            status = _await_end(kubectl, name)
            if was_lost(status):  # a moment took its node away: nothing of it depends on where it runs
                del _running[program]
                begin(kubectl, [job])
                status = _await_end(kubectl, name)
            _known[program] = hash_of(name, status)
            kubectl.run("delete", "pod", name, "--wait=false")
            del _running[program]
    return [_known[program] for program in programs]


def _program(pod: Mapping) -> str:
    return json.dumps(pod["spec"], sort_keys=True)


def _await_end(kubectl: Kubectl, name: str) -> Mapping:
    deadline = time.monotonic() + _MAX_SECONDS
    while time.monotonic() < deadline:
        status = kubectl.json("get", "pod", name)["status"]
        if status.get("phase") in ("Succeeded", "Failed"):
            return status
        time.sleep(_LOOK_SECONDS)
    raise StoryError(f"the undisturbed run {name} took more than {_MAX_SECONDS:.0f} s")


def was_lost(status: Mapping) -> bool:
    """Whether the pod's container went with its node. Pure."""
    ended = [each["state"].get("terminated", {}) for each in status.get("containerStatuses", ())]
    return any(each.get("exitCode") == _UNKNOWN_EXIT and not each.get("message") for each in ended)


def hash_of(name: str, status: Mapping) -> str:
    """From the termination message of the pod's container."""
    terminated = status["containerStatuses"][0]["state"].get("terminated", {})
    text = terminated.get("message", "")
    try:
        message = json.loads(text)
    except json.JSONDecodeError:
        message = {}
    if message.get("reason") != "Completed":
        raise StoryError(f"the undisturbed run {name} ended with exit code {terminated.get('exitCode')}: {text}")
    return message["parametersSha256"]
