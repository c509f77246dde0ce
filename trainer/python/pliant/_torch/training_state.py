"""Everything that a learner must take over to go on bit for bit: model, optimizer, what else was
registered."""

from typing import Any

import torch

from .. import _native
from .._learner import Learner
from .._loop import Stateful, States
from .._plain_state import PlainMemory
from ..errors import InvalidProgram
from .mirror import Mirror
from .optimizer_state import OptimizerState


class TrainingState:
    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        _check_devices(model)
        names = {parameter: name for name, parameter in model.named_parameters()}
        persistent = set(model.state_dict().keys())
        self.parameters = [parameter for parameter in names if parameter.requires_grad]
        if not self.parameters:
            raise InvalidProgram(
                "no parameter of the model requires a gradient: there is nothing to train"
            )
        self._parameters = {names[p]: Mirror(p) for p in self.parameters}
        frozen = {name: p for p, name in names.items() if not p.requires_grad}
        self._frozen_parameters = frozen
        self._frozen = {name: Mirror(p) for name, p in frozen.items()}
        self._buffers: dict[str, Mirror] = {}
        for name, buffer in model.named_buffers():
            # What the model does not save (a mask) goes where a loaded model does not find it.
            whole = f"model.{name}" if name in persistent else f"buffers.{name}"
            self._buffers[whole] = Mirror(buffer)
        self._optimizer = OptimizerState(optimizer, names)
        self._others = States()
        self._plain = PlainMemory()

    def add(self, name: str, what: Stateful) -> None:
        self._others.add(name, what)

    def register(self, learner: Learner) -> None:
        """Tells the learner of all of it."""

        def tell(name: str, mirror: Mirror, role: int) -> None:
            host = mirror.host
            learner.register(
                name,
                role=role,
                dtype=str(host.dtype).removeprefix("torch."),
                shape=tuple(host.shape),
                address=host.data_ptr(),
            )

        for name, mirror in self._parameters.items():
            tell(f"model.{name}", mirror, _native.PARAMETER)
        for name, mirror in self._buffers.items():
            tell(name, mirror, _native.BUFFER)
        for name, mirror in self._frozen.items():
            tell(f"model.{name}", mirror, _native.STATE)
        for name, mirror in self._optimizer.tensors():
            tell(name, mirror, _native.STATE)
        self._plain.register(learner, self._values())

    # ---- While it trains ----

    def check_frozen(self) -> None:
        """Who trains what is settled at the start: other gradients would stay with this learner."""
        for name, parameter in self._frozen_parameters.items():
            if parameter.requires_grad:
                raise InvalidProgram(
                    f"{name} requires a gradient, which it did not when the training was attached: "
                    "let all that is trained at some time require one from the start, and give its "
                    "parameter group a learning rate of 0 until then"
                )

    def restore_buffers(self) -> None:
        """Before a forward: where buffers are not in host memory, they get what was committed."""
        for mirror in self._buffers.values():
            mirror.restore()

    def save_buffers(self) -> None:
        """After a forward of shard 0."""
        for mirror in self._buffers.values():
            mirror.save()

    def save(self) -> None:
        """After a commit: everything is where it was registered."""
        self._optimizer.take_over()
        for mirror in self._parameters.values():
            mirror.save()
        self._plain.write(self._values())

    def loaded(self) -> None:
        """What was registered holds another state."""
        for mirrors in (self._parameters, self._frozen, self._buffers):
            for mirror in mirrors.values():
                mirror.restore()
        values = self._plain.read()
        self._optimizer.restore(values["optimizer"])
        self._others.restore(values["others"])

    def _values(self) -> dict[str, Any]:
        """What is not in tensors."""
        return {"optimizer": self._optimizer.plain(), "others": self._others.plain()}


def _check_devices(model: torch.nn.Module) -> None:
    devices: dict[torch.device, str] = {}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if tensor.is_meta:
            raise InvalidProgram(f"{name} is on the device meta: it holds no values yet")
        devices.setdefault(tensor.device, name)
    if len(devices) > 1:
        found = ", ".join(f"{name} on {device}" for device, name in devices.items())
        raise InvalidProgram(
            f"the model is on several devices ({found}): a learner's must be on one"
        )
