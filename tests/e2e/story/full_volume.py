"""A checkpoint volume that is full for a while: the training continues, reports it, and saves again when there is
room."""

from . import checks, container, reference
from .api_server import ApiServer
from .scene import Scene
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, Stage, with_epochs
from .watcher import Watcher
from .world import Training

_NAME = "cramped"
_SEED = 5
_EPOCHS = 60
_LEARNERS = 8
_CHECKPOINT_STEPS = 20
_VOLUME = "/var/lib/pliant-small-volume"  # shared by the local cluster's nodes
_BALLAST = f"{_VOLUME}/ballast"


def _manifest(stage: Stage) -> dict:
    job = with_epochs(stage.manifest("training-1"), _EPOCHS)
    job["metadata"]["name"] = _NAME
    job["spec"]["training"]["seed"] = _SEED
    job["spec"]["checkpoint"] |= {
        "volume": {"hostPath": {"path": _VOLUME, "type": "Directory"}},
        "everySteps": _CHECKPOINT_STEPS,
    }
    return job


def play(stage: Stage, screen: Screen) -> list[checks.Check]:
    stage.clear()
    _run(stage, f"rm -rf {_VOLUME}/*")
    job = _manifest(stage)
    with Watcher(ApiServer(stage.kubectl), [NAMESPACE], screen.show) as watcher:
        scene = Scene(_NAME, stage, screen, watcher)
        scene.apply(job)
        scene.wait("it trains on 8 GPUs and has a checkpoint", lambda each: each.trains_on(_LEARNERS) and _saved(each))
        said = _fill_and_free(scene)
        end = scene.complete()
        worlds = watcher.worlds()
    screen.close_table()
    (sha256,) = reference.parameter_hashes(stage.kubectl, [job])
    return [
        checks.Check("a full volume is reported, and that it has room again", said),
        *checks.check_outcomes([checks.Outcome.of(end, sha256)]),
        *checks.check_worlds(worlds, GPUS_TOTAL),
    ]


def _fill_and_free(scene: Scene) -> tuple[str, ...]:
    """Fills the volume and frees it. Returns what is wrong with the reports of it."""
    scene.say("the volume is filled")
    _run(scene.stage, f"dd if=/dev/zero of={_BALLAST} bs=4k 2>&1 | grep -q 'No space left'")
    full = scene.wait("a condition says that it is full", lambda each: _is_told(each, "VolumeFull"))
    min_step = (full.progress.step or 0) + 2 * _CHECKPOINT_STEPS
    scene.wait("it trains on without checkpoints", lambda each: (each.progress.step or 0) >= min_step)
    scene.say("the volume is freed")
    _run(scene.stage, f"rm {_BALLAST}")
    scene.wait(
        "it has a new checkpoint, and says so",
        lambda each: (
            each.job.is_true("CheckpointsWritten")
            and (each.progress.checkpoint_step or 0) > (full.progress.checkpoint_step or 0)
        ),
    )
    message = full.job.conditions["CheckpointsWritten"].message
    return () if "No space left on device" in message else (f"the condition does not say why: {message}",)


def _is_told(training: Training, reason: str) -> bool:
    condition = training.job.conditions.get("CheckpointsWritten")
    return condition is not None and condition.status == "False" and condition.reason == reason


def _saved(training: Training) -> bool:
    return training.progress is not None and bool(training.progress.checkpoint_step)


def _run(stage: Stage, script: str) -> None:
    container.on_node(stage, "node-1", "sh", "-c", script)
