"""Python values (a schedule's counters, an optimizer's settings) as bytes: JSON, with tags for
types that JSON lacks. Tensors and arrays in them have their own memory.

Not pickle: a checkpoint or a peer must not be able to run code.
"""

import base64
import ctypes
import json
import math
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Any

from . import _array_memory, _native
from ._array_memory import ArrayMemory
from ._learner import Learner
from .errors import InvalidProgram

_TAG = "__pliant__"

_MIN_ROOM = 1 << 14
_LENGTH_BYTES = 8

# Path and array → place in ArrayMemory. None: the array is encoded in the JSON.
_Keep = Callable[[str, Any], int | None]
# Place → the array kept there.
_Find = Callable[[int], Any]


class PlainMemory:
    """A value in registered memory, so that it is transferred with the tensors. The memory holds a
    length and the result of `encode`. Each array in the value at registration has its own memory.
    """

    def __init__(self) -> None:
        self._memory = (ctypes.c_ubyte * 0)()
        self._arrays = ArrayMemory()
        self._late: list[str] = []  # paths of arrays that have no memory of their own

    def register(self, learner: Learner, values: Callable[[], Any]) -> None:
        """`values` returns the current value each time it is called."""
        arrays: dict[str, Any] = {}

        def look(path: str, array: Any) -> int:
            arrays[path] = array
            return 0

        def look_again(path: str, array: Any) -> int:
            shared = path in arrays and _array_memory.same_memory(arrays[path], array)
            self._arrays.add(path, array, shared=shared)
            return 0

        # Both results are alive, so an equal address means that an array is the same memory.
        first, value = values(), values()
        encode(first, look)
        # Room for growth: the text of a number that begins as 0 becomes longer.
        length = 4 * len(encode(value, look_again))
        room = max(_MIN_ROOM, 1 << length.bit_length())
        self._memory = (ctypes.c_ubyte * room)()
        self.write(value)
        learner.register(
            "python.json",
            role=_native.STATE,
            dtype="uint8",
            shape=(room,),
            address=ctypes.addressof(self._memory),
        )
        self._arrays.register(learner)

    def write(self, value: Any) -> None:
        self._late.clear()
        data = encode(value, self._keep)
        room = len(self._memory) - _LENGTH_BYTES
        if len(data) > room:
            raise InvalidProgram(self._too_large(value, len(data), room))
        whole = len(data).to_bytes(_LENGTH_BYTES, "little") + data
        whole += bytes(len(self._memory) - len(whole))
        ctypes.memmove(self._memory, whole, len(whole))

    def _keep(self, path: str, array: Any) -> int | None:
        place = self._arrays.write(path, array)
        if place is None:
            self._late.append(path)
        return place

    def _too_large(self, value: Any, size: int, room: int) -> str:
        said = (
            f"the registered state takes {size} bytes{_largest(value, self._keep)}, but its "
            f"memory, fixed at the start, has room for {room}: state that grows cannot be passed "
            "to other learners. "
        )
        if self._late:
            return said + (
                f"{self._late[0]} is a tensor or an array that was not there, or had another "
                "shape, when the training began: make it before the first step, as large as it "
                "will be"
            )
        return said + (
            "Keep only the last entries of a list (a deque with maxlen), and sums instead of lists"
        )

    def read(self) -> Any:
        memory = bytes(self._memory)
        length = int.from_bytes(memory[:_LENGTH_BYTES], "little")
        if length > len(memory) - _LENGTH_BYTES:
            raise InvalidProgram("the state that was taken over is damaged: python.json")
        return decode(memory[_LENGTH_BYTES : _LENGTH_BYTES + length], self._arrays.read)


def _largest(value: Any, keep: _Keep) -> str:
    """The name and the bytes of the largest value. It descends into a dict while one entry takes at
    least half of its bytes."""
    path, size = "", len(encode(value, keep))
    while isinstance(value, dict) and value:
        sizes = {
            name: len(_json(_plain(item, _inside(path, name), keep)))
            for name, item in value.items()
        }
        name = max(sizes, key=lambda each: sizes[each])
        if 2 * sizes[name] < size:
            break
        path, value, size = _inside(path, name), value[name], sizes[name]
    return f" ({path}: {size})" if path else ""


def _inside(path: str, name: Any) -> str:
    return f"{path}.{name}" if path else str(name)


def _json(plain: Any) -> bytes:
    return json.dumps(plain, separators=(",", ":")).encode()


def encode(value: Any, keep: _Keep = lambda path, array: None) -> bytes:
    return _json(_plain(value, "", keep))


def fingerprint(value: Any) -> dict[str, Any]:
    """The value by path, each array by its contents. Only for comparison in one process."""
    leaves: dict[str, Any] = {}

    def walk(plain: Any, path: str) -> None:
        if isinstance(plain, dict) and plain.get(_TAG) not in ("kept", "array", "float"):
            parts = {"": plain["items"]} if _TAG in plain else plain
            for key, item in parts.items():
                walk(item, _inside(path, key) if key else path)
        elif isinstance(plain, list):
            for i, item in enumerate(plain):
                walk(item, f"{path}[{i}]")
        else:
            leaves[path] = plain

    walk(_plain(value, "", lambda _, array: _array_memory.contents(array)), "")
    return leaves


def decode(data: bytes, find: _Find | None = None) -> Any:
    return _value(json.loads(data), find)


def _plain(value: Any, path: str, keep: _Keep) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        # JSON has no such numbers, and another reader than Python's would refuse the whole text.
        return value if math.isfinite(value) else {_TAG: "float", "is": repr(value)}
    if _array_memory.is_array(value):
        _array_memory.check(value, path)
        place = keep(path, value)
        if place is not None:
            return {_TAG: "kept", "at": place}
        dtype, shape, data = _array_memory.bytes_of(value)
        text = base64.b64encode(data).decode()
        return {_TAG: "array", "dtype": dtype, "shape": shape, "data": text}
    if isinstance(value, list | tuple | deque):
        items = [_plain(item, f"{path}[{i}]", keep) for i, item in enumerate(value)]
        if isinstance(value, list):
            return items
        kind = "tuple" if isinstance(value, tuple) else "deque"
        return {_TAG: kind, "items": items} | (
            {"most": value.maxlen} if isinstance(value, deque) else {}
        )
    of_texts = type(value) in (dict, OrderedDict) and all(type(key) is str for key in value)
    if of_texts and _TAG not in value:
        return {key: _plain(item, _inside(path, key), keep) for key, item in value.items()}
    if isinstance(value, dict):
        # Pairs, because keys may be numbers.
        pairs = [
            [_plain(key, path, keep), _plain(item, _inside(path, key), keep)]
            for key, item in value.items()
        ]
        kind = "counter" if isinstance(value, Counter) else "dict"
        return {_TAG: kind, "items": pairs}
    if hasattr(value, "item") and hasattr(value, "dtype"):  # a numpy scalar
        return _plain(value.item(), path, keep)
    raise InvalidProgram(
        f"{path} is a {type(value).__name__}: state that learners hand over holds numbers, texts, "
        "tensors, arrays, lists and dicts"
    )


def _value(plain: Any, find: _Find | None) -> Any:
    if isinstance(plain, list):
        return [_value(item, find) for item in plain]
    if not isinstance(plain, dict):
        return plain
    kind = plain.get(_TAG)
    if kind is None:
        return {key: _value(item, find) for key, item in plain.items()}
    if kind == "float":
        return float(plain["is"])
    if kind == "kept":
        if find is None:
            raise InvalidProgram("the state that was taken over is damaged: no tensors are kept")
        return find(plain["at"])
    if kind == "array":
        data = base64.b64decode(plain["data"])
        return _array_memory.array_of(plain["dtype"], plain["shape"], data)
    if kind == "tuple":
        return tuple(_value(item, find) for item in plain["items"])
    if kind == "deque":
        return deque((_value(item, find) for item in plain["items"]), plain["most"])
    pairs = [(_value(key, find), _value(item, find)) for key, item in plain["items"]]
    return Counter(dict(pairs)) if kind == "counter" else dict(pairs)
