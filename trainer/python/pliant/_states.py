"""State of a training apart from the model and its optimizer."""

import inspect
from typing import Any, Protocol, runtime_checkable

from .errors import InvalidProgram


@runtime_checkable
class Stateful(Protocol):
    """A schedule, a scaler, a metric: any object whose state is part of the training's state."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...


class _Entries:
    """A registered dict. Its entries are the state, and the dict stays the same object."""

    def __init__(self, entries: dict[str, Any]) -> None:
        self._entries = entries

    def state_dict(self) -> dict[str, Any]:
        return self._entries

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._entries.clear()
        self._entries.update(state_dict)


class States:
    """The registered objects, by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, Stateful] = {}

    def add(self, name: str, what: Stateful | dict[str, Any]) -> None:
        if not isinstance(what, Stateful) and isinstance(what, dict):
            what = _Entries(what)
        if not isinstance(what, Stateful):
            raise InvalidProgram(
                f"register({name!r}, ...): a {type(what).__name__} has no state_dict and "
                f"load_state_dict. For values of your own register a dict and change its entries: "
                f'mine = {{"{name}": ...}}'
            )
        if name in self._by_name:
            raise InvalidProgram(f"two states are registered under the name {name}")
        self._by_name[name] = what

    def objects(self) -> list[Stateful]:
        return list(self._by_name.values())

    def plain(self) -> dict[str, Any]:
        return {name: _without_functions(what.state_dict()) for name, what in self._by_name.items()}

    def restore(self, plain: dict[str, Any]) -> None:
        for name, what in self._by_name.items():
            if name not in plain:
                raise InvalidProgram(f"the restored state lacks the registered {name}")
            own = _functions_in(what.state_dict())
            what.load_state_dict({**own, **plain[name]} if own else plain[name])


def _functions_in(state: Any) -> dict[Any, Any]:
    """Functions in a state: each process has the same ones from the program, so they are not
    transferred. The state of OneCycleLR has one in PyTorch before 2.2."""
    items = state.items() if isinstance(state, dict) else ()
    return {name: value for name, value in items if inspect.isroutine(value)}


def _without_functions(state: Any) -> Any:
    functions = _functions_in(state)
    if not functions:
        return state
    return {name: value for name, value in state.items() if name not in functions}


class Counters:
    """Counters that last over steps and belong to the training's state."""

    def __init__(self) -> None:
        self.nonfinite_in_a_row = 0
        self.learners_asked = 0
        self.stopped = False

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        vars(self).update(state_dict)
