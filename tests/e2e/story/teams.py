"""Two teams share the cluster, each with a guarantee and a namespace of its own: what one does not use, the other
borrows until it is needed."""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import dashboards, maintenance, reference
from .api_server import ApiServer
from .checks import Check
from .resizes import Request
from .scene import Scene
from .screen import Screen
from .stage import GPUS_TOTAL, TEAM_LABEL, Stage, with_epochs
from .told import Told
from .waiting import wait
from .watcher import Watcher
from .world import World

# Queues, and the namespaces that may use them.
_A, _B = "team-a", "team-b"
_GUARANTEED = GPUS_TOTAL // 2
# One round of the operator, one step of 32 paced shards on eight learners, and the start of pods on this machine.
_MAX_RETURN_SECONDS = 30.0
_STATUS_SECONDS = 90.0
# With their epochs. The first training must outlast the second, to borrow twice.
_TRAININGS = ((_A, "training-1", 75), (_B, "training-2", 30))
_SHARD_MILLISECONDS = 100
_LENT = {_A: {"allocated": GPUS_TOTAL, "borrowed": _GUARANTEED}, _B: {"allocated": 0, "lent": _GUARANTEED}}
_BACK = {team: {"allocated": _GUARANTEED, "borrowed": 0, "lent": 0} for team in (_A, _B)}


@dataclass(frozen=True)
class Return:
    """The time in which the loan came back, from the owner's `kubectl apply`."""

    shrunk_seconds: float  # until the borrower trained on the rest
    trained_seconds: float  # until the owner trained on its GPUs

    def problems(self) -> tuple[str, ...]:
        if self.shrunk_seconds <= _MAX_RETURN_SECONDS:
            return ()
        return (f"it took {self.shrunk_seconds:.1f} s, more than {_MAX_RETURN_SECONDS:.0f}",)


def play(stage: Stage, screen: Screen) -> Told:
    screen.say("removing what an earlier story has left")
    stage.clear()
    stages = {team: dataclasses.replace(stage, kubectl=stage.set_up(team)) for team in (_A, _B)}
    screen.say(f"the administrator makes queues {_A} and {_B}, which are guaranteed {_GUARANTEED} GPUs each", "bold")
    for team in stages:
        stage.kubectl.run("label", "namespace", team, f"{TEAM_LABEL}={team}")
        stage.kubectl.apply(queue(team))
    jobs = {team: member(stage.manifest(training), team, epochs) for team, training, epochs in _TRAININGS}
    with Watcher(ApiServer(stage.kubectl), list(stages), screen.show) as watcher:
        scenes = {
            team: Scene(job["metadata"]["name"], stages[team], screen, watcher) for team, job in jobs.items()
        }
        plot = _Plot(stage, screen, scenes, jobs)
        plot.first_borrows()
        back = plot.second_takes_back()
        plot.first_borrows_again()
        plot.first_ends()
    screen.close_table()
    statuses = {
        scene.name: scene.stage.kubectl.json("get", "elastictrainingjob", scene.name)["status"]
        for scene in scenes.values()
    }
    screen.say("both are trained once more, undisturbed, with one learner each and the same seeds")
    hashes = {
        scene.name: reference.parameter_hashes(scene.stage.kubectl, [jobs[team]])[0] for team, scene in scenes.items()
    }
    worlds = watcher.worlds()
    own_checks = [
        *plot.checks,
        Check(f"the loan was back within {_MAX_RETURN_SECONDS:.0f} s", back.problems()),
        Check("it came back by shrinking: no training was stopped, no learner failed", interruptions(worlds, statuses)),
    ]
    return Told.of(tuple(hashes), worlds, plot.requests, watcher.resizes(), hashes, own_checks=own_checks)


def queue(team: str) -> dict:
    """A queue for the namespaces with the team's label."""
    return {
        "apiVersion": "pliant.dev/v1alpha1",
        "kind": "TrainingQueue",
        "metadata": {"name": team, "labels": {TEAM_LABEL: team}},
        "spec": {"namespaceSelector": {"matchLabels": {TEAM_LABEL: team}}, "guaranteed": _GUARANTEED},
    }


def member(job: Mapping, team: str, epochs: int) -> dict:
    """The job in the team's namespace and queue."""
    job = with_epochs(job, epochs)
    job["metadata"]["namespace"] = team
    job["spec"]["queue"] = team
    return job


class _Plot:
    def __init__(
        self, stage: Stage, screen: Screen, scenes: Mapping[str, Scene], jobs: Mapping[str, Mapping]
    ) -> None:
        self._stage = stage
        self._screen = screen
        self._a, self._b = scenes[_A], scenes[_B]
        self._scenes = scenes
        self._jobs = jobs
        self.requests: list[Request] = []
        self.checks: list[Check] = []

    def first_borrows(self) -> None:
        self._screen.say(f"1. {_A} submits {self._a.name}; {_B} uses nothing", "bold")
        self._apply(_A, "apply 1")
        self._trains(_A, GPUS_TOTAL)
        self._show("queues show the loan", _LENT)

    def second_takes_back(self) -> Return:
        self._screen.say(f"2. {_B} submits {self._b.name}", "bold")
        begin = self._apply(_B, "apply 2")
        shrunk = self._trains(_A, GPUS_TOTAL - _GUARANTEED) - begin
        back = Return(shrunk, self._trains(_B, _GUARANTEED) - begin)
        seconds = f"{back.shrunk_seconds:.1f} s, and used after {back.trained_seconds:.1f} s"
        self._screen.say(f"   the loan was back after {seconds}")
        self._show("queues show its return", _BACK)
        return back

    def first_borrows_again(self) -> None:
        self._screen.say(f"3. {self._b.name} trains to its end, at full speed", "bold")
        self._b.complete()
        self.requests.append(Request("end of 2", time.time()))
        self._trains(_A, GPUS_TOTAL)
        self._show("queues show the second loan", _LENT)

    def first_ends(self) -> None:
        self._screen.say(f"4. {self._a.name} trains to its end, at full speed", "bold")
        self._a.complete()

    def _apply(self, team: str, label: str) -> float:
        now = time.time()
        self.requests.append(Request(label, now))
        self._scenes[team].apply(self._jobs[team], _SHARD_MILLISECONDS)
        return now

    def _trains(self, team: str, learners: int) -> float:
        """Waits until the team's training has this number of learners. Returns the time."""
        scene = self._scenes[team]
        scene.wait(f"{scene.name} of {team} trains on {learners} GPUs", lambda each: each.trains_on(learners))
        return scene.watcher.worlds()[-1].time

    def _show(self, name: str, wanted: Mapping[str, Mapping[str, int]]) -> None:
        """Waits until the queues have these numbers, and shows what administrator and users read then."""

        def reached() -> bool:
            return not differences(self._statuses(), wanted)

        wait(self._stage.kubectl, self._screen, name, reached, _STATUS_SECONDS)
        self.checks.append(Check(name, differences(self._statuses(), wanted)))
        lines = _transcript("administrator", self._stage, "get", "tq")
        for team, scene in self._scenes.items():
            training = scene.watcher.worlds()[-1].training(scene.name)
            if training and not training.job.finished:
                lines += _transcript(team, scene.stage, "get", "etj", scene.name, "-o", "jsonpath={.status.reason}")
        self._screen.lines([*lines, ""])

    def _statuses(self) -> dict[str, Mapping]:
        """The statuses of the queues, whose numbers the operator updates within half a minute."""
        queues = self._stage.kubectl.json("get", "trainingqueues", *self._scenes)["items"]
        return {each["metadata"]["name"]: each.get("status", {}) for each in queues}


def _transcript(who: str, stage: Stage, *arguments: str) -> list[str]:
    output = stage.kubectl.run(*arguments).splitlines()
    return ["", f"  {who}$ kubectl {' '.join(arguments)}", *(f"  {line}" for line in output)]


def differences(statuses: Mapping[str, Mapping], wanted: Mapping[str, Mapping[str, int]]) -> tuple[str, ...]:
    """Pure."""
    return tuple(
        f"{name}.status.{field} is {statuses[name].get(field)}, not {value}"
        for name, fields in wanted.items()
        for field, value in fields.items()
        if statuses[name].get(field) != value
    )


def interruptions(worlds: Sequence[World], statuses: Mapping[str, Mapping]) -> tuple[str, ...]:
    """What would show that a training was stopped after its start, or that a learner failed. `statuses`: those of the
    jobs at their ends. Pure."""
    stopped = {}
    begun = set()
    for world in worlds:
        for name, training in world.trainings.items():
            if training.job.phase == "Running":
                begun.add(name)
            elif name in begun and training.job.phase not in ("Resizing", "Succeeded"):
                stopped[f"{name} was {training.job.phase}: {training.job.reason}"] = None
    failed = [f"{name}: {problem}" for name, status in statuses.items() for problem in maintenance.counted(status)]
    return (*stopped, *failed)


def check_dashboard(answers: Sequence[dashboards.Answer]) -> Check:
    """The dashboard shows both queues, and the loans between them. Pure."""
    of_queues = [answer for answer in answers if "pliant_queue_" in answer.query.expression]
    problems = [
        f"{answer.query.panel}: nothing about {team} for {answer.query.expression}"
        for answer in of_queues
        for team in (_A, _B)
        if not any(f"/{team}" in series.name for series in answer.series)
    ]
    highest = {series.name: series.highest for answer in of_queues for series in answer.series}
    problems += [
        f"{name} was never {_GUARANTEED}, but {highest.get(name)}"
        for name in (f"default/{_A} borrowed", f"default/{_B} lent")
        if highest.get(name) != _GUARANTEED
    ]
    return Check("the dashboard shows queues and loans", tuple(problems))
