"""The story itself: two trainings share eight GPUs. The trainings are the demo's or others."""

import time
from collections.abc import Callable, Mapping, Sequence

from . import checks, pace, reference
from .api_server import ApiServer
from .checks import Check, Outcome
from .resizes import Request
from .screen import Screen
from .stage import NAMESPACE, Stage
from .told import Told
from .watcher import Watcher
from .world import World

# Makes the two jobs, of equal priority, on a clear stage. The second one takes longer.
Jobs = Callable[[Stage], Sequence[Mapping]]

_RESIZE_SECONDS = 240.0
_TRAIN_SECONDS = 1800.0


def demo_jobs(stage: Stage) -> Sequence[Mapping]:
    """The demo's jobs, at the pace in the demo's kustomization."""
    return [pace.paced(stage.manifest(name)) for name in ("training-1", "training-2")]


def play(
    stage: Stage,
    screen: Screen,
    after_step: Callable[[int], None] = lambda step: None,
    jobs_on: Jobs = demo_jobs,
    check: Callable[[Sequence[Outcome]], list[Check]] = checks.check_outcomes,
    shard_milliseconds: int | None = None,
) -> Told:
    """Plays the four steps; `after_step` may disturb the cluster. A StoryError names the step that fails.

    With `shard_milliseconds` each shard takes this time until the awaited states were seen. After that the trainings
    run as fast as the machine can, and their undisturbed runs at the same time."""
    screen.say("removing what an earlier story has left")
    stage.clear()
    jobs = {job["metadata"]["name"]: job for job in jobs_on(stage)}
    if shard_milliseconds is not None:
        for name, job in jobs.items():
            pace.set_pace(stage.kubectl, name, shard_milliseconds)
            jobs[name] = pace.paced(job)
        reference.begin(stage.kubectl, list(jobs.values()))
    with Watcher(ApiServer(stage.kubectl), [NAMESPACE], screen.show) as watcher:
        plot = _Plot(stage, screen, watcher, jobs, lets_go=shard_milliseconds is not None)
        for number, step in enumerate(
            (plot.first_comes, plot.second_comes, plot.second_gets_priority, plot.first_ends), 1
        ):
            step()
            after_step(number)
        plot.second_ends()
    screen.close_table()
    screen.say("both are trained once more, undisturbed, with one learner each and the same seeds")
    hashes = dict(zip(jobs, reference.parameter_hashes(stage.kubectl, list(jobs.values())), strict=True))
    return Told.of(tuple(jobs), watcher.worlds(), plot.requests, watcher.resizes(), hashes, check)


class _Plot:
    def __init__(
        self, stage: Stage, screen: Screen, watcher: Watcher, jobs: Mapping[str, Mapping], *, lets_go: bool
    ) -> None:
        self._stage = stage
        self._screen = screen
        self._watcher = watcher
        self._jobs = jobs
        self._lets_go = lets_go
        self._first, self._second = jobs
        self.requests: list[Request] = []

    def first_comes(self) -> None:
        first = self._first
        self._act(f"1. kubectl apply {first}", "apply 1", lambda: self._stage.kubectl.apply(self._jobs[first]))
        self._until({first: 8})

    def second_comes(self) -> None:
        second = self._second
        self._act(f"2. kubectl apply {second}", "apply 2", lambda: self._stage.kubectl.apply(self._jobs[second]))
        self._until({self._first: 4, second: 4})

    def second_gets_priority(self) -> None:
        second, priority = self._second, "10000"

        def act() -> None:
            self._screen.say(f"   {self._stage.kubectl.pliant('priority', second, priority).strip()}")

        self._act(f"3. kubectl pliant priority {second} {priority}", "priority 2", act)
        self._until({self._first: 3, second: 5})

    def first_ends(self) -> None:
        self._screen.say(f"4. {self._first} trains to its end", "bold")
        world = self._complete(self._first)
        self.requests.append(Request("end of 1", world.time))
        self._screen.say(f"   {self._first} is complete", "green")
        self._until({self._second: 8})

    def second_ends(self) -> None:
        self._complete(self._second)
        self._screen.say(f"   {self._second} is complete", "green")

    def _complete(self, name: str) -> World:
        if self._lets_go:
            pace.let_go(self._stage.kubectl, name)
        return self._wait(f"{name} completes", lambda world: _phase(world, name) == "Succeeded", _TRAIN_SECONDS)

    def _act(self, line: str, label: str, action: Callable[[], object]) -> None:
        self._screen.say(line, "bold")
        self.requests.append(Request(label, time.time()))
        action()

    def _until(self, sizes: Mapping[str, int]) -> None:
        text = " and ".join(f"{name} trains on {learners} GPUs" for name, learners in sizes.items())

        def reached(world: World) -> bool:
            trainings = [(world.training(name), learners) for name, learners in sizes.items()]
            return all(training is not None and training.trains_on(learners) for training, learners in trainings)

        def hopeless(world: World) -> str | None:
            for name in sizes:
                if _phase(world, name) == "Succeeded":
                    return f"{name} completed before: it is too short for this machine"
            return _failed(world)

        begin = time.monotonic()
        self._watcher.wait(text, reached, _RESIZE_SECONDS, hopeless)
        self._screen.say(f"   {text} (after {time.monotonic() - begin:.1f} s)", "green")

    def _wait(self, what: str, reached: Callable[[World], bool], seconds: float) -> World:
        return self._watcher.wait(what, reached, seconds, _failed)


def _phase(world: World, name: str) -> str:
    training = world.training(name)
    return training.job.phase if training else ""


def _failed(world: World) -> str | None:
    for name, training in world.trainings.items():
        if training.job.phase == "Failed":
            condition = training.job.conditions.get("Failed")
            return f"{name} failed: {condition.message if condition else training.job.reason}"
    return None
