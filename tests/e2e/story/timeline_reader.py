"""Reads the operator's timeline from each of its replicas, and has the page's scripts tell it."""

import contextlib
import http.client
import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

from . import operator_pod
from .errors import StoryError
from .kubectl import Kubectl
from .screen import Screen
from .stage import NAMESPACE, Stage
from .timeline import Recorded
from .timeline_checks import Lane, lane_problems, lanes_of_kubectl, lanes_of_page

PORT = 6061
_ANSWER_SECONDS = 60.0
_FORWARDING = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) -> ")
_READY = "--timeout=120s"
# Jobs change while they are compared. A difference that stays for this time is a fault.
_SAME_SECONDS = 20.0
_TELL = "tests/e2e/page/tell.js"


class TimelineReader:
    """Keeps all documents that it reads, from one time on."""

    def __init__(self, stage: Stage, screen: Screen) -> None:
        self._stage = stage
        self._screen = screen
        self._begin = time.time()
        self.documents: list[Mapping] = []
        self.kills: dict[str, float] = {}  # when replicas were killed, by name

    def read_all(self) -> None:
        """Reads every replica."""
        kubectl = self._stage.operator_kubectl
        kubectl.run("wait", "pods", "--selector=app.kubernetes.io/name=pliant", "--for=condition=Ready", _READY)
        for pod in kubectl.json("get", "pods", "--selector=app.kubernetes.io/name=pliant")["items"]:
            self.documents.append(read(kubectl, pod["metadata"]["name"], self._begin))

    def kill_leader(self) -> str:
        """Kills the leader after all replicas were read."""
        self.read_all()
        pod = operator_pod.leader(self._stage.operator_kubectl)
        replica = next(each["replica"] for each in reversed(self.documents) if each["replica"].startswith(f"{pod}_"))
        self.kills[replica] = time.time()
        return operator_pod.kill_leader(self._stage)

    def compare_lanes(self, states: set[str]) -> list[str]:
        """What the page shows of the jobs and what kubectl shows, until they are the same. `states`: those in which there
        must be a job, in the page's words."""
        deadline = time.monotonic() + _SAME_SECONDS
        while True:
            table = self._stage.kubectl.run("get", "elastictrainingjobs", "-o", "wide")
            pod = operator_pod.leader(self._stage.operator_kubectl)
            (told,) = tell(self._stage, [read(self._stage.operator_kubectl, pod)])
            page = _of_namespace(lanes_of_page(told))
            problems = lane_problems(page, lanes_of_kubectl(table, NAMESPACE))
            missing = states - {each["state"] for each in told["lanes"]}
            problems += [f"the page shows no job that is {state}" for state in sorted(missing)]
            if not problems:
                self._screen.say(f"   the page tells the same of {len(page)} jobs as kubectl get", "green")
                return []
            if time.monotonic() > deadline:
                return problems

    def recorded(self) -> list[Recorded]:
        return [Recorded.parse(each) for each in self.documents]

    def told(self) -> list[Mapping]:
        return tell(self._stage, self.documents)


def _of_namespace(lanes: Mapping[str, Lane]) -> dict[str, Lane]:
    return {name: lane for name, lane in lanes.items() if name.startswith(f"{NAMESPACE}/")}


def read(kubectl: Kubectl, pod: str, begin: float | None = None) -> Mapping:
    """The timeline of one replica from a time on; None: from its own present time on."""
    path = "/timeline" if begin is None else f"/timeline?from={int(begin * 1000)}"
    with forwarded(kubectl, pod, PORT) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_SECONDS)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != http.HTTPStatus.OK:
                raise StoryError(f"the timeline of {pod} answers {answer.status}: {body[:200]!r}")
            return json.loads(body)
        except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
            raise StoryError(f"the timeline of {pod}: {error}") from error
        finally:
            connection.close()


@contextlib.contextmanager
def forwarded(kubectl: Kubectl, pod: str, port: int) -> Iterator[int]:
    """A port of this machine that leads to the pod's."""
    process = kubectl.start("port-forward", f"pod/{pod}", f":{port}", "--address=127.0.0.1")
    silent = threading.Timer(_ANSWER_SECONDS, process.kill)
    silent.start()
    try:
        line = process.stdout.readline() if process.stdout else ""
        match = _FORWARDING.match(line)
        if match is None:
            raise StoryError(f"kubectl port-forward to {pod} says {line.strip() or 'nothing'}")
        silent.cancel()
        yield int(match[1])
    finally:
        silent.cancel()
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def tell(stage: Stage, documents: Sequence[Mapping]) -> list[Mapping]:
    """What the page shows of each document, by its scripts under the Node.js of the build image."""
    if stage.dev is None:
        raise StoryError("the page's scripts run in the build image, which only ./dev has")
    result = subprocess.run(
        [stage.dev, "shell", "node", _TELL], input=json.dumps(documents), capture_output=True, text=True, check=False,
        env={**os.environ, "PLIANT_DEV_LOCK_IS_HELD": "1"},
    )  # fmt: skip
    if result.returncode != 0:
        raise StoryError(f"{_TELL}: {result.stderr.strip()[-1000:]}")
    return json.loads(result.stdout)
