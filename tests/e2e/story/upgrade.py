"""The operator is upgraded while jobs train. They keep their coordinators and learners, which are those of the former
version: none is restarted, and no step is lost."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from . import container, pace, reference
from .checks import Check
from .errors import StoryError
from .screen import Screen
from .stage import Stage, with_epochs, with_image
from .waiting import wait

# From this commit on manifests, protocol and C interface have the number 1 (docs/contracts.md), and nothing is kept for
# earlier ones. After a release, upgrades begin at its commit.
FROM = "e20dedeca45f"
_FORMER_LEARNER = f"localhost/pliant-at/learner:{FROM}"  # the name that ./dev up --commit gives it

_TRAINING = ("alpha", "beta")
_SUSPENDED = "idle"
_NEW = "fresh"
_ALL = (*_TRAINING, _SUSPENDED, _NEW)
_EPOCHS = 60
_MILLISECONDS = 200  # per shard, so that the training outlasts the story
_SECONDS = 240.0
_END_SECONDS = 600.0


@dataclass(frozen=True)
class Seen:
    """The state of one job."""

    learners: Mapping[str, str]  # uids, by name
    term: int  # its coordinator's
    restarts: int
    step: int


class _Jobs:
    def __init__(self, stage: Stage, screen: Screen) -> None:
        self._kubectl = stage.kubectl
        self._stage = stage
        self._screen = screen

    def manifest(self, name: str) -> dict:
        job = with_epochs(self._stage.manifest("training-1"), _EPOCHS)
        job["metadata"]["name"] = name
        job = pace.paced(job)
        return job if name == _NEW else with_image(job, _FORMER_LEARNER)

    def submit(self, name: str) -> None:
        self._screen.say(f"kubectl apply {name}")
        pace.set_pace(self._kubectl, name, _MILLISECONDS)
        self._kubectl.apply(self.manifest(name))

    def suspend(self, name: str, suspended: bool) -> None:
        self._screen.say(f"kubectl patch {name}: suspend {suspended}")
        patch = '{"spec":{"suspend":%s}}' % str(suspended).lower()
        self._kubectl.run("patch", "elastictrainingjob", name, "--type=merge", "-p", patch)

    def scale(self, name: str, learners: int) -> None:
        self._screen.say(f"kubectl scale {name} to {learners}")
        self._kubectl.run("scale", "elastictrainingjob", name, f"--replicas={learners}")

    def status(self, name: str) -> Mapping:
        return self._kubectl.json("get", "elastictrainingjob", name).get("status", {})

    def look(self, name: str) -> Seen:
        status = self.status(name)
        selector = f"pliant.dev/job={name},pliant.dev/role=learner"
        pods = self._kubectl.json("get", "pods", "-l", selector)["items"]
        return Seen(
            {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods},
            status.get("coordinatorTerm") or 0,
            status.get("restarts") or 0,
            status.get("step") or 0,
        )

    def trains_on(self, name: str, learners: int) -> bool:
        status = self.status(name)
        return status.get("phase") == "Running" and status.get("learners") == learners

    def is_in(self, phase: str, *names: str) -> bool:
        return all(self.status(name).get("phase") == phase for name in names)

    def have_passed(self, steps: Mapping[str, int]) -> bool:
        return all((self.status(name).get("step") or 0) > step for name, step in steps.items())

    def wait(self, what: str, probe: Callable[[], bool], seconds: float = _SECONDS) -> None:
        wait(self._kubectl, self._screen, what, probe, seconds)


def play(stage: Stage, screen: Screen) -> list[Check]:
    stage.clear()
    jobs = _Jobs(stage, screen)
    try:
        before = _train_under_the_former(stage, screen, jobs)
    except StoryError as error:
        screen.say(str(error), "red")  # shown here, because the installation below may fail, too
        raise
    finally:
        screen.say("./dev up: helm upgrade to the present operator")
        container.install_operator(stage)
    steps = {name: (jobs.status(name).get("step") or 0) + 10 for name in before}
    jobs.wait("both have done ten steps more", lambda: jobs.have_passed(steps))
    found = [went_on(name, seen, jobs.look(name)) for name, seen in before.items()]
    _change_their_sizes(jobs)
    for name in _ALL:
        pace.let_go(stage.kubectl, name)
    jobs.wait("all four are complete", lambda: jobs.is_in("Succeeded", *_ALL), _END_SECONDS)
    (undisturbed,) = reference.parameter_hashes(stage.kubectl, [jobs.manifest(_NEW)])
    found.append(same_hash({name: jobs.status(name).get("parametersSha256", "") for name in _ALL}, undisturbed))
    return found


def _train_under_the_former(stage: Stage, screen: Screen, jobs: _Jobs) -> Mapping[str, Seen]:
    screen.say(f"./dev up --commit {FROM}")
    container.install_operator(stage, FROM)
    for name in (*_TRAINING, _SUSPENDED):
        jobs.submit(name)
    jobs.wait("three jobs train", lambda: jobs.is_in("Running", *_TRAINING, _SUSPENDED))
    jobs.suspend(_SUSPENDED, True)
    jobs.wait(
        "one is suspended, the others train on four GPUs each",
        lambda: jobs.is_in("Suspended", _SUSPENDED) and all(jobs.trains_on(name, 4) for name in _TRAINING),
    )
    return {name: jobs.look(name) for name in _TRAINING}


def _change_their_sizes(jobs: _Jobs) -> None:
    """An owner can still change a job that the former operator started."""
    jobs.scale("alpha", 2)
    jobs.wait("alpha has 2 GPUs, beta 6", lambda: jobs.trains_on("alpha", 2) and jobs.trains_on("beta", 6))
    jobs.suspend(_SUSPENDED, False)
    jobs.wait("the suspended one trains again", lambda: jobs.is_in("Running", _SUSPENDED))
    jobs.suspend("beta", True)
    jobs.wait("beta is suspended", lambda: jobs.is_in("Suspended", "beta"))
    jobs.suspend("beta", False)
    jobs.submit(_NEW)
    jobs.wait("beta trains again, and a new job too", lambda: jobs.is_in("Running", "beta", _NEW))


def went_on(name: str, before: Seen, after: Seen) -> Check:
    """Pure."""
    problems = []
    if after.learners != before.learners:
        problems.append(f"its learners were {sorted(before.learners)} and are {sorted(after.learners)}")
    if after.restarts != before.restarts:
        problems.append(f"{after.restarts - before.restarts} restarts are counted")
    if after.term != before.term:
        problems.append(f"its coordinator's term was {before.term} and is {after.term}")
    if after.step <= before.step:
        problems.append(f"it stood at step {before.step} and stands at {after.step}")
    return Check(f"{name} continued through the upgrade with its learners and its coordinator", tuple(problems))


def same_hash(hashes: Mapping[str, str], undisturbed: str) -> Check:
    """Pure."""
    other = tuple(f"{name} ended with {sha256}" for name, sha256 in hashes.items() if sha256 != undisturbed)
    return Check("all ended with the parameters of the undisturbed run", other)
