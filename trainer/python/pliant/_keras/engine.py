"""What differs between the frameworks below Keras: compiled functions for a batch's gradients, for
its loss, and for the optimizer's step. Between them there are arrays in host memory."""

import abc
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from .._seeds import seed_python
from ..errors import InvalidProgram
from .objective import Objective


class Engine(abc.ABC):
    # Of which learners of a bitwise job must have the same.
    description = ""

    def __init__(
        self, model: keras.Model, optimizer: keras.optimizers.Optimizer, objective: Objective | None
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self._objective = objective

    @staticmethod
    def settle(threads: int, *, bitwise: bool) -> None:
        """What is the framework's own, before anything is computed: threads where they can still be
        set and, of a bitwise job, deterministic operations."""

    @staticmethod
    @abc.abstractmethod
    def describe(threads: int) -> str:
        """Versions and settings that the bits depend on."""

    @staticmethod
    @abc.abstractmethod
    def gpu_problem() -> str | None:
        """Why the container's GPUs cannot be used; None: they can, or there are none."""

    @abc.abstractmethod
    def gradients(self, batch: Any) -> tuple[float, float, list[np.ndarray | None]]:
        """Forward and backward. The loss, how many samples are right, and the gradients of the
        trainable variables. Variables that the forward changes are changed."""

    @abc.abstractmethod
    def evaluate(self, batch: Any) -> tuple[float, float]:
        """The loss and how many samples are right, in evaluation mode."""

    @abc.abstractmethod
    def apply(self, gradients: Sequence[np.ndarray]) -> None:
        """A step of the optimizer."""

    @abc.abstractmethod
    def array(self, tensor: Any) -> np.ndarray:
        """The values of a tensor or a variable, for reading."""

    def seed(self, seed: int) -> None:
        """Generators that belong to no layer."""
        seed_python(seed)

    def assign(self, variables: Sequence[Any], arrays: Sequence[np.ndarray]) -> None:
        for variable, array in zip(variables, arrays, strict=True):
            # A copy: a framework may keep the memory that it is given, and this is not its own.
            variable.assign(array.copy())

    def _objective_at_hand(self) -> Objective:
        if self._objective is None:
            raise InvalidProgram("pliant.attach was given no loss: it needs one for this")
        return self._objective


def parts_of(batch: Any) -> tuple[Any, Any]:
    """Inputs and truth."""
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise InvalidProgram("a sample of the data must be a pair: inputs, truth")
    return batch[0], batch[1]
