"""A shard's gradients on their way to the reduction, and the reduced one on its way back."""

import ctypes
from collections.abc import Callable, Sequence

import torch

from .. import _native
from .._learner import Commit, Learner, Shard
from ..errors import InvalidProgram

# Places in which gradients are made: as many as a learner has shards, and few in practice.
_PLACES_MOST = 64


def _views(flat: torch.Tensor, parameters: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    views, offset = [], 0
    for parameter in parameters:
        views.append(flat[offset : offset + parameter.numel()].view(parameter.shape))
        offset += parameter.numel()
    return views


class Gradients:
    """Each parameter's gradient is written to its place as soon as the backward pass has it, times
    the number of samples that the loss is the mean of, and travels from there.

    With `overlap`, at once. A program that passes backward several times in a shard adds to what was
    written, so the first shard shows whether it does: then all travel when their shard is done."""

    def __init__(
        self, learner: Learner, parameters: Sequence[torch.Tensor], *, overlap: bool
    ) -> None:
        self._learner = learner
        self._parameters = parameters
        self._elements = sum(parameter.numel() for parameter in parameters)
        self._places: dict[int, list[torch.Tensor]] = {}
        self._slots: list[torch.Tensor] = []
        self._written = [False] * len(parameters)
        self._said = [False] * len(parameters)  # to be ready
        self._overlap: bool | None = None if overlap else False  # None: it is not known yet
        self._early = False  # in this shard
        self._scale = 1.0
        self._reduced = torch.zeros(self._elements)
        self._reduced_views = _views(self._reduced, parameters)
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(self._hook(i))
            for i, parameter in enumerate(parameters)
        ]

    def remove(self) -> None:
        """From here on the model is as it was."""
        for hook in self._hooks:
            hook.remove()

    def begin(self, shard: Shard, scale: float) -> None:
        """The gradients of the next backward are the shard's."""
        address = shard.gradient
        if address not in self._places:
            if len(self._places) >= _PLACES_MOST:
                self._places.clear()
            memory = _native.floats_at(address, self._elements)
            flat = torch.frombuffer(memory, dtype=torch.float32)
            self._places[address] = _views(flat, self._parameters)
        self._slots = self._places[address]
        self._scale = scale
        self._early = self._overlap is True and shard.travels_early
        self._written = [False] * len(self._parameters)
        self._said = [False] * len(self._parameters)
        for parameter in self._parameters:
            parameter.grad = None

    def hand_in(self) -> bool:
        """Those that were written and wait yet; parameters that the loss does not depend on have
        none. False: no parameter has one."""
        first = 0
        for i in range(len(self._written) + 1):
            if i == len(self._written) or not self._written[i] or self._said[i]:
                if i > first:
                    self._learner.gradients_ready(first, i - first)
                first = i + 1
        self._slots = []
        if not any(self._written):
            return False
        if self._overlap is None:
            self._overlap = True
        return True

    def _hook(self, index: int) -> Callable[[torch.Tensor], None]:
        def take(parameter: torch.Tensor) -> None:
            if not self._slots:
                return  # a backward pass that is none of a shard's
            gradient = parameter.grad
            assert gradient is not None
            if gradient.is_sparse:
                gradient = gradient.to_dense()
            slot = self._slots[index]
            if self._written[index]:  # a second backward pass in the same shard
                self._overlap = False
                if self._said[index]:
                    raise InvalidProgram(
                        "a second backward pass through a batch, which no batch before had: call "
                        "it once, of the sum of the losses, or give overlap=False to attach"
                    )
                slot.add_(gradient.to(slot), alpha=self._scale)
            elif gradient.dtype == slot.dtype and gradient.device == slot.device:
                torch.mul(gradient, self._scale, out=slot)
            else:
                slot.copy_(gradient).mul_(self._scale)
            self._written[index] = True
            parameter.grad = None
            if self._early:
                self._said[index] = True
                self._learner.gradients_ready(index, 1)

        return take

    def set_reduced(self, commit: Commit) -> None:
        """The mean gradient becomes that of the parameters."""
        if commit.gradient_elements != self._elements:
            raise AssertionError("as many as were registered")
        ctypes.memmove(self._reduced.data_ptr(), commit.gradient, 4 * self._elements)
        for parameter, view in zip(self._parameters, self._reduced_views, strict=True):
            parameter.grad = view.to(device=parameter.device, dtype=parameter.dtype)

    def finite(self) -> bool:
        """Whether the reduced gradient is."""
        # Quick, and nearly always the answer; a large gradient may overflow it, but not in double.
        if torch.isfinite(torch.dot(self._reduced, self._reduced)):
            return True
        return bool(torch.isfinite(self._reduced.sum(dtype=torch.float64)))

    def clear(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None
