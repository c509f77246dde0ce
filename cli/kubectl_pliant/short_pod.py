"""A pod of this program's own that lives for one command: without a token, not as root, deleted at the end."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from .errors import CommandError
from .fields import Fields
from .kubectl import Kubectl
from .processes import undisturbed
from .text import harmless

MAX_SECONDS = 600  # the kubelet ends the pod then, even if this program was killed
_SECONDS_TO_START = 120.0
_PERIOD_SECONDS = 1.0
CONTAINER = "command"


@dataclass(frozen=True)
class PodWish:
    """What differs between these pods."""

    purpose: str  # part of its name
    image: str
    memory: str  # limit
    pull_secrets: tuple[str, ...] = ()
    user: int | None = None  # None: that of the image
    groups: tuple[int, ...] = ()
    volumes: tuple[dict[str, object], ...] = ()  # mounted read-only, at `mount_path`
    mount_path: str = ""


def manifest(wish: PodWish, name: str) -> dict[str, object]:
    """The pod, within the Pod Security Standard `restricted`. It sleeps, and kubectl exec runs commands in it."""
    pod_security: dict[str, object] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    if wish.user is not None:
        pod_security.update(runAsUser=wish.user, runAsGroup=wish.user)
    if wish.groups:
        pod_security["supplementalGroups"] = list(wish.groups)
    mounts = [{"name": each["name"], "mountPath": wish.mount_path, "readOnly": True} for each in wish.volumes]
    container = {
        "name": CONTAINER,
        "image": wish.image,
        "command": ["sleep", str(MAX_SECONDS)],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "resources": {
            "requests": {"cpu": "100m", "memory": "64Mi"},
            "limits": {"cpu": "1", "memory": wish.memory},
        },
        "volumeMounts": mounts,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        # No owner: the chart's policy lets only the operator make pods that a job owns.
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "kubectl-pliant"}},
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": MAX_SECONDS,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "imagePullSecrets": [{"name": each} for each in wish.pull_secrets],
            "securityContext": pod_security,
            "containers": [container],
            "volumes": list(wish.volumes),
        },
    }


@contextmanager
def short_pod(kubectl: Kubectl, wish: PodWish, scope: Sequence[str]) -> Iterator[str]:
    """The name of the pod, which runs. It is deleted at the end, also after Ctrl-C."""
    name = f"pliant-{wish.purpose}-{secrets.token_hex(4)}"
    try:
        kubectl.call(["create", "--filename=-"], scope=scope, stdin=json.dumps(manifest(wish, name)).encode())
        _wait(kubectl, name, scope)
        yield name
    except BaseException:
        # The error that came first says more than one of the deletion, of which the deadline takes care.
        with suppress(CommandError):
            _delete(kubectl, name, scope)
        raise
    _delete(kubectl, name, scope)


def _delete(kubectl: Kubectl, name: str, scope: Sequence[str]) -> None:
    with undisturbed():  # a second Ctrl-C does not leave the pod behind
        kubectl.call(
            ["delete", "pod", name, "--ignore-not-found", "--wait=false", "--grace-period=0"],
            scope=scope, seconds=30,
        )  # fmt: skip


def _wait(kubectl: Kubectl, name: str, scope: Sequence[str]) -> None:
    deadline = time.monotonic() + _SECONDS_TO_START
    while True:
        status = Fields(kubectl.get("pods", name, scope=scope)).below("status")
        if any(each.below("state").has("running") for each in status.items("containerStatuses")):
            return
        if status.text("phase") in ("Succeeded", "Failed"):
            raise CommandError(f"the pod {name} has ended at once: {_cause(status)}")
        if time.monotonic() >= deadline:
            raise CommandError(f"the pod {name} has not started within {_SECONDS_TO_START:g} s: {_cause(status)}")
        time.sleep(_PERIOD_SECONDS)


def _cause(status: Fields) -> str:
    for container in status.items("containerStatuses"):
        for state in ("waiting", "terminated"):
            fields = container.below("state").below(state)
            if fields.text("reason"):
                return harmless(f"{fields.text('reason')}: {fields.text('message') or 'no message'}", 400)
    for condition in status.items("conditions"):
        if condition.text("status") == "False" and condition.text("message"):
            return harmless(condition.text("message") or "", 400)
    return harmless(status.text("message") or "Kubernetes gives no reason", 400)


def execute(
    kubectl: Kubectl, pod: str, command: Sequence[str], scope: Sequence[str], stdin: bytes | None = None
) -> bytes:
    """The standard output of a command in the pod."""
    interactive = [] if stdin is None else ["--stdin"]
    call = ["exec", pod, f"--container={CONTAINER}", *interactive, "--", *command]
    return kubectl.call(call, scope=scope, stdin=stdin, seconds=MAX_SECONDS)
