"""The loss and the metrics of `model.compile`, added up over the shards of a step."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from ..errors import InvalidProgram
from .engine import parts_of
from .objective import Objective, correct_of, with_extra

_MAX_NUMBERS = 32  # named sums of a step
SUMS = "keras/"  # their names begin so, and have a number


class CompiledObjective(Objective):
    """The model's own loss, by its own weights; its metrics are counted. A variable of a metric is
    a sum over samples, so a batch of shards is counted shard by shard."""

    takes_weights = True

    def __init__(self, model: keras.Model, batch: Any) -> None:
        """`batch`: one sample, by which losses and metrics find their outputs."""
        _check_methods(model)
        _check_outputs(model, batch)
        model._symbolic_build(data_batch=parts_of(batch))
        self._model = model
        self._loss = model._compile_loss
        self._metrics = model._compile_metrics
        self.is_mean = True
        _check_losses(_losses_of(self._loss))
        self._variables = [
            variable for metric in self._parts() for variable in _summed(metric)
        ]
        self.numbers = sum(int(np.prod(each.shape)) for each in self._variables)
        if self.numbers > _MAX_NUMBERS:
            raise InvalidProgram(
                f"the metrics of the model have {self.numbers} numbers, of which a step can add up "
                f"{_MAX_NUMBERS}: leave out {self._largest()}, and compute it in a callback from "
                "model.predict"
            )

    def _parts(self) -> list[Any]:
        """The metrics, and the losses of several outputs."""
        return [*self._loss.metrics, *([] if self._metrics is None else self._metrics.metrics)]

    def _largest(self) -> str:
        def numbers(metric: Any) -> int:
            return sum(int(np.prod(each.shape)) for each in metric.variables)

        return str(max(self._parts(), key=numbers).name)

    def __call__(
        self, truth: Any, prediction: Any, weight: Any, extra: Sequence[Any]
    ) -> tuple[Any, Any]:
        nothing = [(each, ops.zeros(each.shape, each.dtype)) for each in self._variables]
        with keras.StatelessScope(state_mapping=nothing) as scope:
            loss = self._loss(truth, prediction, weight)
            if self._metrics is not None:
                self._metrics.update_state(truth, prediction, weight)
        values = [scope.get_current_value(each) for each in self._variables]
        counted = [correct_of(truth, prediction), *values]
        vector = ops.concatenate([ops.reshape(ops.cast(each, "float32"), (-1,)) for each in counted])
        return with_extra(loss, [ops.sum(each) for each in extra]), vector

    def figures(self, counted: np.ndarray) -> dict[str, float]:
        correct, *numbers = map(float, counted)
        return {"correct": correct, **{_name(index): each for index, each in enumerate(numbers)}}

    def counted(self, sums: Mapping[str, float]) -> np.ndarray:
        """The other way round; what is missing counts as 0."""
        return np.array([sums.get(_name(index), 0.0) for index in range(self.numbers)])

    def results(self, counted: np.ndarray, loss_sum: float, samples: float) -> dict[str, float]:
        """What Keras logs of so many samples: the loss and the metrics by name. The model's metrics
        have these values afterwards."""
        place = 0
        for variable in self._variables:
            size = int(np.prod(variable.shape))
            part = counted[place : place + size].reshape(variable.shape)
            variable.assign(part.astype(str(variable.dtype)))
            place += size
        tracker = self._model._loss_tracker
        tracker.total.assign(loss_sum)
        tracker.count.assign(samples)
        found = self._model.get_metrics_result()
        return {str(name): float(value) for name, value in found.items()}


def _name(index: int) -> str:
    return f"{SUMS}{index}"


def _check_methods(model: keras.Model) -> None:
    for name in ("train_step", "test_step", "compute_loss", "compute_metrics"):
        own = getattr(type(model), name, None)
        if own is not getattr(keras.Model, name, None) and own is not getattr(
            keras.Sequential, name, None
        ):
            raise InvalidProgram(
                f"{type(model).__name__} has a {name} of its own, which fit would not call: train "
                "it in a loop of your own, with pliant.attach and step.backward(loss, gradients)"
            )


def _check_outputs(model: keras.Model, batch: Any) -> None:
    inputs = keras.tree.map_structure(ops.convert_to_tensor, parts_of(batch)[0])
    outputs = keras.tree.flatten(model(inputs, training=False))
    if any(getattr(each, "_keras_mask", None) is not None for each in outputs):
        raise InvalidProgram(
            "the model's output has a mask, so its loss is a mean over what is not masked, which "
            "differs from shard to shard: train it in a loop of your own, with "
            "step.backward(loss, gradients, weight=...)"
        )


def _losses_of(compiled: Any) -> list[Any]:
    found = compiled._flat_losses or []
    return [getattr(each, "loss", each) for each in found]


def _check_losses(losses: Sequence[Any]) -> None:
    for loss in losses:
        reduction = getattr(loss, "reduction", "sum_over_batch_size")
        if reduction not in ("sum_over_batch_size", "mean", None):
            raise InvalidProgram(
                f"the loss {getattr(loss, 'name', loss)} has reduction={reduction!r}: fit needs a "
                "mean over the samples, sum_over_batch_size"
            )


def _summed(metric: Any) -> list[Any]:
    for variable in metric.variables:
        if getattr(variable, "aggregation", "sum") != "sum":
            raise InvalidProgram(
                f"the metric {metric.name} is no sum over the samples, so it cannot be added up "
                "over learners: leave it out, and compute it in a callback from model.predict"
            )
    return list(metric.variables)
