"""Scripts of examples/, with several numbers of learners and a SIGKILL: the parameters equal those of the same script
alone."""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import checks, container, reference
from .api_server import ApiServer
from .errors import StoryError
from .scene import Scene
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, Stage, with_image
from .watcher import Watcher
from .world import World

_EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
_SHARD_MILLISECONDS = 100  # until all sizes have been reached


@dataclass(frozen=True)
class Example:
    """An example, with arguments that make it small enough for two CPUs shared by four learners and their cluster."""

    folder: str
    arguments: tuple[str, ...]
    image: Callable[[Stage], str]
    sizes: tuple[int, ...] = (1, 4, 2, 3)  # a learner is killed at the largest
    memory: str = "256Mi"
    batch: tuple[int, int] | None = None  # samples, logical shards; None: the manifest's
    datasets: bool = False  # data sets are on the checkpoints' volume, instead of the manifest's claim

    @property
    def name(self) -> str:
        return self.folder.replace("_", "-")


def pytorch(stage: Stage) -> str:
    return stage.pytorch_image


def _tensorflow(stage: Stage) -> str:
    return stage.tensorflow_image


CHAR_TRANSFORMER = Example("char_transformer", ("--epochs=3", "--width=32", "--layers=2", "--length=32"), pytorch)
KERAS_CNN = Example("keras_cnn", ("--epochs=20", "--width=8", "--samples=1600"), _tensorflow, memory="600Mi")
# Enough shards for a fifth learner to speed it up.
CHAR_TRANSFORMER_OF_EIGHT = dataclasses.replace(CHAR_TRANSFORMER, sizes=(8,), batch=(64, 32))
# Eight batches of the script's 16 samples: with its manifest's four, three learners are no faster than two.
IBM_STYLE = Example("ibm_style", ("--epochs=100",), pytorch, batch=(128, 8))
RESNET18 = Example("resnet18", ("--data=made-up", "--most=256", "--epochs=6"), pytorch, memory="600Mi", batch=(32, 8))


def on_cifar10(folder: str) -> Example:
    """`folder` on the checkpoints' volume has the images. Uses a small part of them and a fixed number of epochs: the
    accuracy is specific to this program and these numbers."""
    arguments = (f"--data=/datasets/{folder}", "--most=1024", "--epochs=5")
    return dataclasses.replace(RESNET18, arguments=arguments, batch=(64, 8), datasets=True)


def player(example: Example) -> Callable[[Stage, Screen], list[checks.Check]]:
    return lambda stage, screen: play(example, stage, screen)


def play(example: Example, stage: Stage, screen: Screen) -> list[checks.Check]:
    stage.clear()
    job = prepare(example, stage)
    with Watcher(ApiServer(stage.kubectl), [NAMESPACE], screen.show) as watcher:
        scene = Scene(example.name, stage, screen, watcher)
        scene.apply(job, _SHARD_MILLISECONDS)
        for size in example.sizes:
            if size != example.sizes[0]:
                scene.scale(size)
            _await_training(scene, size)
            if size == max(example.sizes):
                _kill_one(scene, size)
        end = scene.complete()
        worlds = watcher.worlds()
    screen.close_table()
    screen.say(f"loss by epoch: {curve(worlds, example.name)}")
    screen.say(f"test accuracy: {'none' if end.accuracy is None else f'{end.accuracy:.1%}'}")
    (sha256,) = reference.parameter_hashes(stage.kubectl, [job])
    screen.say(f"parameters: {end.parameters_sha256}; undisturbed: {sha256}")
    return [*checks.check_training([checks.Outcome.of(end, sha256)]), *checks.check_worlds(worlds, GPUS_TOTAL)]


def curve(worlds: Sequence[World], name: str) -> str:
    """The last loss seen in each epoch."""
    losses: dict[int, float] = {}
    for world in worlds:
        training = world.training(name)
        progress = training.progress if training else None
        if progress and progress.epoch is not None and progress.loss is not None:
            losses[progress.epoch] = progress.loss
    return ", ".join(f"{epoch}: {loss:.3f}" for epoch, loss in sorted(losses.items()))


def manifest(example: Example, listed: Sequence[Mapping], image: str, volume: Mapping) -> dict:
    """The example's job, with the size for this test. Pure."""
    (found,) = (each for each in listed if each["kind"] == "ElasticTrainingJob")
    job = with_image(found, image)
    job["spec"]["elastic"]["maxLearners"] = example.sizes[0]
    job["spec"]["checkpoint"]["volume"] = dict(volume)
    job["spec"]["resize"] = {"gracePeriodSeconds": 30, "cooldownSeconds": 0}
    if example.batch:
        job["spec"]["training"]["globalBatchSize"], job["spec"]["training"]["logicalShards"] = example.batch
    pod = job["spec"]["template"]["spec"]
    if example.datasets:
        pod["volumes"] = [
            {"name": "datasets", **volume} if each["name"] == "datasets" else each for each in pod["volumes"]
        ]
    # Claims of data sets that the cluster does not have: the arguments select other data.
    absent = {each["name"] for each in pod["volumes"] if "persistentVolumeClaim" in each}
    pod["volumes"] = [each for each in pod["volumes"] if each["name"] not in absent]
    (learner,) = job["spec"]["template"]["spec"]["containers"]
    learner["args"] = ["train.py", *example.arguments]
    learner["volumeMounts"] = [each for each in learner["volumeMounts"] if each["name"] not in absent]
    learner["resources"] = {"requests": {"cpu": "50m", "memory": example.memory}}
    return job


def prepare(example: Example, stage: Stage) -> dict:
    """Installs the script on a clear stage. Returns the job that trains it."""
    image = example.image(stage)
    if not image:
        raise StoryError(
            f"there is no image for {example.folder}: PLIANT_PYTORCH_IMAGE or PLIANT_TENSORFLOW_IMAGE is not set"
        )
    script = f"--from-file={_EXAMPLES / example.folder / 'train.py'}"
    text = stage.kubectl.run("create", "configmap", f"{example.name}-program", script, "--dry-run=client", "-o", "json")
    stage.kubectl.run("apply", "-f", "-", stdin=text)
    path = str(_EXAMPLES / example.folder / "job.yaml")
    text = stage.kubectl.run("create", "--dry-run=client", "--validate=false", "-f", path, "-o", "json")
    volume = stage.checkpoint_volume or stage.manifest("training-1")["spec"]["checkpoint"]["volume"]
    return manifest(example, objects(text), image, volume)


def objects(text: str) -> list[Mapping]:
    """The objects in kubectl's output: one object after the other, or a list."""
    decoder = json.JSONDecoder()
    objects: list[Mapping] = []
    while text := text.lstrip():
        found, end = decoder.raw_decode(text)
        objects += found["items"] if found["kind"] == "List" else [found]
        text = text[end:]
    return objects


def _await_training(scene: Scene, learners: int) -> None:
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
