"""The interface to the frameworks below Keras: compiled functions for a batch's gradients, for its
loss, and for the optimizer's step. They exchange arrays in host memory."""

import abc
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from .._seeds import seed_python
from ..errors import InvalidProgram
from .objective import Objective


class Engine(abc.ABC):
    # Must be equal on all learners of a bitwise job.
    description = ""

    def __init__(
        self, model: keras.Model, optimizer: keras.optimizers.Optimizer, objective: Objective | None
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self._objective = objective

    @property
    def loss_is_mean(self) -> bool:
        """Over the samples of a batch. False: it is their sum."""
        return self._objective is None or self._objective.is_mean

    @staticmethod
    def settle(threads: int, *, bitwise: bool) -> None:
        """Configures the framework before the first computation: threads, where they can still be
        set, and deterministic operations for a bitwise job."""

    @staticmethod
    @abc.abstractmethod
    def describe(threads: int) -> str:
        """Versions and settings that the result's bits depend on."""

    @staticmethod
    @abc.abstractmethod
    def gpu_problem() -> str | None:
        """Why the container's GPUs cannot be used; None: they can, or there are none."""

    @abc.abstractmethod
    def gradients(self, batch: Any) -> tuple[float, np.ndarray, list[np.ndarray | None]]:
        """Forward and backward. Returns the loss, what the objective counts, and the gradients of
        the trainable variables. Updates the variables that the forward changes."""

    @abc.abstractmethod
    def evaluate(self, batch: Any) -> tuple[float, np.ndarray]:
        """The loss and what the objective counts, in evaluation mode."""

    @abc.abstractmethod
    def apply(self, gradients: Sequence[np.ndarray]) -> None:
        """Takes a step of the optimizer."""

    @abc.abstractmethod
    def array(self, tensor: Any) -> np.ndarray:
        """The values of a tensor or a variable, read-only."""

    def seed(self, seed: int) -> None:
        """Seeds the generators that belong to no layer."""
        seed_python(seed)

    def assign(self, variables: Sequence[Any], arrays: Sequence[np.ndarray]) -> None:
        for variable, array in zip(variables, arrays, strict=True):
            # A copy: a framework may keep the memory passed to it, and this memory is ours.
            variable.assign(array.copy())

    def _parts(self, batch: Any) -> tuple[Any, Any, Any]:
        """Inputs, truth, and weights or None."""
        inputs, truth, weight = parts_of(batch)
        if weight is not None and not self.objective.takes_weights:
            raise InvalidProgram("a sample of the data must be a pair: inputs, truth")
        return inputs, truth, weight

    @property
    def objective(self) -> Objective:
        if self._objective is None:
            raise InvalidProgram("there is no loss: give one to pliant.attach")
        return self._objective


def parts_of(batch: Any) -> tuple[Any, Any, Any]:
    """The inputs, the truth and the weights of a batch. None: there are no weights."""
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        raise InvalidProgram("a sample of the data must be a pair: inputs, truth")
    return batch[0], batch[1], batch[2] if len(batch) == 3 else None


def converted(parts: Any, convert: Callable[[Any], Any]) -> Any:
    """Parts of a batch, with each array converted."""
    return keras.tree.map_structure(lambda each: None if each is None else convert(each), parts)
