"""The operator's pods, and requests to their loopback ports by kubectl port-forward."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .errors import CommandError, NotFoundError
from .fields import Fields
from .kubectl import Kubectl
from .names import object_name
from .processes import stop
from .server_errors import error_of
from .text import harmless

DEBUG_PORT = 6060
PAGE_PORT = 6061
LEASE = "pliant-operator"
_FORWARDING = re.compile(rb"Forwarding from 127\.0\.0\.1:(\d{1,5}) -> \d+\s*")
_NO_PLAN = "nothing was planned yet"  # while the Lease still names a replica that has restarted
_SECONDS_TO_FORWARD = 20.0
_SECONDS_TO_ANSWER = 60.0
_MAX_ANSWER_BYTES = 1 << 28  # of a snapshot


def leader(kubectl: Kubectl, namespace: str) -> str:
    """The pod of the operator that plans: the holder of the Lease."""
    try:
        lease = kubectl.get("leases.coordination.k8s.io", LEASE, scope=[f"--namespace={namespace}"])
    except NotFoundError:
        raise NotFoundError(
            f"there is no Lease {LEASE} in namespace {namespace}: name the namespace of the operator with "
            "--operator-namespace"
        ) from None
    holder = Fields(lease).below("spec").text("holderIdentity") or ""
    pod = holder.rpartition("_")[0] or holder
    if not pod:
        raise CommandError("the operator has no leader now: try again in 15 s, or look at its pods")
    return object_name(pod, "the Lease's holder")


@contextmanager
def forwarded(kubectl: Kubectl, namespace: str, pod: str, port: int) -> Iterator[int]:
    """The port of this machine's loopback that leads to the pod's."""
    process = kubectl.start(
        ["port-forward", f"pod/{pod}", f":{port}", "--address=127.0.0.1"], scope=[f"--namespace={namespace}"]
    )
    try:
        yield _port_of(process)
    finally:
        stop(process)


def _port_of(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None and process.stderr is not None
    silent = threading.Timer(_SECONDS_TO_FORWARD, process.kill)
    silent.start()
    try:
        line = process.stdout.readline(1 << 12)
    finally:
        silent.cancel()
    match = _FORWARDING.fullmatch(line)
    if match and int(match[1]) < 1 << 16:
        # The pipes must not fill with what it says later.
        for stream in (process.stdout, process.stderr):
            threading.Thread(target=_discard, args=(stream,), daemon=True).start()
        return int(match[1])
    stop(process)
    said = process.stderr.read(1 << 16).decode(errors="replace")
    if not said:
        raise CommandError(f"kubectl port-forward has not answered for {_SECONDS_TO_FORWARD:g} s: check the network")
    raise error_of(said, process.returncode)


def _discard(stream: object) -> None:
    try:
        while stream.read1(1 << 16):  # type: ignore[attr-defined]
            pass
    except (OSError, ValueError):
        pass  # the process was stopped


def fetch(port: int, path: str) -> bytes:
    """GET over loopback, without a proxy."""
    import http.client  # here, because it takes a third of the time in which other commands start

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS_TO_ANSWER)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read(_MAX_ANSWER_BYTES + 1)
    except (OSError, http.client.HTTPException) as error:
        raise CommandError(f"the operator's pod does not answer: {harmless(str(error), 200)}; try again") from None
    finally:
        connection.close()
    if len(body) > _MAX_ANSWER_BYTES:
        raise CommandError(f"the operator's answer has more than {_MAX_ANSWER_BYTES >> 20} MiB")
    if answer.status != 200:
        raise _refusal(answer.status, body)
    return body


def _refusal(status: int, body: bytes) -> CommandError:
    said = body[:2000].decode(errors="replace")
    try:
        said = Fields(json.loads(said)).text("error") or said
    except (ValueError, RecursionError):
        pass  # it is a sentence
    said = harmless(" ".join(said.split()))
    if status == 404 and said.startswith(_NO_PLAN):
        return CommandError("the operator has made no plan since its leader changed: try again in 15 s")
    kind = NotFoundError if status == 404 else CommandError
    return kind(f"the operator answers {status}: {said or 'without a sentence'}")


def ask_leader(kubectl: Kubectl, namespace: str, path: str) -> bytes:
    with forwarded(kubectl, namespace, leader(kubectl, namespace), DEBUG_PORT) as port:
        return fetch(port, path)
