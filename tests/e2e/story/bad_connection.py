"""Requests between the operator and the API server are late, cut off, or refused. The training is still resized, and
the operator does not send more requests than before."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from . import checks, reference
from .api_server import ApiServer
from .behind_proxy import BehindProxy, busiest_second, writes
from .faulty_proxy import Exchange, Mood
from .scene import Scene
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, Stage, with_epochs
from .table import layout
from .watcher import Watcher

_NAME = "remote"
_SEED = 6
_EPOCHS = 200  # as in control_faults.py: both use one undisturbed run
_STORM_SECONDS = 15.0  # duration of refusals; the back-off grows with it
_HEADER = (
    "connection to the API server", "resized after", "steps", "requests", "max per second", "writes", "failed writes",
)  # fmt: skip
_MAX_A_SECOND = 30  # requests; an operator that has just started sends ten
_MAX_WRITES = 30


@dataclass(frozen=True)
class Trouble:
    name: str
    mood: Mood
    seconds: float | None = None  # how long it lasts; None: until the job is resized


@dataclass(frozen=True)
class Answer:
    """The result of a resize with such a connection."""

    trouble: str
    seconds: float
    steps: int
    seen: Sequence[Exchange]  # requests during the resize

    def row(self) -> list[str]:
        tried = writes(self.seen)
        in_vain = sum(not each.outcome.startswith("2") for each in tried)
        counts = (self.steps, len(self.seen), busiest_second(self.seen), len(tried), in_vain)
        return [self.trouble, f"{self.seconds:.1f} s", *map(str, counts)]

    def storms(self) -> list[str]:
        found = []
        if (most := busiest_second(self.seen)) > _MAX_A_SECOND:
            found.append(f"{self.trouble}: {most} requests in one second")
        if (most := len(writes(self.seen))) > _MAX_WRITES:
            found.append(f"{self.trouble}: {most} writes for one resize")
        return found


_TROUBLES = (
    Trouble("undisturbed", Mood()),
    Trouble("up to 1 s late, each way", Mood(delay_seconds=1.0)),
    Trouble("a tenth of all requests and events cut off", Mood(reset_share=0.1)),
    Trouble(f"half answered 429 for {_STORM_SECONDS:.0f} s", Mood(refuse_share=0.5), _STORM_SECONDS),
    Trouble(f"all but the lease's answered 429 for {_STORM_SECONDS:.0f} s", Mood(refuse_share=1.0), _STORM_SECONDS),
    Trouble(f"all of that for {_STORM_SECONDS:.0f} s", Mood(0.5, 0.1, 0.2), _STORM_SECONDS),
)


def play(stage: Stage, screen: Screen) -> list[checks.Check]:
    stage.clear()
    job = with_epochs(stage.manifest("training-1"), _EPOCHS)
    job["metadata"]["name"] = _NAME
    job["spec"]["training"]["seed"] = _SEED
    job["spec"]["elastic"]["maxLearners"] = 4
    job["spec"]["resize"]["cooldownSeconds"] = 0
    with BehindProxy(stage) as operator, Watcher(ApiServer(stage.kubectl), [NAMESPACE], screen.show) as watcher:
        scene = Scene(_NAME, stage, screen, watcher)
        scene.apply(job)
        scene.wait("it trains on 4 GPUs", lambda each: each.trains_on(4) and bool(each.progress.step))
        answers = [
            _suffer(scene, operator, trouble, learners=4 if number % 2 else 6)
            for number, trouble in enumerate(_TROUBLES)
        ]
        end = scene.complete()
        worlds = watcher.worlds()
    screen.close_table()
    for line in layout(_HEADER, [each.row() for each in answers]):
        screen.say(line)
    (sha256,) = reference.parameter_hashes(stage.kubectl, [job])
    stood_still = [each.trouble for each in answers if each.steps <= 0]
    return [
        checks.Check("the training continued throughout", tuple(stood_still)),
        checks.Check("the operator did not storm", tuple(each for answer in answers for each in answer.storms())),
        *checks.check_outcomes([checks.Outcome.of(end, sha256)]),
        *checks.check_worlds(worlds, GPUS_TOTAL),
    ]


def _suffer(scene: Scene, operator: BehindProxy, trouble: Trouble, learners: int) -> Answer:
    """Requests a resize once the trouble has begun."""
    step, known, begin = scene.now().progress.step or 0, len(operator.seen()), time.monotonic()
    scene.say(trouble.name)
    operator.set_mood(trouble.mood)
    scene.scale(learners)
    if trouble.seconds is not None:
        time.sleep(trouble.seconds)
        operator.set_mood(Mood())
    after = scene.wait(f"it trains on {learners} GPUs", lambda each: each.trains_on(learners))
    operator.set_mood(Mood())
    seconds = time.monotonic() - begin
    return Answer(trouble.name, seconds, (after.progress.step or 0) - step, operator.seen()[known:])
