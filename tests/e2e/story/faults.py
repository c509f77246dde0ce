"""Faults in the middle of a step. The training continues each time, and ends with the result of an undisturbed run."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import checks, container, reference
from .api_server import ApiServer
from .errors import StoryError
from .scene import Scene, restored_step
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, Stage, with_epochs
from .table import layout
from .watcher import Watcher
from .world import Resize, Training, coordinator_of, node_without_coordinator

_NAME = "faulty"
_SEED = 4
_EPOCHS = 320  # more than four minutes: long enough for all faults
_LEARNERS = 8
_CHECKPOINT_STEPS = 40
_STOPPED_SECONDS = 30.0
_HEADER = ("fault", "training on all GPUs again", "longest pause of a survivor", "steps lost")


@dataclass(frozen=True)
class Fault:
    name: str
    strike: Callable[[Scene], None]


@dataclass(frozen=True)
class Recovery:
    """The cost of a fault."""

    fault: str
    seconds: float  # from the fault until all learners train again
    resizes: Sequence[Resize]  # caused by the fault

    @property
    def pause_seconds(self) -> float:
        return max((each.pause_seconds for each in self.resizes), default=0.0)

    @property
    def steps_lost(self) -> int:
        return sum(each.steps_lost for each in self.resizes)

    def row(self) -> list[str]:
        return [self.fault, f"{self.seconds:.1f} s", f"{self.pause_seconds:.2f} s", str(self.steps_lost)]


def _manifest(stage: Stage) -> dict:
    job = with_epochs(stage.manifest("training-1"), _EPOCHS)
    job["metadata"]["name"] = _NAME
    job["spec"]["training"]["seed"] = _SEED
    job["spec"]["checkpoint"]["everySteps"] = _CHECKPOINT_STEPS
    return job


def _kill_learner(scene: Scene) -> None:
    container.kill(scene.stage, scene.stage.kubectl, scene.learners()[0].name)


def _stop_learner(scene: Scene) -> None:
    name = scene.learners()[-1].name
    container.signal(scene.stage, scene.stage.kubectl, name, "SIGSTOP")
    time.sleep(_STOPPED_SECONDS)
    if any(pod.name == name for pod in scene.learners()):
        container.signal(scene.stage, scene.stage.kubectl, name, "SIGCONT")


def _coordinator_name(scene: Scene) -> str:
    training = scene.now()
    coordinator = coordinator_of(training.job, training.pods)
    if coordinator is None:
        raise StoryError("the training has no coordinator that runs")
    return coordinator.name


def _kill_coordinator(scene: Scene) -> None:
    container.kill(scene.stage, scene.stage.kubectl, _coordinator_name(scene))


def _kill_coordinator_and_learner(scene: Scene) -> None:
    # Both at once: it does not wait for the end of the first.
    container.signal(scene.stage, scene.stage.kubectl, _coordinator_name(scene), "SIGKILL")
    _kill_learner(scene)


def _take_a_node_away(scene: Scene) -> None:
    """Takes away a node without the coordinator, until the other learners train without those of the node."""
    node = node_without_coordinator(scene.now())
    lost = {pod.name for pod in scene.learners() if pod.node == node}
    begin = time.monotonic()
    container.take_away(scene.stage, node)
    try:
        down = scene.now().progress
        scene.wait(
            f"{_LEARNERS - len(lost)} learners train without those of {node}",
            lambda each: lost.isdisjoint(each.progress.members) and (each.progress.step or 0) > (down.step or 0),
        )
        scene.say(f"   after {time.monotonic() - begin:.1f} s; {node} comes back")
    finally:
        container.bring_back(scene.stage, node)


_FAULTS = (
    Fault("SIGKILL of a learner", _kill_learner),
    Fault(f"SIGSTOP of a learner for {_STOPPED_SECONDS:.0f} s", _stop_learner),
    Fault("SIGKILL of the coordinator", _kill_coordinator),
    Fault("SIGKILL of the coordinator and a learner", _kill_coordinator_and_learner),
    Fault("a node taken away, and brought back", _take_a_node_away),
)


def play(stage: Stage, screen: Screen) -> list[checks.Check]:
    stage.clear()
    job = _manifest(stage)
    with Watcher(ApiServer(stage.kubectl), [NAMESPACE], screen.show) as watcher:
        scene = Scene(_NAME, stage, screen, watcher)
        scene.apply(job)
        scene.wait("it trains on 8 GPUs", lambda each: each.trains_on(_LEARNERS))
        recoveries = [_suffer(scene, fault) for fault in _FAULTS]
        until_corruption = watcher.worlds()
        passed_over = _corrupt_the_newest_checkpoint(scene, job["spec"]["checkpoint"]["volume"]["hostPath"]["path"])
        end = scene.complete()
    screen.close_table()
    for line in layout(_HEADER, [each.row() for each in recoveries]):
        screen.say(line)
    (sha256,) = reference.parameter_hashes(stage.kubectl, [job])
    lost = [f"{each.fault}: {each.steps_lost}" for each in recoveries if each.steps_lost]
    return [
        checks.Check("no fault lost a committed step", tuple(lost)),
        checks.Check("a corrupted checkpoint is passed over", passed_over),
        *checks.check_outcomes([checks.Outcome.of(end, sha256)]),
        *checks.check_worlds(until_corruption, GPUS_TOTAL),
    ]


def _suffer(scene: Scene, fault: Fault) -> Recovery:
    scene.say(fault.name)
    before = scene.now().progress
    known = {resize.membership for resize in before.resizes}
    begin = time.time()
    fault.strike(scene)
    struck = scene.now().progress

    def on_again(training: Training) -> bool:
        progress = training.progress
        # A coordinator's last answer is kept until it answers again, so the step must be later than the fault.
        return training.trains_on(_LEARNERS) and (progress.step or 0) > max(before.step or 0, struck.step or 0)

    after = scene.wait(f"it trains on {_LEARNERS} GPUs again", on_again)
    resizes = [each for each in after.progress.resizes if each.membership not in known]
    return Recovery(fault.name, max([each.running for each in resizes], default=time.time()) - begin, resizes)


def _corrupt_the_newest_checkpoint(scene: Scene, volume: str) -> tuple[str, ...]:
    """Corrupts the checkpoint while the job is suspended. `volume`: the folder of its checkpoints on every node.
    Returns what is wrong with the step from which it resumed."""
    scene.suspend()
    folder = f"{volume}/{scene.now().job.uid}"
    older, newest = container.on_node(scene.stage, "node-1", "sh", "-c", f"ls -d {folder}/step-*").split()[-2:]
    scene.say(f"64 bytes of {newest.rpartition('/')[2]} are overwritten")
    script = f"dd if=/dev/zero of=$(ls {newest}/*.safetensors | head -1) bs=1 seek=4096 count=64 conv=notrunc"
    container.on_node(scene.stage, "node-1", "sh", "-c", script)
    scene.resume(_LEARNERS)
    logs = scene.logs()
    restored = restored_step(logs)
    expected = int(older.rpartition("/")[2].split("-")[1])
    if restored != expected:
        return (f"it resumed from step {restored}, but the checkpoint before is of step {expected}",)
    if "checkpoint passed over" not in logs:
        return ("no learner says that it passed a checkpoint over",)
    return ()
