"""Registered memory for the tensors and arrays of registered state.

An object such as a module returns the same memory each time: that memory itself is registered,
without a copy. Arrays that an object creates at each call are copied.
"""

import ctypes
import sys
import zlib
from typing import Any, Protocol

from . import _native
from ._learner import Learner
from .errors import InvalidProgram

_MAX_READ = 1 << 20  # bytes of an array that `contents` reads


class _Memory(Protocol):
    """One tensor or array, at a fixed address."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    size: int  # in bytes

    def fits(self, value: Any) -> bool:
        """Whether the value has this memory's type and shape."""

    def write(self, value: Any) -> None: ...

    def read(self) -> Any:
        """A copy, which the caller may change."""


class _TorchMemory:
    def __init__(self, value: Any, *, shared: bool) -> None:
        import torch

        shared = shared and value.device.type == "cpu" and value.is_contiguous()
        self._host = (
            value.detach()
            if shared
            else torch.empty(value.shape, dtype=value.dtype, pin_memory=value.is_cuda)
        )
        self.address = self._host.data_ptr()
        self.dtype = str(value.dtype).removeprefix("torch.")
        self.shape = tuple(value.shape)
        self.size = self._host.numel() * self._host.element_size()

    def fits(self, value: Any) -> bool:
        return (
            _is_torch_tensor(value)
            and value.shape == self._host.shape
            and value.dtype == self._host.dtype
        )

    def write(self, value: Any) -> None:
        if value.data_ptr() != self.address or not value.is_contiguous():
            self._host.copy_(value.detach())

    def read(self) -> Any:
        return self._host.clone()


class _NumpyMemory:
    def __init__(self, value: Any, *, shared: bool) -> None:
        import numpy

        shared = shared and value.flags.c_contiguous and value.flags.writeable
        self._host = value if shared else numpy.empty(value.shape, value.dtype)
        self.address = self._host.ctypes.data
        self.dtype = value.dtype.name
        self.shape = value.shape
        self.size = value.nbytes

    def fits(self, value: Any) -> bool:
        return (
            is_numpy_array(value)
            and value.shape == self._host.shape
            and value.dtype == self._host.dtype
        )

    def write(self, value: Any) -> None:
        if value.ctypes.data != self.address or not value.flags.c_contiguous:
            self._host[...] = value

    def read(self) -> Any:
        return self._host.copy()


def _is_torch_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_numpy_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def is_array(value: Any) -> bool:
    return _is_torch_tensor(value) or is_numpy_array(value)


def same_memory(a: Any, b: Any) -> bool:
    if _is_torch_tensor(a) and _is_torch_tensor(b):
        return bool(a.data_ptr() == b.data_ptr())
    return is_numpy_array(a) and is_numpy_array(b) and a.ctypes.data == b.ctypes.data


def check(value: Any, path: str) -> None:
    """Raises InvalidProgram if the array has no plain memory to transfer (sparse, of objects)."""
    if _is_torch_tensor(value):
        import torch

        if value.layout != torch.strided or value.is_quantized or value.is_meta:
            raise InvalidProgram(
                f"{path} is a tensor of the layout {value.layout} on {value.device}: state that "
                "learners hand over holds dense tensors (value.to_dense())"
            )
    elif value.dtype.hasobject:
        raise InvalidProgram(
            f"{path} is an array of Python objects: state that learners hand over holds arrays of "
            "numbers"
        )


def contents(value: Any) -> int:
    """A number that changes with the array. A large tensor counts as changed when it was written
    to, and a change of a large array of numpy is not seen."""
    if value.nbytes <= _MAX_READ:
        return zlib.crc32(bytes_of(value)[2])
    return int(value._version) if _is_torch_tensor(value) else 0


def bytes_of(value: Any) -> tuple[str, list[int], bytes]:
    """Type, shape and bytes of an array that has no registered memory. The type of a torch tensor
    begins with `torch.`."""
    if is_numpy_array(value):
        return value.dtype.str, list(value.shape), value.tobytes()
    flat = value.detach().cpu().contiguous()
    size = flat.numel() * flat.element_size()
    return str(flat.dtype), list(flat.shape), ctypes.string_at(flat.data_ptr(), size)


def array_of(dtype: str, shape: list[int], data: bytes) -> Any:
    """The array that `bytes_of` took apart."""
    if not dtype.startswith("torch."):
        import numpy

        return numpy.frombuffer(data, numpy.dtype(dtype)).reshape(shape).copy()
    import torch

    kind = getattr(torch, dtype.removeprefix("torch."))
    made = torch.empty(shape, dtype=kind)
    if len(data) != made.numel() * made.element_size():
        raise InvalidProgram("the state that was taken over is damaged: a tensor of another size")
    ctypes.memmove(made.data_ptr(), data, len(data))
    return made


class ArrayMemory:
    """Memory of arrays, by their path in the state. Arrays that exist when the training begins have
    registered memory; arrays that appear later, or change their shape, have none."""

    def __init__(self) -> None:
        self._memories: list[_Memory] = []
        self._places: dict[str, int] = {}

    def add(self, path: str, value: Any, *, shared: bool) -> None:
        """`shared`: registers the array's own memory where that is possible."""
        if path in self._places:
            return
        self._places[path] = len(self._memories)
        memory = _NumpyMemory if is_numpy_array(value) else _TorchMemory
        self._memories.append(memory(value, shared=shared))

    def register(self, learner: Learner) -> None:
        for path, place in self._places.items():
            memory = self._memories[place]
            known = memory.dtype in _native.DTYPES
            learner.register(
                f"python.{path}",
                role=_native.STATE,
                dtype=memory.dtype if known else "uint8",
                shape=memory.shape if known else (memory.size,),
                address=memory.address,
            )

    def write(self, path: str, value: Any) -> int | None:
        """Writes the value to its memory and returns its place. None: it has no memory here."""
        place = self._places.get(path)
        if place is None or not self._memories[place].fits(value):
            return None
        self._memories[place].write(value)
        return place

    def read(self, place: int) -> Any:
        if not 0 <= place < len(self._memories):
            raise InvalidProgram("the state that was taken over is damaged: no such tensor")
        return self._memories[place].read()
