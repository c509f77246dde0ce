"""Jobs are created, changed and deleted at random for a while. At the end the operator has no more memory and open
files than after the first jobs, within bounds."""

import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from . import checks, container
from .api_server import ApiServer
from .operator_pod import leader
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, Stage, with_epochs
from .table import layout
from .watcher import Watcher
from .world import World

_SEED = 8
_MAX_JOBS = 5
_MAX_EPOCHS = 12
_PAUSE_SECONDS = 1.5  # between two changes
_LOOKS = 6  # measurements of the operator, the first when it is warm
_WARM_SHARE = 0.2  # share of the time to warm up: libraries and caches fill
_GROWTH_MIB = 8.0
_DESCRIPTORS_MORE = 8
_QUIET_SECONDS = 180.0  # time until nothing is left
_HEADER = ("after", "memory", "descriptors", "jobs so far")


@dataclass(frozen=True)
class Look:
    """A measurement of the leading operator."""

    seconds: float
    pod: str
    mib: float
    descriptors: int
    jobs: int

    def row(self) -> list[str]:
        return [f"{self.seconds:.0f} s", f"{self.mib:.1f} MiB", str(self.descriptors), str(self.jobs)]


def problems(looks: Sequence[Look]) -> list[str]:
    """Growth between the first and the last measurement that exceeds its bound."""
    first, last = looks[0], looks[-1]
    if first.pod != last.pod:
        return [f"{first.pod} led first, {last.pod} last"]
    found = []
    if last.mib > first.mib + _GROWTH_MIB:
        found.append(f"from {first.mib:.1f} to {last.mib:.1f} MiB")
    if last.descriptors > first.descriptors + _DESCRIPTORS_MORE:
        found.append(f"from {first.descriptors} to {last.descriptors} descriptors")
    return found


@dataclass
class Crowd:
    """Random changes of jobs."""

    stage: Stage
    chance: random.Random
    made: int = 0
    done: Counter = field(default_factory=Counter)

    def stir(self, world: World | None) -> None:
        """Makes one random change."""
        running = sorted(name for name, each in world.trainings.items() if not each.job.finished) if world else []
        ended = sorted(name for name, each in world.trainings.items() if each.job.finished) if world else []
        if ended:
            self._delete("delete a job that ended", ended)
        elif len(running) < 2 or (len(running) < _MAX_JOBS and self.chance.random() < 0.5):
            self._make()
        else:
            change = self.chance.choice((self._scale, self._prefer, self._suspend, self._resume, self._remove_pod))
            change(self.chance.choice(running))
            if self.chance.random() < 0.1:
                self._delete("delete a job", running[:1])

    def _make(self) -> None:
        self.made += 1
        job = with_epochs(self.stage.manifest("training-1"), self.chance.randint(1, _MAX_EPOCHS))
        job["metadata"]["name"] = f"churn-{self.made}"
        job["spec"]["elastic"]["maxLearners"] = self.chance.randint(1, 4)
        job["spec"]["resize"] = {"gracePeriodSeconds": 10, "cooldownSeconds": 0}
        self.done["make"] += 1
        self.stage.kubectl.apply(job)

    def _delete(self, what: str, names: Sequence[str]) -> None:
        self._do(what, "delete", "elastictrainingjobs", *names, "--wait=false")

    def _scale(self, name: str) -> None:
        self._do("scale", "scale", "elastictrainingjob", name, f"--replicas={self.chance.randint(1, 8)}")

    def _prefer(self, name: str) -> None:
        self._patch("priority", name, f'{{"spec":{{"priority":{self.chance.randint(1, 10000)}}}}}')

    def _suspend(self, name: str) -> None:
        self._patch("suspend", name, '{"spec":{"suspend":true}}')

    def _resume(self, name: str) -> None:
        self._patch("resume", name, '{"spec":{"suspend":false}}')

    def _remove_pod(self, name: str) -> None:
        pods = self.stage.kubectl.json("get", "pods", "-l", f"pliant.dev/job={name}")["items"]
        if pods:
            pod: Mapping = self.chance.choice(pods)
            self._do("delete a pod", "delete", "pod", pod["metadata"]["name"], "--wait=false")

    def _patch(self, what: str, name: str, patch: str) -> None:
        self._do(what, "patch", "elastictrainingjob", name, "--type=merge", "-p", patch)

    def _do(self, what: str, *arguments: str) -> None:
        # The object may have been deleted meanwhile.
        self.done[what] += self.stage.kubectl.attempt(*arguments).returncode == 0


def play(stage: Stage, screen: Screen, minutes: float) -> list[checks.Check]:
    stage.clear()
    crowd = Crowd(stage, random.Random(_SEED))
    seconds = 60.0 * minutes
    looks: list[Look] = []
    with Watcher(ApiServer(stage.kubectl), [NAMESPACE], lambda world: None) as watcher:
        begin = time.monotonic()
        due = [seconds * (_WARM_SHARE + (1 - _WARM_SHARE) * number / (_LOOKS - 1)) for number in range(_LOOKS)]
        while due:
            worlds = watcher.worlds()
            crowd.stir(worlds[-1] if worlds else None)
            time.sleep(_PAUSE_SECONDS)
            if time.monotonic() - begin >= due[0]:
                due.pop(0)
                looks.append(_look(stage, time.monotonic() - begin, crowd.made))
                screen.say(", ".join(looks[-1].row()))
        stage.kubectl.run("delete", "elastictrainingjobs", "--all", "--wait=false")
        watcher.wait("all jobs are gone", lambda world: not world.trainings, _QUIET_SECONDS, lambda world: None)
        pods = "-l=app.kubernetes.io/managed-by=pliant"
        stage.kubectl.run("wait", "pods", pods, "--for=delete", f"--timeout={_QUIET_SECONDS:.0f}s")
        looks.append(_look(stage, time.monotonic() - begin, crowd.made))
        worlds = watcher.worlds()
    for line in layout(_HEADER, [each.row() for each in looks]):
        screen.say(line)
    screen.say(", ".join(f"{what}: {count}" for what, count in sorted(crowd.done.items())))
    beyond, bounds, _ = checks.check_worlds(worlds, GPUS_TOTAL)
    return [
        checks.Check("the operator has not grown", tuple(problems(looks))),
        beyond,
        bounds,
    ]


def _look(stage: Stage, seconds: float, jobs: int) -> Look:
    pod = leader(stage.operator_kubectl)
    node = stage.operator_kubectl.json("get", "pod", pod)["spec"]["nodeName"]
    # On the node, the process of this pod has the pod's name in HOSTNAME.
    script = f"""
for process in $(pgrep -x pliant-operator); do
  grep -qz "^HOSTNAME={pod}$" /proc/$process/environ || continue
  awk '/^VmRSS/ {{print $2}}' /proc/$process/status
  ls /proc/$process/fd | wc -l
done"""
    kib, descriptors = container.on_node(stage, node, "sh", "-ec", script).split()
    return Look(seconds, pod, int(kib) / 1024, int(descriptors), jobs)
