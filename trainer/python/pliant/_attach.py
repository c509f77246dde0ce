"""Which framework a model is of."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, overload

from .errors import InvalidProgram
from .process import Guard

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from typing import Literal

    import keras
    import torch

    from ._keras import elastic as of_keras
    from ._loop import Elastic, OnNonFinite
    from ._torch import elastic as of_torch
    from ._torch.batches import Collate


def is_keras(model: Any) -> bool:
    """On PyTorch a Keras model is a torch module, too. InvalidProgram: it is of Keras 2."""
    keras = sys.modules.get("keras")
    if _is_of_keras_2(model, str(getattr(keras, "__version__", ""))):
        Guard()  # whose hook turns what nobody catches into the exit code of a wrong program
        raise InvalidProgram(
            "the model is of Keras 2 (tf_keras, or tf.keras of a TensorFlow before 2.16): Keras 3 "
            "is needed, as tf.keras is from 2.16 on where TF_USE_LEGACY_KERAS is not set"
        )
    return keras is not None and isinstance(model, keras.Model)


def _is_of_keras_2(model: Any, keras_version: str) -> bool:
    """Told without an import: where there is Keras 2, there may be nothing else."""
    modules = [kind.__module__ for kind in type(model).__mro__ if kind.__name__ == "Model"]
    old: tuple[str, ...] = ("tf_keras.", "tensorflow.python.keras.")
    if keras_version.startswith("2."):
        old += ("keras.",)
    return any(f"{module}.".startswith(old) for module in modules)


# For editors and type checkers. What counts are the functions that these stand for, of which they
# are copies: tests/python/test_state.py compares them.
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
    loss_reduction: Literal["mean", "sum"] = "mean",
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
def attach(model: Any, optimizer: Any, train_data: Any, **settings: Any) -> Elastic[Any]:
    """Makes a training elastic: of a torch.nn.Module or of a keras.Model.

    In a pod of an ElasticTrainingJob the job decides who trains. Elsewhere this process trains
    alone, with the same result, writes checkpoints, and goes on from the newest that it finds.
    `settings` are in docs/python.md; those of one framework only are named there.
    """
    if is_keras(model):
        from ._keras.elastic import attach as attach_keras

        return attach_keras(model, optimizer, train_data, **settings)
    from ._torch.elastic import attach as attach_torch

    return attach_torch(model, optimizer, train_data, **settings)
