"""Says in one sentence what kubectl's standard error means, with the remedy. No I/O."""

from __future__ import annotations

import re

from .errors import FAILED, WRONG_USE, CommandError, ForbiddenError, NotFoundError
from .text import harmless

_MAX_CHARS = 600
_FORBIDDEN = re.compile(
    r'cannot (\w+) resource "([\w./-]+)"'
    r'(?: in API group "([\w.-]*)")?(?: in the namespace "([\w.-]+)"| (at the cluster scope))?'
)
_NOT_FOUND = re.compile(r'([\w.-]+) "([^"]*)" not found')
_NO_TYPE = re.compile(r'doesn\'t have a resource type "([\w.-]+)"')
_COMMAND_ENDED = re.compile(r"command terminated with exit code (\d{1,3})\s*\Z")  # of kubectl exec
_LOG_LINE = re.compile(r"^[EWIF]\d{4} ")  # client-go's own log, before kubectl's sentence
_KINDS = {
    "elastictrainingjobs": "job",
    "trainingqueues": "queue",
    "gpupools": "pool",
    "pods": "pod",
    "leases": "lease",
    "namespaces": "namespace",
}


def error_of(stderr: str, code: int) -> CommandError:
    text = "\n".join(line for line in stderr.splitlines() if not _LOG_LINE.match(line)).strip()
    if match := _COMMAND_ENDED.search(text):
        said = _short(text[: match.start()]) or f"the command in the pod ended with exit code {match[1]}"
        return CommandError(said, WRONG_USE if match[1] == "2" else FAILED)
    if "(Forbidden)" in text or "is forbidden: User" in text:
        return ForbiddenError(_forbidden(text))
    if match := _NO_TYPE.search(text):
        return CommandError(
            f"this cluster has no Pliant, or an old one: the resource {match[1]} is not installed; install the chart, "
            "or name another --context"
        )
    if "could not find the requested resource" in text:
        return CommandError("this cluster has no Pliant, or an old one: install the chart, or name another --context")
    if "(NotFound)" in text and (match := _NOT_FOUND.search(text)):
        kind = _KINDS.get(match[1].partition(".")[0], match[1])
        where = "" if kind in ("queue", "pool") else "; look for it with: kubectl pliant list -A"
        return NotFoundError(f"there is no {kind} {harmless(match[2], 253)}{where}")
    if "(Conflict)" in text:
        return CommandError("somebody else changed the object at the same time: run it again")
    if " is invalid: " in text or "(Invalid)" in text or "(BadRequest)" in text:
        return CommandError(f"the API server refuses it: {_short(text)}", WRONG_USE)
    if "(Unauthorized)" in text or "must be logged in" in text:
        return CommandError("the API server does not accept your credentials: log in again")
    if "was refused" in text or "Unable to connect to the server" in text or "no such host" in text:
        return CommandError(f"the API server cannot be reached: {_short(text)}; check --context and the network")
    if "context was not found" in text or "does not exist" in text and "context" in text:
        return CommandError(f"{_short(text)}; list them with: kubectl config get-contexts", WRONG_USE)
    said = _short(text) or f"it said nothing, and its exit code is {code}"
    return CommandError(f"kubectl failed: {said}", FAILED)


def _short(text: str) -> str:
    return harmless(" ".join(text.split()), _MAX_CHARS).rstrip(".")


def _forbidden(text: str) -> str:
    match = _FORBIDDEN.search(text)
    if not match:
        return f"forbidden: {_short(text)}"
    verb, resource, group, namespace, cluster = match.groups()
    where = f" in namespace {namespace}" if namespace else " in the whole cluster" if cluster else ""
    named = f"{resource}.{group}" if group else resource
    remedy = "for a role with this verb" + ("" if namespace else ", or name a namespace with -n")
    if resource in ("trainingqueues", "gpupools"):
        remedy = "to bind ClusterRole pliant-queue-viewer to you"
    return f"forbidden: you may not {verb} {named}{where}; ask an administrator {remedy}"
