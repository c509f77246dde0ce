"""Keras on JAX."""

import os
from collections.abc import Sequence
from typing import Any

import jax
import keras
import numpy as np

from .. import _gpus
from .engine import Engine


class Jax(Engine):
    """JAX computes without side effects: the functions take and return the variables' values."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._compiled_gradients = jax.jit(jax.value_and_grad(self._trace_gradients, has_aux=True))
        self._compiled_evaluate = jax.jit(self._trace_evaluate)
        self._compiled_apply = jax.jit(self.optimizer.stateless_apply)

    @staticmethod
    def describe(threads: int) -> str:
        text = f"jax {jax.__version__} threads={threads} flags={os.environ.get('XLA_FLAGS', '')}"
        device = jax.devices()[0]
        return text if device.platform == "cpu" else f"{text} {device.device_kind}"

    @staticmethod
    def gpu_problem() -> str | None:
        usable = jax.devices()[0].platform != "cpu"
        return _gpus.problem(f"jax {jax.__version__}", usable=usable)

    def gradients(self, batch: Any) -> tuple[float, np.ndarray, list[np.ndarray | None]]:
        model = self.model
        (_, (loss, counted, others)), gradients = self._compiled_gradients(
            _values(model.trainable_variables),
            _values(model.non_trainable_variables),
            _values(self.optimizer.variables),
            *self._parts(batch),
        )
        _set(model.non_trainable_variables, others)
        return float(loss), np.asarray(counted), [np.asarray(gradient) for gradient in gradients]

    def evaluate(self, batch: Any) -> tuple[float, np.ndarray]:
        model = self.model
        loss, counted = self._compiled_evaluate(
            _values(model.trainable_variables),
            _values(model.non_trainable_variables),
            *self._parts(batch),
        )
        return float(loss), np.asarray(counted)

    def apply(self, gradients: Sequence[np.ndarray]) -> None:
        variables, optimizer = self.model.trainable_variables, self.optimizer
        values, state = self._compiled_apply(
            _values(optimizer.variables), list(gradients), _values(variables)
        )
        _set(variables, values)
        _set(optimizer.variables, state)

    def array(self, tensor: Any) -> np.ndarray:
        return np.asarray(tensor.value if isinstance(tensor, keras.Variable) else tensor)

    def _trace_gradients(
        self, trained: Any, others: Any, optimizer: Any, inputs: Any, truth: Any, weight: Any
    ) -> tuple[Any, Any]:
        outputs, others, extra = self.model.stateless_call(
            trained, others, inputs, training=True, return_losses=True
        )
        loss, counted = self.objective(truth, outputs, weight, extra)
        pairs = list(zip(self.optimizer.variables, optimizer, strict=True))
        with keras.StatelessScope(state_mapping=pairs):
            scaled = self.optimizer.scale_loss(loss)
        return scaled, (loss, counted, others)

    def _trace_evaluate(
        self, trained: Any, others: Any, inputs: Any, truth: Any, weight: Any
    ) -> Any:
        outputs, _, extra = self.model.stateless_call(
            trained, others, inputs, training=False, return_losses=True
        )
        return self.objective(truth, outputs, weight, extra)


def _values(variables: Any) -> list[Any]:
    return [variable.value for variable in variables]


def _set(variables: Any, values: Any) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
