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
from .final_layout import FinalLayout
from .frozen_base import Home
from .mirror import Mirror, RareChanges
from .model_tensors import ModelTensors
from .module_modes import ModuleModes
from .optimizers import Optimizers
from .schedules import register_schedule


class TrainingState:
    def __init__(
        self,
        model: torch.nn.Module,
        optimizers: Any,
        *,
        frozen_at_home: bool = False,
    ) -> None:
        self._model = ModelTensors(model, frozen_at_home=frozen_at_home)
        self.modes = ModuleModes()
        self.modes.add("model", model)
        self._frozen = RareChanges(self._model.frozen.values())
        self.optimizers = Optimizers(optimizers)
        self.optimizers.hold_state(self._model.names)
        self._others = States()
        self._plain = PlainMemory()
        self._of_final: dict[str, Mirror] = {}  # keeps what is registered only for the final model
        self._learner: Learner | None = None  # once the state is registered
        self._device: torch.device | None = None  # the GPU that has tensors of the state
        self._stream: int | None = None  # the one that was named last

    @property
    def home(self) -> Home:
        """The frozen parameters that are no part of the state."""
        return self._model.home

    @property
    def saved(self) -> dict[str, torch.Tensor]:
        """All parameters, and the buffers that the model saves."""
        return self._model.saved

    @property
    def parameters(self) -> list[torch.Tensor]:
        """The parameters that are trained."""
        return self._model.trained

    def add(self, name: str, what: Stateful | dict[str, Any]) -> None:
        if isinstance(what, torch.optim.Optimizer):
            raise InvalidProgram(
                f"{name} is an optimizer, which is registered otherwise: give pliant.attach a dict "
                "of optimizers, {'d': first, 'g': second}; step.commit('d') steps one of them"
            )
        self._others.add(name, what)
        if isinstance(what, torch.nn.Module):
            self.modes.add(f"registered.{name}", what)

    def register(self, learner: Learner, layout: FinalLayout) -> None:
        """Registers the whole state with the learner, and the layout of the final model."""

        def tell(name: str, mirror: Mirror, role: int) -> None:
            memory = mirror.registered
            if memory.is_cuda:
                self._device = memory.device
            learner.register(
                name,
                role=role,
                dtype=str(memory.dtype).removeprefix("torch."),
                shape=tuple(memory.shape),
                address=memory.data_ptr(),
                device=_native.CUDA if memory.is_cuda else _native.CPU,
            )

        for place, optimizer in enumerate(self.optimizers):
            register_schedule(optimizer, self._others, place=place)
        self._model.end_step()  # takes over tensors that the program replaced since `attach`
        for mirror in self._mirrors():
            mirror.save()
        for name, mirror in self._model.parameters.items():
            tell(f"model.{name}", mirror, _native.PARAMETER)
        for name, mirror in self._model.buffers.items():
            tell(name, mirror, _native.BUFFER)
        for name, mirror in self._model.frozen.items():
            tell(f"model.{name}", mirror, _native.STATE)
        for name, mirror in self.optimizers.tensors():
            tell(name, mirror, _native.STATE)
        self._plain.register(learner, self._values)
        if layout.names is None:  # then the final model has all
            self._of_final = {name: Mirror(tensor) for name, tensor in self.home.tensors.items()}
            for name, mirror in self._of_final.items():
                tell(f"model.{name}", mirror, _native.HOME)
        names = layout.names and {f"model.{ours}": theirs for ours, theirs in layout.names.items()}
        learner.describe_final(layout.stem, names, layout.files)
        self._learner = learner
        self.name_stream()

    def name_stream(self) -> None:
        """Tells the learner on which stream of the GPU the program works, if that has changed."""
        if self._device is None or self._learner is None:
            return
        stream = torch.cuda.current_stream(self._device).cuda_stream
        if stream != self._stream:
            self._learner.use_stream(stream)
            self._stream = stream

    def _mirrors(self) -> Iterator[Mirror]:
        """The mirrors of the model's tensors."""
        for mirrors in (self._model.parameters, self._model.frozen, self._model.buffers):
            yield from mirrors.values()

    # ---- While it trains ----

    def begin_batch(self) -> None:
        """Before a forward: copied buffers get their committed values."""
        self.name_stream()
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
        """After a commit: the whole state is in the registered memory."""
        self.name_stream()
        self._model.end_step()
        self.optimizers.take_over()
        for mirror in self._model.parameters.values():
            mirror.save()
        self._frozen.save()
        self._plain.write(self._values())

    def loaded(self) -> None:
        """Takes the state from the registered memory, which was replaced."""
        self.name_stream()
        for mirror in self._mirrors():
            mirror.restore()
        self._frozen.restore()
        values = self._plain.read()
        self.optimizers.restore(values["optimizer"])
        self._others.restore(values["registered"])
        self.modes.restore(values["modes"])

    def _values(self) -> dict[str, Any]:
        """The part of the state that is not in tensors."""
        return {
            "optimizer": self.optimizers.plain(),
            "registered": self.registered(),
            "modes": self.modes.plain(),
        }

    def registered(self) -> dict[str, Any]:
        return self._others.plain()
