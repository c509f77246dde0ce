"""kubectl pliant whatif: what a change of queues, jobs or nodes would do to the present plan."""

from __future__ import annotations

from collections.abc import Sequence

from .errors import CommandError
from .fields import Fields
from .operator_pod import ask_leader, leader
from .short_pod import PodWish, execute, short_pod
from .text import harmless
from .world import World

_OPERATOR = "operator"  # its container
_MAX_LINE_CHARS = 4096


def wish_of(pod: object) -> PodWish:
    """A pod with the operator's image, in which pliant-simulate is."""
    spec = Fields(pod).below("spec")
    images = [each.text("image") for each in spec.items("containers") if each.text("name") == _OPERATOR]
    if not images or not images[0]:
        raise CommandError("the operator's pod has no container operator with an image: check the release")
    names = [each.text("name") for each in spec.items("imagePullSecrets")]
    return PodWish(purpose="what-if", image=images[0], memory="2Gi", pull_secrets=tuple(name for name in names if name))


def run(world: World, namespace: str, edits: Sequence[str], options: Sequence[str]) -> None:
    kubectl, scope = world.kubectl, [f"--namespace={namespace}"]
    snapshot = ask_leader(kubectl, namespace, "/debug/snapshot")
    wish = wish_of(kubectl.get("pods", leader(kubectl, namespace), scope=scope))
    command = ["pliant-simulate", "--snapshot=-", *(f"--set={edit}" for edit in edits), *options]
    with short_pod(kubectl, wish, scope) as pod:
        answer = execute(kubectl, pod, command, scope, snapshot)
    world.print(harmless(line, _MAX_LINE_CHARS) for line in answer.decode(errors="replace").splitlines())
