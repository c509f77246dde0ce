"""Changes that a program makes to its data while it trains, such as `data.epoch = step.epoch`.

Processes that load batches have a copy of the data from when they were forked. They receive each
change with the next request, and what they loaded before it is not used.
"""

import ctypes
import pickle
import sys
import types
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import InvalidProgram

# Larger things count as changed when they are replaced by others.
_MAX_ITEMS = 64
_MAX_BYTES = 1 << 16
_MAX_LEVELS = 8
_MAX_PLACES = 2000
_MAX_SENT = 16 << 20

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
# Attributes on the way from a root, whose name comes first. A number is an index in a list.
Path = tuple[str | int, ...]


class DataChanges:
    """Observes data in the process of the program."""

    def __init__(self, roots: Mapping[str, Any]) -> None:
        """`roots`: datasets and functions that make batches, by the name for messages."""
        self._roots = roots
        self._seen = _snapshot(roots)
        self._changed: dict[Path, bytes] = {}
        self.version = 0
        self.packed = pickle.dumps({})  # all changes so far, for `apply`

    def look(self) -> None:
        """Finds what changed since the last call. Raises InvalidProgram if that cannot be sent to
        another process."""
        now = _snapshot(self._roots)
        if now == self._seen:
            return
        whole: set[Path] = set()  # replaced, with all that is inside
        for path, token in now.items():
            if any(path[:length] in whole for length in range(len(path))):
                continue
            if path in self._seen and self._seen[path] == token:
                continue
            whole.add(path)
            self._take(path, opened=self._seen.get(path) == _NOTHING)
        self._seen = now
        self.version += 1
        self.packed = pickle.dumps(self._changed)
        if len(self.packed) > _MAX_SENT:
            name = max(self._changed, key=lambda path: len(self._changed[path]))
            raise _cannot_be_sent(name, "it is too large", "share_memory_() of a tensor")

    def absorb(self) -> None:
        """The data changed themselves, because a sample was read: each process does that."""
        self._seen = _snapshot(self._roots)

    def _take(self, path: Path, *, opened: bool) -> None:
        try:
            value = _find(self._roots, path)
            if not _is_shared(value):
                self._changed[path] = pickle.dumps(value)
            if len(path) == 1:
                raise TypeError("it is replaced as a whole")
        except Exception as error:  # whatever the pickling of the user's object raises
            if opened:  # a file that is opened at the first use: each process has its own
                return
            raise _cannot_be_sent(path, str(error), "num_workers=0") from None


def _cannot_be_sent(path: Path, why: str, remedy: str) -> InvalidProgram:
    name = ".".join(str(part) for part in path)
    return InvalidProgram(
        f"the {name} was changed after the processes that load data were started, and cannot be "
        f"sent to them ({why}): change it before the first step, or use {remedy}"
    )


def apply(packed: bytes, roots: Mapping[str, Any]) -> None:
    """In a process that loads data: makes the changes."""
    for path, value in pickle.loads(packed).items():
        # The last part is no index: a list of which an item was replaced counts as a whole.
        setattr(_find(roots, path[:-1]), str(path[-1]), pickle.loads(value))


def _find(roots: Mapping[str, Any], path: Path) -> Any:
    value = roots[str(path[0])]
    for part in path[1:]:
        value = value[part] if isinstance(part, int) else getattr(value, part)
    return value


def _is_shared(value: Any) -> bool:
    """Whether all processes have the same memory of it."""
    if type(value).__module__ == "multiprocessing.sharedctypes":
        return True
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor) and bool(value.is_shared())


_NOTHING = (type(None), None)


def _snapshot(roots: Mapping[str, Any]) -> dict[Path, Any]:
    found: dict[Path, Any] = {}
    known: set[int] = set()

    def walk(path: Path, value: Any) -> None:
        if len(found) >= _MAX_PLACES:
            return
        token = _value(value, _MAX_LEVELS)
        found[path] = _identity(value) if token is None else token
        if token is not None or id(value) in known or len(path) > _MAX_LEVELS:
            return
        known.add(id(value))
        for part, inside in _parts(value):
            walk((*path, part), inside)

    for name, root in roots.items():
        walk((name,), root)
    return found


def _identity(value: Any) -> Any:
    if _is_shared(value):
        return (id(value), bytes(value.get_obj() if hasattr(value, "get_obj") else value))
    if isinstance(value, list | tuple | set | frozenset):
        return (id(value), tuple(id(item) for item in value))
    if isinstance(value, dict):
        return (id(value), tuple((id(key), id(item)) for key, item in value.items()))
    return (type(value), id(value))


def _parts(value: Any) -> Iterator[tuple[str | int, Any]]:
    torch = sys.modules.get("torch")
    if isinstance(value, list | tuple):
        yield from enumerate(value)
    elif isinstance(value, types.MethodType):
        yield "__self__", value.__self__
    elif torch is not None and isinstance(value, torch.nn.Module):
        return  # it is trained, or a part of the training's state
    elif not isinstance(value, type | types.ModuleType | types.FunctionType):
        # A copy: another thread of the program may add an attribute.
        yield from dict(getattr(value, "__dict__", {})).items()


def _value(value: Any, levels: int) -> Any:
    """What is equal for equal contents. None: it is known by its identity, and has parts."""
    if isinstance(value, _PLAIN):
        return (type(value), value)
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        return (id(value), 0 if value.is_inference() else value._version)
    if numpy is not None and isinstance(value, numpy.ndarray):
        small = value.nbytes <= _MAX_BYTES and not value.dtype.hasobject
        return (id(value), zlib.crc32(value.tobytes()) if small else 0)
    if _is_shared(value):
        return (id(value), bytes(value.get_obj() if hasattr(value, "get_obj") else value))
    if isinstance(value, ctypes._SimpleCData | ctypes.Array):
        return (id(value), bytes(value))
    if isinstance(value, list | tuple | set | frozenset | dict):
        if len(value) > _MAX_ITEMS or levels == 0:
            return (id(value), len(value))
        items = value.items() if isinstance(value, dict) else value
        tokens = [_value(item, levels - 1) for item in items]
        return None if None in tokens else (type(value), tuple(tokens))
    return None
