"""Refuses a Trainer that does what an elastic training cannot do, before anything is trained."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import transformers

from .._learner import Job
from .._say import say
from .._torch.batches import size_of
from ..errors import InvalidProgram
from .sizes import Sizes

# The versions that the tests use.
_OLDEST, _NEWEST = (5, 5), (5, 24)

# Method of Trainer that is replaced on the instance → its parameters in the tested versions.
SEAMS = {
    "train": ("resume_from_checkpoint", "trial", "ignore_keys_for_eval"),
    "get_train_dataloader": (),
    "get_total_train_batch_size": ("args",),
    "_prepare_for_training": ("max_steps", "train_dataloader", "resume_from_checkpoint"),
    "_run_epoch": (
        "model",
        "epoch",
        "train_dataloader",
        "steps_in_epoch",
        "num_update_steps_per_epoch",
        "trial",
        "ignore_keys_for_eval",
        "start_time",
        "resume_from_checkpoint",
        "epochs_trained",
        "steps_trained_in_current_epoch",
    ),
    "get_batch_samples": ("epoch_iterator", "num_batches", "device"),
    "training_step": ("model", "inputs", "num_items_in_batch"),
    "_clip_grad_norm": ("model",),
    "_get_grad_norm": ("model", "grad_norm"),
    "floating_point_ops": ("inputs",),
    "_track_num_input_tokens": ("inputs",),
    "_finalize_training": ("trial", "num_train_samples", "start_time"),
    "_save_checkpoint": ("model", "trial"),
    "_load_best_model": (),
    "save_model": ("output_dir", "_internal_call"),
    "is_world_process_zero": (),
    "is_local_process_zero": (),
}
# Methods in which another class draws its batches, or loops over them, itself.
_OF_THE_LOOP = ("get_train_dataloader", "get_batch_samples", "_inner_training_loop", "_run_epoch")

_SETTINGS = (
    "logical_shards",
    "on_nonfinite",
    "threads",
    "checkpoint_dir",
    "checkpoint_every_steps",
    "name",
    "frozen",
    "overlap",
)


def check(trainer: Any, settings: Mapping[str, Any]) -> None:
    """Raises InvalidProgram, with the remedy."""
    if not isinstance(trainer, transformers.Trainer):
        raise InvalidProgram(
            f"elastic(trainer) was given a {type(trainer).__name__}: give a transformers.Trainer"
        )
    for name in settings:
        if name not in _SETTINGS:
            raise InvalidProgram(
                f"elastic(trainer) has no setting {name!r}: it has {', '.join(_SETTINGS)}; what "
                "the TrainingArguments say is taken from there"
            )
    check_version(transformers.__version__, transformers.Trainer)
    _check_class(type(trainer))
    for applies, why in _REFUSED:
        if applies(trainer):
            raise InvalidProgram(why)
    size_of(trainer.train_dataset, "training")
    Sizes.of(trainer.args).check()


def check_job(trainer: Any, job: Job) -> None:
    """Raises InvalidProgram if learners could decide differently. Each evaluates on its own, and only
    in a bitwise job with the same bits."""
    by_metric = trainer.args.metric_for_best_model is not None or hasattr(
        trainer.lr_scheduler, "best"
    )
    if by_metric and not job.alone and not job.bitwise:
        raise InvalidProgram(
            "the training depends on a metric of its evaluations (metric_for_best_model, or a "
            "schedule such as ReduceLROnPlateau), whose last bit may differ from learner to learner "
            "in this job: set spec.training.reproducibility to Bitwise, or take it out"
        )


def check_version(version: str, kind: type) -> None:
    """Raises InvalidProgram if this Trainer lacks a method that is replaced. Says if it is newer
    than those that were tested, or other."""
    for name, parameters in SEAMS.items():
        method = getattr(kind, name, None)
        if method is None:
            raise InvalidProgram(
                f"transformers {version} has no Trainer.{name}: Pliant needs a version from "
                f"{_text(_OLDEST)} to {_text(_NEWEST)}: pip install "
                f"'transformers>={_text(_OLDEST)},<={_text(_NEWEST)}.99'"
            )
        found = tuple(inspect.signature(method).parameters)[1:]
        if found != parameters:
            say(
                f"Trainer.{name} of transformers {version} takes {', '.join(found) or 'nothing'}, "
                f"where the tested versions ({_text(_OLDEST)} to {_text(_NEWEST)}) take "
                f"{', '.join(parameters) or 'nothing'}"
            )
    numbers = version.split(".")[:2]
    if all(each.isdigit() for each in numbers) and tuple(map(int, numbers)) > _NEWEST:
        say(f"transformers {version} is newer than the tested versions, up to {_text(_NEWEST)}")


def _text(version: Iterable[int]) -> str:
    return ".".join(map(str, version))


def _check_class(kind: type) -> None:
    for base in kind.__mro__:
        if base is transformers.Trainer:
            return
        for name in _OF_THE_LOOP:
            if name in vars(base):
                raise InvalidProgram(
                    f"{base.__name__} has a {name} of its own, so its batches are not those of "
                    "train_dataset: a trainer that generates or draws its batches cannot be "
                    "elastic"
                )


_REFUSED: tuple[tuple[Callable[[Any], Any], str], ...] = (
    (
        lambda trainer: trainer.args.world_size > 1,
        "the script runs in several processes (torchrun, accelerate launch): start it with "
        "python; Pliant's learners are the processes",
    ),
    (
        lambda trainer: trainer.args.n_gpu > 1,
        "the Trainer divides a batch among several GPUs of this process: give a GPU to each "
        "learner (CUDA_VISIBLE_DEVICES=0)",
    ),
    (
        lambda trainer: trainer.is_fsdp_enabled or trainer.args.fsdp,
        "fsdp spreads the model over processes: take it out; each learner has the whole model",
    ),
    (
        lambda trainer: trainer.is_deepspeed_enabled,
        "deepspeed spreads the training over processes: take it out of the TrainingArguments",
    ),
    (
        lambda trainer: trainer.is_model_parallel,
        "the model is spread over several devices (device_map): load it onto one",
    ),
    (
        lambda trainer: trainer.args.auto_find_batch_size,
        "auto_find_batch_size changes the batch from learner to learner: set "
        "per_device_train_batch_size",
    ),
    (
        lambda trainer: str(getattr(trainer.args.optim, "value", trainer.args.optim)).startswith(
            ("lomo", "adalomo", "schedule_free")
        ),
        "this optim changes the parameters outside its step: choose another one, such as adamw_torch",
    ),
    (
        lambda trainer: getattr(trainer.data_collator, "seed", None) is not None,
        "the data collator has a seed, so what it draws depends on the batches that this process "
        "made before: take the seed out of it; Pliant seeds each batch",
    ),
    (
        lambda trainer: getattr(trainer.args, "sync_ref_model", False),
        "sync_ref_model changes the reference model while it trains, but its parameters are not part "
        "of the training's state: take it out",
    ),
    (
        lambda trainer: trainer.train_dataset is None,
        "the Trainer has no train_dataset",
    ),
)
