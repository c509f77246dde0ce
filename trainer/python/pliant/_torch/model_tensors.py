"""The places where a model keeps its parameters and buffers.

The training's state is the memory that these had when the training was attached. A program may
replace a tensor by another: a buffer that `forward` assigns, `p.data = ...`,
`vector_to_parameters`. Its values are copied to the attached tensor, which is put back. If they
cannot be copied, the error names the line to write.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from ..errors import InvalidProgram
from .frozen_base import Home
from .libraries import plain_name
from .mirror import Mirror


@dataclass
class _Place:
    """An entry in a module's parameters or buffers."""

    name: str
    holder: dict[str, torch.Tensor | None]
    key: str
    tensor: torch.Tensor  # the attached one
    mirror: Mirror
    shared: bool  # another place holds the same tensor

    def __post_init__(self) -> None:
        self.address = self.tensor.data_ptr()
        self.shape = self.tensor.shape
        self.dtype = self.tensor.dtype
        self.device = self.tensor.device
        self.stride = self.tensor.stride()

    def moved(self) -> bool:
        present = self.holder.get(self.key)
        return (
            present is not self.tensor
            or present.data_ptr() != self.address
            or present.shape != self.shape
            or present.stride() != self.stride
        )

    def take_over(self, kind: str) -> None:
        """Copies the values of the present tensor to the attached one, and puts that one back."""
        present = self.holder.get(self.key)
        was = f"the {kind} {self.name} of the model"
        if present is None:
            raise InvalidProgram(
                f"{was} was removed after the training was attached: change its values instead, "
                "or call pliant.attach when the model is complete"
            )
        if present.shape != self.shape or present.dtype != self.dtype:
            raise InvalidProgram(
                f"{was} had the shape {tuple(self.shape)} and the type {self.dtype} when the "
                f"training was attached, and has {tuple(present.shape)} and {present.dtype} now: "
                "convert the model before pliant.attach, and assign values of the same shape and "
                f"type (value.to({self.dtype}))"
            )
        if present.device != self.device:
            raise InvalidProgram(
                f"{was} was on {self.device} when the training was attached, and is on "
                f"{present.device} now: move the model before pliant.attach"
            )
        if self.shared:
            raise InvalidProgram(
                f"{was} is in several places of it, and was replaced in one: change it in place "
                "instead (tensor.copy_(values))"
            )
        with torch.no_grad():
            self.mirror.live.copy_(present)
        if self.tensor.data_ptr() != self.address or self.tensor.stride() != self.stride:
            self.tensor.data = self.mirror.live
        self.holder[self.key] = self.tensor


@dataclass
class _Structure:
    """The number of entries that a module has, and the entries registered without a value."""

    name: str
    module: torch.nn.Module

    def __post_init__(self) -> None:
        self.sizes = self._sizes()
        self.names = self._names()
        self.empty = [key for key, value in self._entries() if value is None]

    def _sizes(self) -> tuple[int, int, int]:
        module = self.module
        return len(module._parameters), len(module._buffers), len(module._modules)

    def _entries(self) -> Iterator[tuple[str, torch.Tensor | None]]:
        yield from self.module._parameters.items()
        yield from self.module._buffers.items()

    def _names(self) -> set[str]:
        return {key for key, _ in self._entries()} | set(self.module._modules)

    def _filled(self) -> set[str]:
        return {key for key, value in self._entries() if value is not None} & set(self.empty)

    def check(self) -> None:
        if self._sizes() == self.sizes and not (self.empty and self._filled()):
            return
        present = self._names()
        new = sorted((present - self.names) | self._filled())
        gone = sorted(self.names - present)
        of = f" of {self.name}" if self.name else ""
        names, happened = (new, "added to") if new else (gone, "removed from")
        raise InvalidProgram(
            f"{', '.join(names)}{of} was {happened} the model after the training was attached: it "
            "would be no part of the training's state. Make it before pliant.attach (a buffer with "
            "its shape, a lazy module by a call of the model)"
        )


class ModelTensors:
    """The parameters and buffers of a model that is attached."""

    def __init__(self, model: torch.nn.Module, *, frozen_at_home: bool = False) -> None:
        _check(model)
        persistent = {plain_name(name) for name in model.state_dict()}
        self.names = {parameter: plain_name(n) for n, parameter in model.named_parameters()}
        self.parameters: dict[str, Mirror] = {}  # those that are trained
        self.frozen: dict[str, Mirror] = {}  # those that are sent
        self.buffers: dict[str, Mirror] = {}
        self.trained = [parameter for parameter in self.names if parameter.requires_grad]
        if not self.trained:
            raise InvalidProgram(
                "no parameter of the model requires a gradient: there is nothing to train"
            )
        mirrors: dict[int, Mirror] = {}
        at_home: dict[str, torch.Tensor] = {}  # frozen, and not sent
        for parameter, name in self.names.items():
            if frozen_at_home and not parameter.requires_grad:
                at_home[name] = parameter
                continue
            mirror = mirrors[id(parameter)] = Mirror(parameter)
            (self.parameters if parameter.requires_grad else self.frozen)[name] = mirror
        self.saved = {name: parameter for parameter, name in self.names.items()}
        for full_name, buffer in model.named_buffers():
            name = plain_name(full_name)
            if name in persistent:
                self.saved[name] = buffer
            # A buffer that the model does not save (a mask) gets a name outside `model.`, so that
            # it is not loaded into a model.
            whole = f"model.{name}" if name in persistent else f"buffers.{name}"
            self.buffers[whole] = mirrors[id(buffer)] = Mirror(buffer)
        self._of_parameters = _places(model, mirrors, "_parameters")
        self._of_buffers = _places(model, mirrors, "_buffers")
        self._structures = [_Structure(name, module) for name, module in model.named_modules()]
        self._frozen_parameters = {n: p for p, n in self.names.items() if not p.requires_grad}
        # Inference tensors have no version counter.
        self._counting = [p for p in self._of_parameters if not p.tensor.is_inference()]
        self.home = Home(model, at_home)
        self._versions: list[int] = []

    def begin_batch(self) -> None:
        self._versions = [place.tensor._version for place in self._counting]

    def end_batch(self) -> None:
        """After a batch of training: takes over buffers that were replaced. Parameters must not
        change in mid step: how often they would change depends on the number of learners."""
        for place in self._of_parameters:
            if place.moved():
                raise self._changed_in_mid_step(place)
        for place, version in zip(self._counting, self._versions, strict=True):
            if place.tensor._version != version:
                raise self._changed_in_mid_step(place)
        self._end_forward()

    def end_evaluation(self) -> None:
        """After a batch of the test data. Meanwhile a program may have replaced the trained
        parameters by averaged ones and put the trained ones back."""
        for place in self._of_parameters:
            if place.moved():
                raise self._changed_in_mid_step(place)
        self._end_forward()

    @staticmethod
    def _changed_in_mid_step(place: _Place) -> InvalidProgram:
        return InvalidProgram(
            f"the parameter {place.name} of the model was changed in mid step, by forward or by "
            "the loop over the step: change parameters after step.commit(), and keep what forward "
            "changes in a buffer (self.register_buffer)"
        )

    def _end_forward(self) -> None:
        for place in self._of_buffers:
            if place.moved():
                place.take_over("buffer")
        for structure in self._structures:
            structure.check()
        for name, parameter in self._frozen_parameters.items():
            # The trained parameters are fixed at the start: a new gradient would not be reduced.
            if parameter.requires_grad:
                raise InvalidProgram(
                    f"{name} requires a gradient, which it did not when the training was attached: "
                    "set requires_grad before pliant.attach for all parameters that are trained at "
                    "some time, and set their learning rate to 0 until then"
                )

    def end_step(self) -> None:
        """After a commit: takes over every tensor that was replaced."""
        for place in self._of_parameters:
            present = place.holder.get(place.key)
            if present is not None and present is not place.tensor:
                raise InvalidProgram(
                    f"the parameter {place.name} of the model was replaced after the training was "
                    "attached; the optimizer does not train the new one: change its values instead "
                    "(with torch.no_grad(): parameter.copy_(values))"
                )
            if place.moved():
                place.take_over("parameter")
        self.home.check()
        self._end_forward()


def _places(model: torch.nn.Module, mirrors: dict[int, Mirror], which: str) -> list[_Place]:
    found = [
        (plain_name(f"{prefix}.{key}" if prefix else key), holder, key, tensor)
        for prefix, module in model.named_modules()
        for holder in (getattr(module, which),)
        for key, tensor in holder.items()
        if tensor is not None and id(tensor) in mirrors
    ]
    places = Counter(id(tensor) for *_, tensor in found)
    return [
        _Place(name, holder, key, tensor, mirrors[id(tensor)], places[id(tensor)] > 1)
        for name, holder, key, tensor in found
    ]


def _check(model: torch.nn.Module) -> None:
    devices: dict[torch.device, str] = {}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if torch.nn.parameter.is_lazy(tensor):
            raise InvalidProgram(
                f"{name} has no shape yet: call the model once with a batch before pliant.attach"
            )
        if tensor.is_meta:
            raise InvalidProgram(f"{name} is on the device meta: it holds no values yet")
        if any(size > 1 and step == 0 for size, step in zip(tensor.shape, tensor.stride())):
            raise InvalidProgram(
                f"{name} is expanded: several of its elements are one number. Give it memory of "
                "its own (tensor.clone()) before pliant.attach"
            )
        devices.setdefault(tensor.device, name)
    if len(devices) > 1:
        found = ", ".join(f"{name} on {device}" for device, name in devices.items())
        raise InvalidProgram(
            f"the model is on several devices ({found}): move it to one before pliant.attach"
        )
