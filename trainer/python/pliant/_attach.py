"""Which framework a model is of."""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._loop import Elastic


def is_keras(model: Any) -> bool:
    """On PyTorch a Keras model is a torch module, too."""
    keras = sys.modules.get("keras")
    return keras is not None and isinstance(model, keras.Model)


def attach(model: Any, optimizer: Any, train_data: Any, **settings: Any) -> "Elastic[Any]":
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
