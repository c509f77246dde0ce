"""Python values (a schedule's counters, an optimizer's settings) as bytes: JSON with tags for what
JSON lacks.

Not pickle: a checkpoint or a peer must not be able to run code.
"""

import ctypes
import json
import sys
from collections import Counter, deque
from typing import Any

from . import _native
from ._learner import Learner
from .errors import InvalidProgram

_TAG = "__pliant__"

_ROOM_LEAST = 1 << 14
_LENGTH_BYTES = 8


class PlainMemory:
    """A value in memory that is registered, so that it goes with the tensors: a length, and what
    `encode` makes."""

    def __init__(self) -> None:
        self._memory = (ctypes.c_ubyte * 0)()

    def register(self, learner: Learner, value: Any) -> None:
        # Texts grow: numbers that begin as 0 become long.
        length = 4 * len(encode(value))
        room = max(_ROOM_LEAST, 1 << length.bit_length())
        self._memory = (ctypes.c_ubyte * room)()
        self.write(value)
        learner.register(
            "python.state",
            role=_native.STATE,
            dtype="uint8",
            shape=(room,),
            address=ctypes.addressof(self._memory),
        )

    def write(self, value: Any) -> None:
        data = encode(value)
        room = len(self._memory) - _LENGTH_BYTES
        if len(data) > room:
            raise InvalidProgram(
                f"the state that was registered takes {len(data)} bytes{_largest(value)}, and had "
                f"room for {room}, as settled at the start: state that grows cannot be handed "
                "over. Of a list keep the last so many (a deque with maxlen), of what is counted "
                "the sum"
            )
        whole = len(data).to_bytes(_LENGTH_BYTES, "little") + data
        whole += bytes(len(self._memory) - len(whole))
        ctypes.memmove(self._memory, whole, len(whole))

    def read(self) -> Any:
        memory = bytes(self._memory)
        length = int.from_bytes(memory[:_LENGTH_BYTES], "little")
        if length > len(memory) - _LENGTH_BYTES:
            raise InvalidProgram("the state that was taken over is damaged: python.state")
        return decode(memory[_LENGTH_BYTES : _LENGTH_BYTES + length])


def _largest(value: Any) -> str:
    """What takes most, as far down as one value is at least half of it all, with its bytes."""
    names, size = [], len(encode(value))
    while isinstance(value, dict) and value:
        sizes = {name: len(encode(item)) for name, item in value.items()}
        name = max(sizes, key=lambda each: sizes[each])
        if 2 * sizes[name] < size:
            break
        names.append(str(name))
        value, size = value[name], sizes[name]
    return f" ({'.'.join(names)}: {size})" if names else ""


def encode(value: Any) -> bytes:
    return json.dumps(_plain(value, "state"), separators=(",", ":")).encode()


def decode(data: bytes) -> Any:
    return _value(json.loads(data))


def _plain(value: Any, path: str) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        flat = value.detach().cpu()
        kind = str(flat.dtype).removeprefix("torch.")
        return {
            _TAG: "tensor",
            "dtype": kind,
            "shape": list(flat.shape),
            "values": flat.flatten().tolist(),
        }
    if isinstance(value, list | tuple | deque):
        items = [_plain(item, f"{path}[{i}]") for i, item in enumerate(value)]
        if isinstance(value, list):
            return items
        kind = "tuple" if isinstance(value, tuple) else "deque"
        return {_TAG: kind, "items": items} | (
            {"most": value.maxlen} if isinstance(value, deque) else {}
        )
    if isinstance(value, dict):
        # As pairs: keys may be numbers, and their order may matter.
        pairs = [[_plain(key, path), _plain(item, f"{path}.{key}")] for key, item in value.items()]
        kind = "counter" if isinstance(value, Counter) else "dict"
        return {_TAG: kind, "items": pairs}
    if hasattr(value, "item") and hasattr(value, "dtype"):  # a number of numpy's
        return _plain(value.item(), path)
    raise InvalidProgram(
        f"{path} is a {type(value).__name__}: state that learners hand over holds numbers, texts, "
        "tensors, lists and dicts"
    )


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_value(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    kind = plain[_TAG]
    if kind == "tensor":
        import torch

        dtype = getattr(torch, plain["dtype"])
        return torch.tensor(plain["values"], dtype=dtype).reshape(plain["shape"])
    if kind == "tuple":
        return tuple(_value(item) for item in plain["items"])
    if kind == "deque":
        return deque((_value(item) for item in plain["items"]), plain["most"])
    pairs = [(_value(key), _value(item)) for key, item in plain["items"]]
    return Counter(dict(pairs)) if kind == "counter" else dict(pairs)
