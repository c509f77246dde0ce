"""The tutorial of Watson Machine Learning Accelerator: two trainings of its script share eight GPUs. The script uses
the old product's modules and does not mention Pliant. The story is the demo's."""

import copy
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from . import checks, ending, examples, plot
from .screen import Screen
from .stage import Stage


@dataclass(frozen=True)
class Size:
    example: examples.Example
    epochs: tuple[int, int]  # of the first and the second job; the second still trains when the first has ended
    data_dir: str = "/datasets"  # does not exist: the images are made up


# 32 shards of one image each. With 16 shards five learners would be no faster than four, and would get no fifth GPU.
MADE_UP = Size(
    examples.Example("wmla_tutorial", ("--most=64",), examples.pytorch, sizes=(8,), memory="600Mi", batch=(32, 32)),
    epochs=(20, 48),  # with eight learners on two CPUs, a step of the whole ResNet-18 takes 1 or 2 seconds
)


def on_cifar10(folder: str) -> Size:
    """`folder` on the checkpoints' volume has the images. More images and fewer epochs give the same number of
    steps."""
    example = dataclasses.replace(MADE_UP.example, arguments=("--most=256",), datasets=True)
    return Size(example, epochs=(5, 12), data_dir=f"/datasets/{folder}")

_SHARD_MILLISECONDS = 300


def player(size: Size) -> Callable[[Stage, Screen], list[checks.Check]]:
    def play(stage: Stage, screen: Screen) -> list[checks.Check]:
        told = plot.play(
            stage, screen, jobs_on=lambda there: jobs(size, there), check=checks.check_training,
            shard_milliseconds=_SHARD_MILLISECONDS,
        )  # fmt: skip
        ending.show(told, screen)
        return told.checks

    return play


def jobs(size: Size, stage: Stage) -> list[dict]:
    job = examples.prepare(size.example, stage)
    return [one_of(job, size, number) for number in (1, 2)]


def one_of(job: Mapping, size: Size, number: int) -> dict:
    """Job `number`. The script seeds nothing, so the two models differ only by the seeds of their jobs. Pure."""
    job = copy.deepcopy(dict(job))
    job["metadata"]["name"] = f"tutorial-{number}"
    job["spec"]["training"]["seed"] = number
    said = {
        "DATA_DIR": size.data_dir,
        "PLIANT_PARAMETER_EPOCHS": str(size.epochs[number - 1]),
    }
    (learner,) = job["spec"]["template"]["spec"]["containers"]
    others = [each for each in learner["env"] if each["name"] not in said]
    learner["env"] = [*others, *({"name": name, "value": value} for name, value in said.items())]
    return job
