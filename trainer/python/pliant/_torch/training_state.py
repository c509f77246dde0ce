"""The complete state that a learner needs to continue bit for bit: model, optimizer, and other
registered state."""

from collections.abc import Iterator
from typing import Any

import torch

from .. import _native
from .._learner import Learner
from .._states import Stateful, States
from .._plain_state import PlainMemory
from ..errors import InvalidProgram
from .mirror import Mirror, RareChanges
from .model_tensors import ModelTensors
from .optimizer_state import OptimizerState


class TrainingState:
    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._model = ModelTensors(model)
        self._frozen = RareChanges(self._model.frozen.values())
        self._optimizer = OptimizerState(optimizer, self._model.names)
        self._others = States()
        self._plain = PlainMemory()

    @property
    def parameters(self) -> list[torch.Tensor]:
        """The parameters that are trained."""
        return self._model.trained

    def add(self, name: str, what: Stateful) -> None:
        if isinstance(what, torch.optim.Optimizer):
            raise InvalidProgram(
                f"{name} is an optimizer, which cannot be registered: step.commit() steps one, the "
                "one that pliant.attach is given. Put all parameters into it, in groups "
                "(torch.optim.Adam([{'params': a.parameters(), 'lr': 1e-3}, ...])). If a step must "
                "not change some, set their grad to None before step.commit()"
            )
        self._others.add(name, what)

    def register(self, learner: Learner) -> None:
        """Registers the whole state with the learner."""

        def tell(name: str, mirror: Mirror, role: int) -> None:
            host = mirror.host
            learner.register(
                name,
                role=role,
                dtype=str(host.dtype).removeprefix("torch."),
                shape=tuple(host.shape),
                address=host.data_ptr(),
            )

        self._model.end_step()  # takes over tensors that the program replaced since `attach`
        for mirror in self._mirrors():
            mirror.save()
        for name, mirror in self._model.parameters.items():
            tell(f"model.{name}", mirror, _native.PARAMETER)
        for name, mirror in self._model.buffers.items():
            tell(name, mirror, _native.BUFFER)
        for name, mirror in self._model.frozen.items():
            tell(f"model.{name}", mirror, _native.STATE)
        for name, mirror in self._optimizer.tensors():
            tell(name, mirror, _native.STATE)
        self._plain.register(learner, self._values)

    def _mirrors(self) -> Iterator[Mirror]:
        """The mirrors of the model's tensors."""
        for mirrors in (self._model.parameters, self._model.frozen, self._model.buffers):
            yield from mirrors.values()

    # ---- While it trains ----

    def begin_batch(self) -> None:
        """Before a forward: buffers outside host memory get their committed values."""
        self.restore_buffers()
        self._model.begin_batch()

    def end_batch(self, *, keeps_buffers: bool) -> None:
        """After a batch of training. `keeps_buffers`: the batch's buffers become the step's."""
        self._model.end_batch()
        if keeps_buffers:
            for mirror in self._model.buffers.values():
                mirror.save()

    def end_evaluation(self) -> None:
        """After a batch of the test data."""
        self._model.end_evaluation()

    def restore_buffers(self) -> None:
        for mirror in self._model.buffers.values():
            mirror.restore()

    def save(self) -> None:
        """After a commit: writes the whole state to the registered memory."""
        self._model.end_step()
        self._optimizer.take_over()
        for mirror in self._model.parameters.values():
            mirror.save()
        self._frozen.save()
        self._plain.write(self._values())

    def loaded(self) -> None:
        """Copies the state from the registered memory, which was replaced."""
        for mirror in self._mirrors():
            mirror.restore()
        self._frozen.restore()
        values = self._plain.read()
        self._optimizer.restore(values["optimizer"])
        self._others.restore(values["others"])

    def _values(self) -> dict[str, Any]:
        """The part of the state that is not in tensors."""
        return {"optimizer": self._optimizer.plain(), "others": self._others.plain()}
