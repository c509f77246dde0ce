"""The loss of a batch, and what is counted in it, in operations of Keras' backend."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from ..errors import InvalidProgram


class Objective:
    """A loss in any form that Keras accepts: a name, a function of (truth, prediction), or a
    keras.losses.Loss. If it returns one number per sample, their mean is the loss. The correct
    samples are counted."""

    takes_weights = False  # of samples

    def __init__(self, loss: str | Callable[[Any, Any], Any]) -> None:
        try:
            self._loss = keras.losses.get(loss)
        except ValueError as error:
            raise InvalidProgram(f"the loss: {error}") from None
        if not callable(self._loss):
            raise InvalidProgram(f"the loss is {loss!r}: a name, a function or a keras loss")
        # False: the loss is the sum over the samples of the batch.
        self.is_mean = getattr(self._loss, "reduction", None) != "sum"

    def __call__(
        self, truth: Any, prediction: Any, weight: Any, extra: Sequence[Any]
    ) -> tuple[Any, Any]:
        """The loss and a vector of what is counted. `weight`: of each sample; None: there are none.
        `extra`: losses that layers add (regularizers)."""
        loss = ops.mean(self._loss(truth, prediction))
        return with_extra(loss, extra), ops.reshape(correct_of(truth, prediction), (1,))

    def figures(self, counted: np.ndarray) -> dict[str, float]:
        """Names of what was counted in a batch: named sums, and `correct`."""
        return {"correct": float(counted[0])}


def objective_of(loss: Any) -> Objective | None:
    return loss if loss is None or isinstance(loss, Objective) else Objective(loss)


def with_extra(loss: Any, extra: Sequence[Any]) -> Any:
    for each in extra:
        loss = loss + ops.cast(each, loss.dtype)
    return loss


def correct_of(truth: Any, prediction: Any) -> Any:
    """The number of correct samples if predictions are scores of classes, else 0. A tensor."""
    none = ops.zeros((), "float32")
    if not hasattr(prediction, "shape") or not hasattr(truth, "shape"):
        return none
    if len(prediction.shape) != 2 or prediction.shape[1] < 2:
        return none
    if len(truth.shape) == 2 and truth.shape[1] == prediction.shape[1]:
        truth = ops.argmax(truth, axis=1)
    elif len(truth.shape) == 2 and truth.shape[1] == 1:
        truth = ops.squeeze(truth, 1)
    elif len(truth.shape) != 1:
        return none
    right = ops.equal(ops.cast(truth, "int64"), ops.cast(ops.argmax(prediction, axis=1), "int64"))
    return ops.sum(ops.cast(right, "float32"))
