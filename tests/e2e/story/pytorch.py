"""A PyTorch script, as examples/ has it, through one, four, two and three learners and a SIGKILL: the parameters are
those of the same script alone."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import checks, container, reference
from .api_server import ApiServer
from .errors import StoryError
from .scene import Scene
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, Stage, with_image
from .watcher import Watcher
from .world import World

_EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "char_transformer"
NAME = "char-transformer"
_SIZES = (1, 4, 2, 3)
# Small enough for two CPUs that four learners and their cluster share, and long enough to be resized four times.
_ARGUMENTS = ["train.py", "--epochs=10", "--width=32", "--layers=2", "--length=32"]
_TRAIN_SECONDS = 1800.0


def play(stage: Stage, screen: Screen) -> list[checks.Check]:
    if not stage.pytorch_image:
        raise StoryError("there is no image of Python programs: PLIANT_PYTORCH_IMAGE is not set")
    stage.clear()
    _apply_program(stage)
    job = _manifest(stage)
    with Watcher(ApiServer(stage.kubectl), NAMESPACE, screen.show) as watcher:
        scene = Scene(NAME, stage, screen, watcher)
        scene.apply(job)
        for size in _SIZES:
            _resize(scene, size)
            if size == max(_SIZES):
                _kill_one(scene, size)
        end = scene.wait("it completes", lambda each: each.job.phase == "Succeeded", _TRAIN_SECONDS).job
        worlds = watcher.worlds()
    screen.close_table()
    screen.say(f"loss by epoch: {curve(worlds)}")
    (sha256,) = reference.parameter_hashes(stage.kubectl, [job])
    return [*checks.check_training([checks.Outcome.of(end, sha256)]), *checks.check_worlds(worlds, GPUS_TOTAL)]


def curve(worlds: Sequence[World]) -> str:
    """The last loss that was seen in each epoch."""
    losses: dict[int, float] = {}
    for world in worlds:
        training = world.training(NAME)
        progress = training.progress if training else None
        if progress and progress.epoch is not None and progress.loss is not None:
            losses[progress.epoch] = progress.loss
    return ", ".join(f"{epoch}: {loss:.3f}" for epoch, loss in sorted(losses.items()))


def manifest(example: Sequence[Mapping], image: str, volume: Mapping) -> dict:
    """The example's job, in the size of this test. Pure."""
    (found,) = (each for each in example if each["kind"] == "ElasticTrainingJob")
    job = with_image(found, image)
    job["spec"]["elastic"]["maxLearners"] = _SIZES[0]
    job["spec"]["checkpoint"]["volume"] = dict(volume)
    job["spec"]["resize"] = {"gracePeriodSeconds": 30, "cooldownSeconds": 0}
    (learner,) = job["spec"]["template"]["spec"]["containers"]
    learner["args"] = _ARGUMENTS
    learner["resources"] = {"requests": {"cpu": "50m", "memory": "256Mi"}}
    return job


def _manifest(stage: Stage) -> dict:
    path = str(_EXAMPLE / "job.yaml")
    text = stage.kubectl.run("create", "--dry-run=client", "--validate=false", "-f", path, "-o", "json")
    volume = stage.checkpoint_volume or stage.manifest("training-1")["spec"]["checkpoint"]["volume"]
    return manifest(objects(text), stage.pytorch_image, volume)


def objects(text: str) -> list[Mapping]:
    """kubectl writes one object after the other, or a list of them."""
    decoder = json.JSONDecoder()
    objects: list[Mapping] = []
    while text := text.lstrip():
        found, end = decoder.raw_decode(text)
        objects += found["items"] if found["kind"] == "List" else [found]
        text = text[end:]
    return objects


def _apply_program(stage: Stage) -> None:
    script = f"--from-file={_EXAMPLE / 'train.py'}"
    text = stage.kubectl.run("create", "configmap", f"{NAME}-program", script, "--dry-run=client", "-o", "json")
    stage.kubectl.run("apply", "-f", "-", stdin=text)


def _resize(scene: Scene, learners: int) -> None:
    if learners != _SIZES[0]:
        scene.scale(learners)
    scene.wait(
        f"it trains on {learners} GPUs",
        lambda each: each.trains_on(learners) and bool(each.progress.step),
    )


def _kill_one(scene: Scene, learners: int) -> None:
    scene.say("SIGKILL of a learner")
    before = scene.now().progress
    container.kill(scene.stage, scene.stage.kubectl, scene.learners()[0].name)
    scene.wait(
        f"it trains on {learners} GPUs again",
        lambda each: each.trains_on(learners) and each.progress.membership != before.membership,
    )
