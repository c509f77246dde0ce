"""pliant.attach for every framework: finds the model's framework and documents the settings."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal, overload

from .errors import InvalidProgram
from .process import Guard

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    import keras
    import torch

    from ._keras import elastic as of_keras
    from ._loop import Elastic
    from ._settings import LossReduction, OnNonFinite
    from ._torch import elastic as of_torch
    from ._torch.batches import Collate


def is_keras(model: Any) -> bool:
    """Checked before torch: with the PyTorch backend a Keras model is also a torch.nn.Module.
    Raises InvalidProgram for a model of Keras 2."""
    keras = sys.modules.get("keras")
    if _is_of_keras_2(model, str(getattr(keras, "__version__", ""))):
        with Guard().beginning():
            raise InvalidProgram(
                "the model is of Keras 2 (tf_keras, or tf.keras of a TensorFlow before 2.16): "
                "Keras 3 is needed. tf.keras is Keras 3 from TensorFlow 2.16 on, unless "
                "TF_USE_LEGACY_KERAS is set"
            )
    return keras is not None and isinstance(model, keras.Model)


def _is_of_keras_2(model: Any, keras_version: str) -> bool:
    """Decided without importing Keras: only Keras 2 may be installed."""
    modules = [kind.__module__ for kind in type(model).__mro__ if kind.__name__ == "Model"]
    old: tuple[str, ...] = ("tf_keras.", "tensorflow.python.keras.")
    if keras_version.startswith("2."):
        old += ("keras.",)
    return any(f"{module}.".startswith(old) for module in modules)


# For editors and type checkers: copies of the signatures of the two frameworks' attach functions.
# tests/python/test_state.py compares them.
@overload
def attach(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    train_data: Any,
    *,
    epochs: int,
    batch_size: int | None = None,
    test_data: Any = None,
    evaluate: of_torch.Evaluate | None = None,
    collate: Collate | None = None,
    seed: int | None = None,
    logical_shards: int | None = None,
    drop_last: bool = False,
    loss_reduction: LossReduction = "mean",
    on_nonfinite: OnNonFinite = "stop",
    scaler: of_torch.Scaler | None = None,
    num_workers: int = 0,
    overlap: bool = True,
    threads: int | None = None,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    name: str | None = None,
) -> of_torch.TorchElastic: ...
@overload
def attach(
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer | str,
    train_data: Any,
    *,
    loss: str | Callable[[Any, Any], Any] | None = None,
    epochs: int,
    batch_size: int | None = None,
    test_data: Any = None,
    evaluate: of_keras.Evaluate | None = None,
    collate: Collate | None = None,
    seed: int | None = None,
    logical_shards: int | None = None,
    drop_last: bool = False,
    on_nonfinite: OnNonFinite = "stop",
    num_workers: int = 0,
    threads: int | None = None,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    name: str | None = None,
) -> of_keras.KerasElastic: ...
def attach(
    model: Any,
    optimizer: Any,
    train_data: Any,
    *,
    epochs: int,
    batch_size: int | None = None,
    test_data: Any = None,
    evaluate: Callable[[Any], Any] | None = None,
    loss: str | Callable[[Any, Any], Any] | None = None,
    collate: Collate | None = None,
    seed: int | None = None,
    logical_shards: int | None = None,
    drop_last: bool = False,
    loss_reduction: Literal["mean", "sum"] = "mean",
    on_nonfinite: Literal["stop", "skip", "warn"] = "stop",
    scaler: Any = None,
    num_workers: int = 0,
    overlap: bool = True,
    threads: int | None = None,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    name: str | None = None,
) -> Elastic[Any]:
    """Makes the training of a torch.nn.Module or a keras.Model elastic.

    In a pod of an ElasticTrainingJob the job decides who trains. Elsewhere this process trains
    alone, with the same result, writes checkpoints, and resumes from the newest one it finds.
    Iterate `steps()` of the returned object. Raises InvalidProgram if an argument is wrong.

    Arguments:
        model: the model, complete (all parameters and buffers exist) and on one device.
        optimizer: PyTorch: any optimizer whose step needs only gradients, so not LBFGS. Keras: an
            optimizer or its name.
        train_data: a map-style dataset (`__len__`, `__getitem__`), or one with `__len__` and
            `stream(shard, start)` (see StreamShard); with Keras also arrays (inputs, truth).
        epochs: passes over the training data.
        batch_size: samples of the global batch, over all learners. None: the job's or, alone, 256.
        test_data: like train_data; evaluated after each epoch.
        evaluate: called with a batch of the test data, in evaluation mode and without gradients.
            Returns the loss, or a pair: the loss and the number of correct samples. Optional with
            Keras: without it, `loss` is used.
        loss: Keras only: the loss, in any form that Keras accepts. Not needed by a program that
            passes its own gradients to step.backward.
        collate: makes a batch from a list of samples, like DataLoader's collate_fn.
        seed: seed of the order of the data and of random numbers drawn in a batch. None: the
            job's, else 0. It does not initialize the model: seed the framework before you build it.
        logical_shards: number of parts that a batch is computed in, a power of two; the result
            depends on it. None: the job's or, alone, 1.
        drop_last: leave out the samples that do not fill an epoch's last batch. Otherwise that
            batch is smaller, and BatchNorm fails on a shard of one sample.
        loss_reduction: PyTorch only: how the loss is reduced over a batch, "mean" or "sum".
        on_nonfinite: action for a step whose loss or gradient is not finite: "stop" (exit code 2),
            "skip" (at most 100 in a row) or "warn". With a scaler it applies to the loss only: the
            scaler itself skips steps while it searches for its scale.
        scaler: PyTorch only: a torch.amp.GradScaler.
        num_workers: processes that load data ahead. 0: data are loaded between two batches.
        overlap: PyTorch only: send gradients during the backward pass. False: send them after it,
            for a program that calls backward several times for some batches and once for others.
        threads: CPU threads of each operation; the result depends on it. None: OMP_NUM_THREADS,
            else 1.
        checkpoint_dir: folder of checkpoints. None: PLIANT_CHECKPOINT_DIR, else ./checkpoints.
            Ignored in a job, which uses its volume.
        name: name of the training in logs. None: the model's.
    """
    common = {
        "epochs": epochs,
        "batch_size": batch_size,
        "test_data": test_data,
        "evaluate": evaluate,
        "collate": collate,
        "seed": seed,
        "logical_shards": logical_shards,
        "drop_last": drop_last,
        "on_nonfinite": on_nonfinite,
        "num_workers": num_workers,
        "threads": threads,
        "checkpoint_dir": checkpoint_dir,
        "name": name,
    }
    of_torch_only = {"loss_reduction": loss_reduction, "scaler": scaler, "overlap": overlap}
    if is_keras(model):
        defaults = {"loss_reduction": "mean", "scaler": None, "overlap": True}
        for setting, value in of_torch_only.items():
            if value is not defaults[setting] and value != defaults[setting]:
                _refuse(f"{setting} is for PyTorch models, and this is a Keras model: leave it out")
        from ._keras.elastic import attach as attach_keras

        return attach_keras(model, optimizer, train_data, loss=loss, **common)
    if loss is not None:
        _refuse(
            "loss is for Keras models, and this is not one: with a PyTorch model the loop computes "
            "the loss and calls step.backward(loss)"
        )
    from ._torch.elastic import attach as attach_torch

    return attach_torch(model, optimizer, train_data, **of_torch_only, **common)


def _refuse(message: str) -> None:
    with Guard().beginning():
        raise InvalidProgram(message)
