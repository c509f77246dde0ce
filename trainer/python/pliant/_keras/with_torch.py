"""Keras on PyTorch."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import torch

from .._torch.numerics import describe, gpu_problem, seed_all, settle
from .engine import Engine, converted


class Torch(Engine):
    @staticmethod
    def settle(threads: int, *, bitwise: bool) -> None:
        settle(threads, bitwise=bitwise)

    @staticmethod
    def describe(threads: int) -> str:
        return describe(threads)

    @staticmethod
    def gpu_problem() -> str | None:
        return gpu_problem()

    def gradients(self, batch: Any) -> tuple[float, np.ndarray, list[np.ndarray | None]]:
        inputs, truth, weight = self._tensors(batch)
        outputs = self.model(inputs, training=True)
        loss, counted = self.objective(truth, outputs, weight, self.model.losses)
        variables = [variable.value for variable in self.model.trainable_variables]
        scaled = self.optimizer.scale_loss(loss)
        gradients = torch.autograd.grad(scaled, variables, allow_unused=True)
        arrays = [None if gradient is None else self.array(gradient) for gradient in gradients]
        return float(loss.detach()), self.array(counted), arrays

    def evaluate(self, batch: Any) -> tuple[float, np.ndarray]:
        inputs, truth, weight = self._tensors(batch)
        with torch.no_grad():
            outputs = self.model(inputs, training=False)
            loss, counted = self.objective(truth, outputs, weight, self.model.losses)
            return float(loss), self.array(counted)

    def apply(self, gradients: Sequence[np.ndarray]) -> None:
        variables = self.model.trainable_variables
        tensors = [
            torch.from_numpy(gradient).to(variable.value)
            for gradient, variable in zip(gradients, variables, strict=True)
        ]
        with torch.no_grad():
            self.optimizer.apply(tensors, variables)

    def seed(self, seed: int) -> None:
        # Dropout of Keras on torch uses torch's own generator.
        seed_all(seed)

    def array(self, tensor: Any) -> np.ndarray:
        value = tensor.value if isinstance(tensor, keras.Variable) else tensor
        return value.detach().cpu().numpy()

    def _tensors(self, batch: Any) -> Any:
        return converted(self._parts(batch), keras.ops.convert_to_tensor)
