"""The variables of a model and its optimizer, and their copies in registered host memory.

The seeds of dropout and augmentation layers are not state: they are set for each shard.
"""

import ctypes
from typing import Any

import keras
import numpy as np

from .. import _native
from .._learner import Commit, Learner
from .._states import States
from .._plain_state import PlainMemory
from .._seeds import mix
from ..errors import InvalidProgram
from .engine import Engine
from .names import names_of_optimizer, names_of_weights

_MAX_SEED = (1 << 31) - 1  # fits every type that a seed may have


class Mirrors:
    """Variables and their copies in host memory."""

    def __init__(self, engine: Engine, variables: list[Any], names: list[str]) -> None:
        self._engine = engine
        self.variables = variables
        self._names = names
        self.arrays = [np.array(engine.array(v), order="C", copy=True) for v in variables]

    def register(self, learner: Learner, role: int) -> None:
        for name, array in zip(self._names, self.arrays, strict=True):
            learner.register(
                name,
                role=role,
                dtype=array.dtype.name,
                shape=array.shape,
                address=array.ctypes.data,
            )

    def save(self) -> None:
        """Copies the variables' values to host memory."""
        for variable, array in zip(self.variables, self.arrays, strict=True):
            np.copyto(array, self._engine.array(variable))

    def changed(self) -> str | None:
        """The name of a variable whose values differ from those in host memory; None: no
        variable."""
        for name, variable, array in zip(self._names, self.variables, self.arrays, strict=True):
            if not np.array_equal(self._engine.array(variable), array, equal_nan=True):
                return name
        return None

    def restore(self) -> None:
        """Copies the values in host memory to the variables."""
        self._engine.assign(self.variables, self.arrays)


class ModelState:
    """The complete state that a learner needs to continue bit for bit."""

    def __init__(
        self, engine: Engine, model: keras.Model, optimizer: keras.optimizers.Optimizer
    ) -> None:
        trained = list(model.trainable_variables)
        if not trained:
            raise InvalidProgram("no variable of the model is trainable: there is nothing to train")
        of_model = {id(variable) for variable in model.weights}
        of_metrics = {id(variable) for variable in model.metrics_variables}
        frozen = _frozen_of(model)
        others = [v for v in model.weights if not v.trainable and id(v) not in frozen]
        optimizer.build(trained)
        of_optimizer = list(optimizer.variables)
        names = names_of_weights(model)
        self.parameters = Mirrors(engine, trained, [f"model.{names[id(v)]}" for v in trained])
        self._buffers = Mirrors(engine, others, [f"model.{names[id(v)]}" for v in others])
        kept = list(frozen.values())
        self._frozen = Mirrors(engine, kept, [f"model.{names[id(v)]}" for v in kept])
        names_there = names_of_optimizer(of_optimizer, trained, names)
        self._optimizer = Mirrors(engine, of_optimizer, [f"optimizer.{n}" for n in names_there])
        self._seeds = [
            variable
            for variable in model.non_trainable_variables
            if id(variable) not in of_model and id(variable) not in of_metrics
        ]
        self.others = States()
        self._plain = PlainMemory()

    def register(self, learner: Learner) -> None:
        # Callbacks may have changed what was copied when the training was attached.
        for mirrors in (self.parameters, self._buffers, self._frozen, self._optimizer):
            mirrors.save()
        self.parameters.register(learner, _native.PARAMETER)
        self._buffers.register(learner, _native.BUFFER)
        # STATE, not BUFFER: no forward changes them, so only joining learners need them.
        self._frozen.register(learner, _native.STATE)
        self._optimizer.register(learner, _native.STATE)
        self._plain.register(learner, self._values)

    def set_seeds(self, seed: int) -> None:
        for i, variable in enumerate(self._seeds):
            words = [mix(seed, i, j) & _MAX_SEED for j in range(variable.shape[0])]
            variable.assign(np.array(words).astype(str(variable.dtype)))

    def restore_buffers(self) -> None:
        """Before a forward: sets the buffers to their committed values."""
        self._buffers.restore()

    def save_buffers(self) -> None:
        """After the forward of shard 0, whose buffers become the step's."""
        self._buffers.save()

    def save(self) -> None:
        """After a commit: writes the state to the registered memory."""
        self.parameters.save()
        self._buffers.save()
        self._optimizer.save()
        self._plain.write(self._values())

    def _values(self) -> dict[str, Any]:
        return {"registered": self.others.plain()}

    def check_frozen(self) -> None:
        """Raises InvalidProgram if a frozen weight changed. Called only at the end of an epoch,
        because a check of all takes as long as a copy."""
        name = self._frozen.changed()
        if name is not None:
            raise InvalidProgram(
                f"the weight {name.removeprefix('model.')} is frozen, but was changed: learners "
                "that join would have its initial values. Keep a value that changes in a weight "
                "made with add_weight(trainable=False), or register it"
            )

    def loaded(self) -> None:
        """Copies the state from the registered memory, which was replaced."""
        for mirrors in (self.parameters, self._buffers, self._frozen, self._optimizer):
            mirrors.restore()
        self.others.restore(self._plain.read()["registered"])


def _frozen_of(model: keras.Model) -> dict[int, Any]:
    """The weights that were created trainable and are not trained now, by identity. A forward may
    change only the other weights that are not trained (BatchNorm's averages, counts)."""
    made_to_be_trained = {
        id(variable) for layer in model._flatten_layers() for variable in layer._trainable_variables
    }
    return {
        id(variable): variable
        for variable in model.weights
        if not variable.trainable and id(variable) in made_to_be_trained
    }


class Gradients:
    """Passes a shard's gradients to the reduction, and holds the reduced gradient."""

    def __init__(self, parameters: Mirrors) -> None:
        self._shapes = [array.shape for array in parameters.arrays]
        self._elements = sum(array.size for array in parameters.arrays)
        self.reduced = np.zeros(self._elements, np.float32)

    def hand_in(
        self, learner: Learner, address: int, gradients: list[np.ndarray | None], scale: float
    ) -> bool:
        """Writes the gradients, times `scale`, to the shard's memory. False: no parameter has
        one."""
        if len(gradients) != len(self._shapes):
            raise InvalidProgram(
                f"{len(gradients)} gradients were given for {len(self._shapes)} trainable variables"
            )
        memory = _native.floats_at(address, self._elements)
        slots = self._parts(np.frombuffer(memory, np.float32))
        for i, (slot, gradient) in enumerate(zip(slots, gradients, strict=True)):
            if gradient is None:
                continue
            if gradient.shape != slot.shape:
                raise InvalidProgram(
                    f"a gradient is of the shape {gradient.shape}, its variable of {slot.shape}"
                )
            np.multiply(gradient, np.float32(scale), out=slot, casting="unsafe")
            learner.gradients_ready(i, 1)
        return any(gradient is not None for gradient in gradients)

    def set_reduced(self, commit: Commit) -> None:
        if commit.gradient_elements != self._elements:
            raise AssertionError("the reduced gradient has another size than the parameters")
        ctypes.memmove(self.reduced.ctypes.data, commit.gradient, 4 * self._elements)
        if commit.mean_factor != 1:
            self.reduced *= np.float32(commit.mean_factor)

    def finite(self) -> bool:
        """Whether the reduced gradient is finite."""
        return bool(np.isfinite(np.sum(self.reduced, dtype=np.float64)))

    def clip(self, learner: Learner, max_norm: float) -> None:
        norm = learner.gradient_norm([part.ctypes.data for part in self.parts()])
        if norm > max_norm:
            self.reduced *= np.float32(max_norm / norm)

    def parts(self) -> list[np.ndarray]:
        """The reduced gradient, by variable."""
        return self._parts(self.reduced)

    def _parts(self, flat: np.ndarray) -> list[np.ndarray]:
        parts, offset = [], 0
        for shape in self._shapes:
            size = int(np.prod(shape, dtype=np.int64))
            parts.append(flat[offset : offset + size].reshape(shape))
            offset += size
        return parts
