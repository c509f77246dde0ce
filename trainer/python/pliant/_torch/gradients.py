"""Passes a shard's gradients to the reduction, and the reduced gradient to the parameters."""

import ctypes
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch.utils.hooks import RemovableHandle

from .. import _native
from .._learner import Commit, Learner, Shard
from ..errors import InvalidProgram
from .mirror import is_readable

# Places are gradient buffers of shards, kept by address. A learner has one per shard, usually few.
_MAX_PLACES = 64
# torch.nn.utils.clip_grad_norm_ adds it: a gradient of zeros has no direction.
_NORM_EPSILON = 1e-6


def _views(flat: torch.Tensor, parameters: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    views, offset = [], 0
    for parameter in parameters:
        views.append(flat[offset : offset + parameter.numel()].view(parameter.shape))
        offset += parameter.numel()
    return views


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    """The gradient in the form that the learner accepts: dense float32, contiguous, on a device
    that the learner reads."""
    if gradient.is_sparse:
        gradient = gradient.to_dense()
    device = gradient.device if is_readable(gradient) else "cpu"
    return gradient.to(device=device, dtype=torch.float32).contiguous()


def _addresses(held: Sequence[torch.Tensor | None]) -> list[int | None]:
    return [None if gradient is None else gradient.data_ptr() for gradient in held]


def _device(held: Sequence[torch.Tensor | None]) -> int:
    on_gpu = any(gradient is not None and gradient.is_cuda for gradient in held)
    return _native.CUDA if on_gpu else _native.CPU


def _a_second_pass() -> InvalidProgram:
    return InvalidProgram(
        "a second backward pass in a batch, although earlier batches had one: call "
        "step.backward once, with the sum of the losses, or give overlap=False to pliant.attach"
    )


class Gradients:
    """Writes the gradient of each parameter to its place, from which it is sent. It is multiplied
    by `scale`: the number of samples if the loss is their mean.

    With `overlap`, and in a shard whose gradients are sent early, a hook of each parameter writes
    its gradient during the backward pass. In other shards, which wait for another shard, all
    gradients are written together at the end of the shard, which costs less. If a program runs
    several backward passes in a shard, or does not use `backward` of this class, the gradients add
    up and cannot be sent early. Hooks detect this in the first shard.

    Which shards send early depends on the other learners, so the program must not see a difference.
    `backward` leaves no gradient on a parameter in any shard; otherwise `zero_grad` or a clip would
    affect some shards and not others. A gradient from the program's own backward pass, which it may
    change as in every loop, stays on the parameter in all shards until the shard is done."""

    def __init__(
        self, learner: Learner, parameters: Sequence[torch.Tensor], *, overlap: bool
    ) -> None:
        self._learner = learner
        self._parameters = parameters
        self._elements = sum(parameter.numel() for parameter in parameters)
        self._places: dict[int, list[torch.Tensor]] = {}
        self._slots: list[torch.Tensor] = []  # empty: the gradients are not sent early
        self._overlap: bool | None = None if overlap else False  # None: not known yet
        self._hooks: list[RemovableHandle] = []  # only in shards that need them
        self._passing = False  # a backward pass started by `backward` is running
        self._passed: set[int] = set()  # parameters whose hook was called in this shard
        # The shard's gradients to be sent at its end, by parameter. Empty: there is no current
        # shard.
        self._held: list[torch.Tensor | None] = []
        self._scale = 1.0
        self._device = parameters[0].device
        # The mean gradient in host memory, from which a GPU copies it directly.
        self._reduced_in_host = torch.zeros(self._elements, pin_memory=self._device.type == "cuda")
        self._reduced = self._reduced_in_host.to(self._device)
        self._reduced_views = _views(self._reduced, parameters)

    def remove(self) -> None:
        """Removes all hooks from the model."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def begin(self, shard: Shard, scale: float) -> None:
        """Begins a shard: gradients from here to `hand_in` belong to it."""
        self._slots = []
        self._scale = scale
        self._passed.clear()
        self._held = [None] * len(self._parameters)
        self.clear()
        self.remove()
        if self._overlap is None:
            self._listen(self._count)
        elif self._overlap and shard.travels_early:
            self._slots = self._place(shard.gradient)
            self._listen(self._hand_over)

    def backward(self, loss: torch.Tensor) -> None:
        """Adds the loss's gradient to the shard's."""
        if not self._held:  # outside a shard `grad` holds the gradient of the global batch
            raise InvalidProgram(
                "there is no current batch: call step.backward inside the loop over the step"
            )
        self._passing = True
        try:
            loss.backward()
        finally:
            self._passing = False
        self._take()

    def hand_in(self) -> bool:
        """Passes the remaining gradients to the learner. A parameter that the loss does not depend
        on has none. False: no parameter has one."""
        self._take()
        handed_over: set[int] = self._passed if self._slots else set()
        waiting = [i for i, gradient in enumerate(self._held) if gradient is not None]
        if not handed_over.isdisjoint(waiting):
            raise _a_second_pass()
        if waiting:
            held = [None if gradient is None else _dense(gradient) for gradient in self._held]
            self._learner.put_gradients(_addresses(held), self._scale, device=_device(held))
            if self._overlap is None:
                self._overlap = True
        self._slots, self._held = [], []
        return bool(waiting or handed_over)

    def _take(self) -> None:
        for i, parameter in enumerate(self._parameters):
            gradient, before = parameter.grad, self._held[i]
            if gradient is None:
                continue
            if before is not None and self._overlap:
                raise _a_second_pass()  # in every shard, not only in those that send early
            self._held[i] = gradient if before is None else before + gradient
            parameter.grad = None

    def _place(self, address: int) -> list[torch.Tensor]:
        if address not in self._places:
            if len(self._places) >= _MAX_PLACES:
                self._places.clear()
            memory = _native.floats_at(address, self._elements)
            flat = torch.frombuffer(memory, dtype=torch.float32)
            self._places[address] = _views(flat, self._parameters)
        return self._places[address]

    def _listen(self, hook: Callable[[int, torch.Tensor], None]) -> None:
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(partial(hook, i))
            for i, parameter in enumerate(self._parameters)
        ]

    def _count(self, index: int, _: torch.Tensor) -> None:
        if index in self._passed or not self._passing:
            self._overlap = False
        self._passed.add(index)

    def _hand_over(self, index: int, parameter: torch.Tensor) -> None:
        if not self._passing:
            return
        if index in self._passed:
            raise _a_second_pass()
        self._passed.add(index)
        gradient = parameter.grad
        assert gradient is not None
        torch.mul(_dense(gradient).cpu(), self._scale, out=self._slots[index])
        parameter.grad = None
        self._learner.gradients_ready(index, 1)

    def set_reduced(self, commit: Commit) -> None:
        """Sets `grad` of the parameters to the mean gradient."""
        if commit.gradient_elements != self._elements:
            raise AssertionError("the reduced gradient has another size than the parameters")
        ctypes.memmove(self._reduced_in_host.data_ptr(), commit.gradient, 4 * self._elements)
        if self._reduced is not self._reduced_in_host:
            self._reduced.copy_(self._reduced_in_host, non_blocking=True)
        for parameter, view in zip(self._parameters, self._reduced_views, strict=True):
            parameter.grad = view.to(dtype=parameter.dtype)

    def clip(self, max_norm: float) -> None:
        """Scales the parameters' gradients as torch.nn.utils.clip_grad_norm_ does. Its norm has
        other bits with each number of threads and on each device; this one does not."""
        held = [None if p.grad is None else _dense(p.grad) for p in self._parameters]
        norm = self._learner.gradient_norm(_addresses(held), device=_device(held))
        scale = max_norm / (norm + _NORM_EPSILON)
        if scale >= 1:
            return
        for parameter in self._parameters:
            if parameter.grad is not None:
                parameter.grad.mul_(scale)

    def finite(self) -> bool:
        """Whether the reduced gradient is finite."""
        # Fast, and almost always sufficient. A large gradient may overflow the float dot product;
        # the sum in double does not overflow.
        if torch.isfinite(torch.dot(self._reduced, self._reduced)):
            return True
        return bool(torch.isfinite(self._reduced.sum(dtype=torch.float64)))

    def clear(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None
