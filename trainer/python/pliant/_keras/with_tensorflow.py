"""Keras on TensorFlow."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from .. import _gpus
from .engine import Engine, converted


class TensorFlow(Engine):
    """Each function is traced once for each shape of a batch, never for a general shape, so the
    code that computes a shard does not depend on earlier shards."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._compiled_gradients = tf.function(self._trace_gradients)
        self._compiled_evaluate = tf.function(self._trace_evaluate)
        self._compiled_apply = tf.function(self._trace_apply)

    @staticmethod
    def settle(threads: int, *, bitwise: bool) -> None:
        if bitwise:
            tf.config.experimental.enable_op_determinism()

    @staticmethod
    def describe(threads: int) -> str:
        text = f"tensorflow {tf.__version__} threads={threads}"
        gpus = tf.config.list_physical_devices("GPU")
        if gpus:
            details = tf.config.experimental.get_device_details(gpus[0])
            text += f" gpu={details.get('device_name', 'unknown')}"
        return text

    @staticmethod
    def gpu_problem() -> str | None:
        usable = bool(tf.config.list_physical_devices("GPU"))
        return _gpus.problem(f"tensorflow {tf.__version__}", usable=usable)

    def gradients(self, batch: Any) -> tuple[float, np.ndarray, list[np.ndarray | None]]:
        loss, counted, gradients = self._compiled_gradients(*self._tensors(batch))
        arrays = [None if g is None else g.numpy() for g in gradients]
        return float(loss), counted.numpy(), arrays

    def evaluate(self, batch: Any) -> tuple[float, np.ndarray]:
        loss, counted = self._compiled_evaluate(*self._tensors(batch))
        return float(loss), counted.numpy()

    def apply(self, gradients: Sequence[np.ndarray]) -> None:
        self._compiled_apply([tf.constant(gradient) for gradient in gradients])

    def array(self, tensor: Any) -> np.ndarray:
        if isinstance(tensor, tf.IndexedSlices):
            tensor = tf.convert_to_tensor(tensor)
        return np.asarray(tensor.numpy())

    def _trace_gradients(
        self, inputs: Any, truth: Any, weight: Any
    ) -> tuple[Any, Any, list[Any]]:
        variables = [variable.value for variable in self.model.trainable_variables]
        with tf.GradientTape() as tape:
            outputs = self.model(inputs, training=True)
            loss, counted = self.objective(truth, outputs, weight, self.model.losses)
            scaled = self.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, variables)
        # The gradient of an embedding is IndexedSlices (rows).
        dense = [None if g is None else tf.convert_to_tensor(g) for g in gradients]
        return loss, counted, dense

    def _trace_evaluate(self, inputs: Any, truth: Any, weight: Any) -> tuple[Any, Any]:
        outputs = self.model(inputs, training=False)
        loss, counted = self.objective(truth, outputs, weight, self.model.losses)
        return loss, counted

    def _trace_apply(self, gradients: list[Any]) -> None:
        self.optimizer.apply(gradients, self.model.trainable_variables)

    def _tensors(self, batch: Any) -> Any:
        return converted(self._parts(batch), tf.convert_to_tensor)
