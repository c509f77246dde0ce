"""An operator that dies whenever it writes. The training is resized and ends with the result of an undisturbed run, and
every pod is created once."""

import itertools
from collections import Counter
from collections.abc import Sequence

from . import checks, reference
from .api_server import ApiServer
from .behind_proxy import BehindProxy
from .faulty_proxy import AFTER, BEFORE, Exchange, Mood
from .scene import Scene
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, Stage, with_epochs
from .table import layout
from .watcher import Watcher
from .world import World

_NAME = "deadly"
_SEED = 6
_LEASE = "--lease-seconds=4"  # each operator waits until its predecessor's lease expires
_SIZE_SECONDS = 400.0  # an operator lives for some seconds, and a resize takes dozens of operators
_HEADER = ("write", "killed before it", "killed after it")
_NEEDED = (
    "POST secrets", "POST networkpolicies", "POST services", "POST pods", "PATCH pods",
    "PATCH elastictrainingjobs/status", "DELETE pods",
)  # fmt: skip


_KILLS = 2  # before each kind of write, and after it
_EPOCHS = 200  # as in control_faults.py: both use one undisturbed run
_SIZES = (3, 5, 2, 4)
# Number of learners needed if each is created once and none is lost.
_PODS = _SIZES[0] + sum(max(0, after - before) for before, after in itertools.pairwise(_SIZES))


def play(stage: Stage, screen: Screen) -> list[checks.Check]:
    stage.clear()
    job = with_epochs(stage.manifest("training-1"), _EPOCHS)
    job["metadata"]["name"] = _NAME
    job["spec"]["training"]["seed"] = _SEED
    job["spec"]["elastic"]["maxLearners"] = _SIZES[0]
    with BehindProxy(stage, [_LEASE]) as operator, Watcher(ApiServer(stage.kubectl), [NAMESPACE], screen.show) as watcher:
        operator.set_mood(Mood(kills=_KILLS))
        scene = Scene(_NAME, stage, screen, watcher)
        scene.apply(job)
        for size in _SIZES:
            if size != _SIZES[0]:
                scene.scale(size)
            what = f"it trains on {size} GPUs"
            scene.wait(what, lambda each, size=size: each.trains_on(size) and bool(each.progress.step), _SIZE_SECONDS)
            screen.say(f"   the operator was killed {sum(map(_is_kill, operator.seen()))} times")
        end = scene.complete()
        # The operator's last write deletes the coordinator.
        watcher.wait("its coordinator is gone", without_coordinator, _SIZE_SECONDS, lambda _: None)
        worlds = watcher.worlds()
        seen = operator.seen()
    screen.close_table()
    for line in layout(_HEADER, table(seen)):
        screen.say(line)
    (sha256,) = reference.parameter_hashes(stage.kubectl, [job])
    return [
        checks.Check("the operator was killed at each kind of write", tuple(spared(seen))),
        checks.Check("every pod was made once", tuple(doubled(worlds, _PODS))),
        *checks.check_outcomes([checks.Outcome.of(end, sha256)]),
        *checks.check_worlds(worlds, GPUS_TOTAL),
    ]


def _is_kill(exchange: Exchange) -> bool:
    return exchange.outcome in (BEFORE, AFTER)


def kind(exchange: Exchange) -> str:
    """The kind of a write: the method, and the resource with its subresource."""
    parts = exchange.path.partition("/namespaces/")[2].split("/")
    return f"{exchange.method} {'/'.join([*parts[1:2], *parts[3:4]])}"


def table(seen: Sequence[Exchange]) -> list[list[str]]:
    counts = Counter((kind(each), each.outcome) for each in seen if _is_kill(each))
    kinds = sorted({name for name, _ in counts})
    return [[name, str(counts[name, BEFORE]), str(counts[name, AFTER])] for name in kinds]


def spared(seen: Sequence[Exchange]) -> list[str]:
    """Kinds of writes that every training needs, but at which the operator was never killed."""
    hit = {kind(each) for each in seen if _is_kill(each)}
    return [f"never at {name}" for name in _NEEDED if name not in hit]


def without_coordinator(world: World) -> bool:
    training = world.training(_NAME)
    return training is not None and all(pod.role != "coordinator" for pod in training.pods)


def doubled(worlds: Sequence[World], needed: int) -> list[str]:
    """Pods of the training that were not needed."""
    trainings = [each for world in worlds if (each := world.training(_NAME))]
    pods = {pod.uid: pod for training in trainings for pod in training.pods}
    names = Counter(pod.name for pod in pods.values())
    problems = [f"{name} was made {count} times" for name, count in sorted(names.items()) if count > 1]
    for role, most in (("learner", needed), ("coordinator", 1)):
        made = sum(pod.role == role for pod in pods.values())
        if made != most:
            problems.append(f"{made} {role}s were made for {most}")
    return problems
