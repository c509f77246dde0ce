"""The settings of pliant.attach. Each is an Annotated with its type, its check and its meaning;
signatures and documents are made of these. Frameworks are imported for types only."""

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Protocol,
    SupportsFloat,
    get_args,
    get_origin,
)

from . import _checks as check
from ._states import Stateful
from .errors import InvalidProgram

if TYPE_CHECKING:
    import torch

THREADS_MAX = 1 << 10

Evaluate = Callable[[Any], SupportsFloat | tuple[Any, Any]]
Collate = Callable[[list[Any]], Any]
OnNonFinite = Literal["stop", "skip", "warn"]
LossReduction = Literal["mean", "sum"]
Frozen = Literal["sent", "at_home"]


class Scaler(Stateful, Protocol):
    """torch.amp.GradScaler."""

    def scale(self, outputs: "torch.Tensor") -> "torch.Tensor": ...
    def unscale_(self, optimizer: "torch.optim.Optimizer") -> None: ...
    def step(self, optimizer: "torch.optim.Optimizer") -> Any: ...
    def update(self, new_scale: float | None = None) -> None: ...
    def get_scale(self) -> float: ...


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of every framework. Raises InvalidProgram if one is wrong."""

    framework: ClassVar = ""  # the one that has the class's own settings; "": each has them

    epochs: Annotated[
        int | None,
        check.or_none(check.whole(1, 1 << 40)),
        "passes over the training data. None: as many as max_steps need.",
    ] = None
    max_steps: Annotated[
        int | None,
        check.or_none(check.whole(1, 1 << 40)),
        "optimizer steps after which the training is complete, if its epochs have not ended "
        "before. None: it ends with its epochs.",
    ] = None
    batch_size: Annotated[
        int | None,
        check.or_none(check.whole(1, 1 << 32)),
        "samples of the global batch, over all learners. None: the job's or, alone, 256.",
    ] = None
    test_data: Annotated[
        Any, check.anything, "like train_data; evaluated after each epoch or by evaluate_every."
    ] = None
    evaluate_every: Annotated[
        int | None,
        check.or_none(check.whole(1, 1 << 40)),
        "optimizer steps from one evaluation to the next, over the whole training, whose last step "
        "is evaluated, too. None: one follows each complete epoch. Not with a batch that grows.",
    ] = None
    evaluate: Annotated[
        Evaluate | None,
        check.or_none(check.function),
        "called with a batch of the test data, in evaluation mode and without gradients. Returns "
        "the loss, or a pair: the loss and the number of correct samples. Optional with Keras: "
        "without it, `loss` is used.",
    ] = None
    collate_fn: Annotated[
        Collate | None,
        check.or_none(check.function),
        "makes a batch from a list of samples, like that of a DataLoader.",
    ] = None
    seed: Annotated[
        int | None,
        check.or_none(check.whole(0, (1 << 64) - 1)),
        "seed of the order of the data and of random numbers drawn in a batch. None: the job's, "
        "else 0. It does not initialize the model: seed the framework before you build it.",
    ] = None
    logical_shards: Annotated[
        int | None,
        check.or_none(check.power_of_two(1 << 16)),
        "number of parts that a batch is computed in, a power of two; the result depends on it. "
        "None: the job's or, alone, 1.",
    ] = None
    micro_batch_size: Annotated[
        int | None,
        check.or_none(check.whole(1, 1 << 32)),
        "samples of a logical shard, the other way to say logical_shards: batch_size is a power of "
        "two of it.",
    ] = None
    drop_last: Annotated[
        bool,
        check.flag,
        "leave out the samples that do not fill an epoch's last batch. Otherwise that batch is "
        "smaller, and BatchNorm fails on a shard of one sample.",
    ] = False
    on_nonfinite: Annotated[
        OnNonFinite,
        check.one_of(*get_args(OnNonFinite)),
        'action for a step whose loss or gradient is not finite: "stop" (exit code 2), "skip" (at '
        'most 100 in a row) or "warn". With a scaler it applies to the loss only: the scaler '
        "itself skips steps while it searches for its scale.",
    ] = "stop"
    num_workers: Annotated[
        int,
        check.whole(0, 1 << 10),
        "processes that load data ahead. 0: data are loaded between two batches.",
    ] = 0
    threads: Annotated[
        int | None,
        check.or_none(check.whole(1, THREADS_MAX)),
        "CPU threads of each operation; the result depends on it. None: OMP_NUM_THREADS, else 1.",
    ] = None
    checkpoint_dir: Annotated[
        str | os.PathLike[str] | None,
        check.or_none(check.folder),
        "folder of checkpoints. None: PLIANT_CHECKPOINT_DIR, else ./checkpoints. Ignored in a job, "
        "which uses its volume.",
    ] = None
    checkpoint_every_steps: Annotated[
        int | None,
        check.or_none(check.whole(1, 1 << 40)),
        "optimizer steps between two checkpoints. None: the job's spec.checkpoint.everySteps, "
        "which it may repeat; alone, PLIANT_CHECKPOINT_EVERY_STEPS or none.",
    ] = None
    name: Annotated[
        str | None, check.or_none(check.text), "name of the training in logs. None: the model's."
    ] = None

    def __post_init__(self) -> None:
        for each in fields(self):
            _, checked, _ = get_args(each.type)
            value = checked(each.name, getattr(self, each.name))
            object.__setattr__(self, each.name, value)  # the class is frozen
        if self.epochs is None and self.max_steps is None:
            raise InvalidProgram(
                "epochs and max_steps are both None: give one of them, such as epochs=10 or "
                "max_steps=1000"
            )
        if self.evaluate_every is not None and self.test_data is None:
            raise InvalidProgram(
                f"evaluate_every is {self.evaluate_every}, but test_data is None: give test data, "
                "or leave it out"
            )


@dataclass(frozen=True, kw_only=True)
class TorchSettings(Settings):
    framework = "PyTorch"

    loss_reduction: Annotated[
        LossReduction,
        check.one_of(*get_args(LossReduction)),
        'how the loss is reduced over a batch, "mean" or "sum".',
    ] = "mean"
    scaler: Annotated[
        Scaler | None,
        check.or_none(
            check.with_methods(
                "a torch.amp.GradScaler",
                "scale",
                "unscale_",
                "step",
                "update",
                "get_scale",
                "state_dict",
                "load_state_dict",
            )
        ),
        "a torch.amp.GradScaler.",
    ] = None
    frozen: Annotated[
        Frozen | None,
        check.or_none(check.one_of(*get_args(Frozen))),
        'frozen parameters. "sent": part of the state, which joining learners and checkpoints '
        'receive. "at_home": each learner loads its own before attach, the same and never changed; '
        "a hash makes sure of it. None: at home for a PEFT model, else sent.",
    ] = None
    test_collate_fn: Annotated[
        Collate | None,
        check.or_none(check.function),
        "that of the test data. None: collate_fn, or that of a DataLoader of test data.",
    ] = None
    overlap: Annotated[
        bool,
        check.flag,
        "send gradients during the backward pass. False: send them after it, for a program that "
        "calls backward several times for some batches and once for others.",
    ] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.test_data is None) != (self.evaluate is None):
            raise InvalidProgram(
                "test_data and evaluate must be given together, or neither of them"
            )


@dataclass(frozen=True, kw_only=True)
class KerasSettings(Settings):
    framework = "Keras"

    loss: Annotated[
        str | Callable[[Any, Any], Any] | None,
        check.anything,  # Keras checks it
        "the loss, in any form that Keras accepts. Not needed by a program that passes its own "
        "gradients to step.backward.",
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.test_data is not None and self.loss is None and self.evaluate is None:
            raise InvalidProgram("test_data need loss or evaluate: give one of them")


def own_settings(kind: type[Settings]) -> dict[str, tuple[Any, check.Check, str]]:
    """The type, the check and the meaning of each setting that this class adds."""
    annotations = inspect.get_annotations(kind)
    return {name: get_args(of) for name, of in annotations.items() if get_origin(of) is Annotated}
