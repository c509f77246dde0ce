"""A hash of a pipeline of the library datasets: equal for the same program in another process.

Positions are kept by it. If two processes disagree, they only do not find each other's positions.
"""

import functools
import hashlib
import types
from collections.abc import Iterator
from typing import Any

from .hf_pipeline import steps_of

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_MAX_LEVELS = 8
# Attributes of a step that change while it is read, and those that lead to other steps.
_NOT_OF_IT = {
    "_owned_loops_and_tasks",
    "_state_dict",
    "decoding_pool",
    "ex_iterable",
    "ex_iterables",
}


def identity_of(data: Any, version: str) -> str:
    """`version`: of the library, whose states may change their form."""
    whole = hashlib.sha256(version.encode())
    for step in steps_of(data):
        attributes = {name: value for name, value in vars(step).items() if name not in _NOT_OF_IT}
        for text in (type(step).__name__, *_described(attributes, _MAX_LEVELS)):
            whole.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return whole.hexdigest()[:32]


def _described(value: Any, levels: int) -> Iterator[str]:
    if isinstance(value, _PLAIN):
        yield repr(value)
    elif levels == 0:
        yield type(value).__qualname__
    elif isinstance(value, list | tuple):
        yield f"{type(value).__name__} {len(value)}"
        for item in value:
            yield from _described(item, levels - 1)
    elif isinstance(value, set | frozenset):
        yield from sorted(" ".join(_described(item, levels - 1)) for item in value)
    elif isinstance(value, dict):
        for name, item in sorted(value.items(), key=lambda pair: repr(pair[0])):
            yield repr(name)
            yield from _described(item, levels - 1)
    elif isinstance(value, types.CodeType):
        yield value.co_name
        yield value.co_code.hex()
        yield from _described([value.co_consts, value.co_names], levels - 1)
    elif isinstance(value, types.FunctionType):
        yield f"{value.__module__}.{value.__qualname__}"
        cells = [cell.cell_contents for cell in value.__closure__ or () if _is_set(cell)]
        inside = [value.__code__, value.__defaults__, value.__kwdefaults__, cells]
        yield from _described(inside, levels - 1)
    elif isinstance(value, types.MethodType):
        yield from _described([value.__func__, value.__self__], levels - 1)
    elif isinstance(value, functools.partial):
        yield from _described([value.func, value.args, value.keywords], levels - 1)
    else:
        # A reader of files, whose settings decide what it reads; otherwise the class must do.
        yield type(value).__qualname__
        yield str(getattr(value, "_fingerprint", ""))
        yield from _described(getattr(getattr(value, "config", None), "__dict__", None), 2)


def _is_set(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
