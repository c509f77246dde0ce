"""Python values (a schedule's counters, an optimizer's settings) as bytes: JSON with tags for what
JSON lacks.

Not pickle: a checkpoint or a peer must not be able to run code.
"""

import json
import sys
from collections import Counter, deque
from typing import Any

from .errors import InvalidProgram

_TAG = "__pliant__"


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
