"""Passes a shard's gradients to the reduction, and the reduced gradient to the parameters."""

import ctypes
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from functools import partial

import torch
from torch.utils.hooks import RemovableHandle

from .. import _native
from .._learner import Commit, Learner, Shard
from ..errors import InvalidProgram
from .mirror import is_readable

# Places are gradients in the learner's memory, kept by address. It has one per shard, usually few.
_MAX_PLACES = 64
# Gradients on a GPU are handed in together once they have so many bytes: a call has a cost.
_BYTES_OF_A_CALL = 8 << 20
# Types in which a learner takes them from a GPU; it adds float32.
_GPU_TYPES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}
# torch.nn.utils.clip_grad_norm_ adds it: a gradient of zeros has no direction.
_NORM_EPSILON = 1e-6
# Backward passes in a shard of the training's first step.
_UNKNOWN, _ONE, _SEVERAL = range(3)


def _views(flat: torch.Tensor, parameters: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    views, offset = [], 0
    for parameter in parameters:
        views.append(flat[offset : offset + parameter.numel()].view(parameter.shape))
        offset += parameter.numel()
    return views


class _Memory:
    """Floats of the GPU, for torch.as_tensor."""

    def __init__(self, address: int, elements: int) -> None:
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": (elements,),
            "typestr": "<f4",
            "data": (address, False),
        }


def _floats_at(address: int, elements: int, gpu: torch.device | None) -> torch.Tensor:
    """The learner's memory as a tensor. `gpu`: None for host memory."""
    if gpu is not None:
        return torch.as_tensor(_Memory(address, elements), device=gpu)
    return torch.frombuffer(_native.floats_at(address, elements), dtype=torch.float32)


def _dense(gradient: torch.Tensor, *, keep_type: bool = False) -> torch.Tensor:
    """The gradient in a form that the learner accepts: dense, contiguous, on a device that the
    learner reads, and float32. `keep_type`: or another type that it takes from a GPU."""
    if gradient.is_sparse:
        gradient = gradient.to_dense()
    device = gradient.device if is_readable(gradient) else "cpu"
    kept = keep_type and gradient.is_cuda and gradient.dtype in _GPU_TYPES
    dtype = gradient.dtype if kept else torch.float32
    return gradient.to(device=device, dtype=dtype).contiguous()


def _addresses(held: Sequence[torch.Tensor | None]) -> list[int | None]:
    return [None if gradient is None else gradient.data_ptr() for gradient in held]


def _device(gradient: torch.Tensor) -> int:
    return _native.CUDA if gradient.is_cuda else _native.CPU


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
    up and cannot be sent early. Hooks detect this in the first shard of the training. What they
    found is in `passes`, which learners that join receive: a later step may be of another kind.

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
        self._places: dict[int, tuple[torch.Tensor, list[torch.Tensor]]] = {}
        self._early = False  # the shard's gradients are sent early
        self._slots: list[torch.Tensor] = []  # then: their places, in host memory
        # Or those on the GPU that are to be handed in next, by parameter.
        self._next: dict[int, torch.Tensor] = {}
        self._overlap: bool | None = None if overlap else False  # None: not known yet
        self._may_overlap = overlap
        self.passes = torch.full((1,), _UNKNOWN, dtype=torch.uint8)
        self._hooks: list[RemovableHandle] = []  # only in shards that need them
        self._passing = False  # a backward pass started by `backward` is running
        self._passed: set[int] = set()  # parameters whose hook was called in this shard
        # The shard's gradients to be sent at its end, by parameter. Empty: there is no current
        # shard.
        self._held: list[torch.Tensor | None] = []
        self._scale = 1.0
        self._device = parameters[0].device
        self._stream: torch.cuda.Stream | None = None  # of the shard, on a GPU
        # The mean gradient. In host memory a GPU copies it from there directly.
        self._in_host: torch.Tensor | None = None
        self._copied: torch.Tensor | None = None
        self._reduced = torch.empty(0)

    def remove(self) -> None:
        """Removes all hooks from the model."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def begin(self, shard: Shard, scale: float) -> None:
        """Begins a shard: gradients from here to `hand_in` belong to it."""
        self._early, self._slots, self._next = False, [], {}
        if self._overlap is None and shard.step > 0:
            self._overlap = False  # it missed the step that shows it, and to wait is always right
        self._scale = scale
        self._passed.clear()
        self._held = [None] * len(self._parameters)
        self.clear()
        self.remove()
        if self._overlap is None:
            self._listen(self._count)
        elif self._overlap and shard.travels_early:
            self._early = True
            if shard.on_gpu:
                self._stream = torch.cuda.current_stream(self._device)
                self._listen(self._hand_over_on_gpu)
            else:
                self._slots = self._place(shard.gradient, None)[1]
                self._listen(self._hand_over)

    def scale(self, weight: float, *, loss_is_mean: bool) -> None:
        """The shard has this weight. Called before any of its gradients is handed in. The gradients
        of a shard of weight 0 are dropped: they may be those of a mean over nothing."""
        self._scale = weight if loss_is_mean or weight == 0 else 1.0

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

    def save(self) -> None:
        """After a commit."""
        self.clear()
        if self._overlap is not None:
            self.passes.fill_(_ONE if self._overlap else _SEVERAL)

    def loaded(self) -> None:
        """`passes` is that of a learner that has seen the first step, or unknown."""
        if self._may_overlap and self.passes[0] != _UNKNOWN:
            self._overlap = bool(self.passes[0] == _ONE)

    def hand_in(self) -> bool:
        """Passes the remaining gradients to the learner. A parameter that the loss does not depend
        on has none. False: no parameter has one."""
        self._take()
        if self._scale == 0:
            self._early, self._slots, self._next, self._held = False, [], {}, []
            return True
        handed_over: set[int] = self._passed if self._early else set()
        waiting = {i: held for i, held in enumerate(self._held) if held is not None}
        if not handed_over.isdisjoint(waiting):
            raise _a_second_pass()
        self._put({**self._next, **waiting})
        if waiting and self._overlap is None:
            self._overlap = True
        self._early, self._slots, self._next, self._held = False, [], {}, []
        return bool(waiting or handed_over)

    def _put(self, gradients: dict[int, torch.Tensor]) -> None:
        """Hands these in: one call for all of a type on a device."""
        alike: dict[tuple[int, torch.dtype], dict[int, torch.Tensor]] = defaultdict(dict)
        for i, gradient in gradients.items():
            dense = _dense(gradient, keep_type=True)
            alike[_device(dense), dense.dtype][i] = dense
        for (device, dtype), some in alike.items():
            held = [some.get(i) for i in range(len(self._parameters))]
            self._learner.put_gradients(
                _addresses(held), self._scale, device=device, dtype=_GPU_TYPES[dtype]
            )

    def _take(self) -> None:
        for i, parameter in enumerate(self._parameters):
            gradient, before = parameter.grad, self._held[i]
            if gradient is None:
                continue
            if before is not None and self._overlap:
                raise _a_second_pass()  # in every shard, not only in those that send early
            self._held[i] = gradient if before is None else before + gradient
            parameter.grad = None

    def _place(
        self, address: int, gpu: torch.device | None
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """The gradient at this address: as one tensor, and by parameter."""
        if address not in self._places:
            if len(self._places) >= _MAX_PLACES:
                self._places.clear()
            flat = _floats_at(address, self._elements, gpu)
            self._places[address] = flat, _views(flat, self._parameters)
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

    def _hand_over_on_gpu(self, index: int, parameter: torch.Tensor) -> None:
        if not self._passing:
            return
        # On another stream the learner would read it too early. After the pass it may.
        if torch.cuda.current_stream(self._device) != self._stream:
            return
        if index in self._passed:
            raise _a_second_pass()
        self._passed.add(index)
        gradient = parameter.grad
        assert gradient is not None
        self._next[index] = gradient
        parameter.grad = None
        if sum(held.nbytes for held in self._next.values()) >= _BYTES_OF_A_CALL:
            self._put(self._next)
            self._next = {}

    def set_reduced(self, commit: Commit) -> None:
        """Sets `grad` of the parameters to the mean gradient."""
        if commit.gradient_elements != self._elements:
            raise AssertionError("the reduced gradient has another size than the parameters")
        if commit.on_gpu:
            self._reduced, views = self._place(commit.gradient, self._device)
            if commit.mean_factor != 1:  # in memory of our own: that one is the learner's
                if self._copied is None:
                    self._copied = torch.empty_like(self._reduced)
                torch.mul(self._reduced, commit.mean_factor, out=self._copied)
                self._reduced, views = self._copied, _views(self._copied, self._parameters)
        else:
            self._reduced = self._copy(commit.gradient, commit.mean_factor)
            views = _views(self._reduced, self._parameters)
        for parameter, view in zip(self._parameters, views, strict=True):
            parameter.grad = view.to(dtype=parameter.dtype)

    def _copy(self, address: int, factor: float) -> torch.Tensor:
        """A copy of the gradient in host memory, times a factor, on the parameters' device."""
        if self._in_host is None or self._copied is None:
            self._in_host = torch.zeros(self._elements, pin_memory=self._device.type == "cuda")
            self._copied = self._in_host.to(self._device)
        ctypes.memmove(self._in_host.data_ptr(), address, 4 * self._elements)
        if self._copied is not self._in_host:
            self._copied.copy_(self._in_host, non_blocking=True)
        if factor != 1:
            self._copied.mul_(factor)
        return self._copied

    def clip(self, max_norm: float, among: Collection[int] | None = None) -> float:
        """Scales the gradients of the parameters, or of those with these ids, as
        torch.nn.utils.clip_grad_norm_ does, and returns their norm before that. That function's norm has other bits with each number of threads and
        on each device; this one has not."""
        clipped = [
            None if p.grad is None or (among is not None and id(p) not in among) else p.grad
            for p in self._parameters
        ]
        held = [None if gradient is None else _dense(gradient) for gradient in clipped]
        on_gpu = any(gradient is not None and gradient.is_cuda for gradient in held)
        norm = self._learner.gradient_norm(
            _addresses(held), device=_native.CUDA if on_gpu else _native.CPU
        )
        scale = max_norm / (norm + _NORM_EPSILON)
        if not scale >= 1:
            for gradient in clipped:
                if gradient is not None:
                    gradient.mul_(scale)
        return norm

    def clip_value(self, limit: float) -> None:
        for parameter in self._parameters:
            if parameter.grad is not None:
                parameter.grad.clamp_(-limit, limit)

    def finite(self, among: Collection[int] | None = None) -> bool:
        """Whether the reduced gradient of the parameters, or of those with these ids, is finite.
        Before it is clipped: an infinite element may be clipped to a finite one."""
        # Fast, and almost always sufficient. A large gradient may overflow the float dot product;
        # the sum in double does not overflow.
        if torch.isfinite(torch.dot(self._reduced, self._reduced)):
            return True
        views = _views(self._reduced, self._parameters)
        return all(
            bool(torch.isfinite(view.sum(dtype=torch.float64)))
            for parameter, view in zip(self._parameters, views, strict=True)
            if among is None or id(parameter) in among
        )

    def clear(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None
