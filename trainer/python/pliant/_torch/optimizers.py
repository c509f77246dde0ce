"""The optimizers of a training: one, or several by name, as in a GAN."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from .._settings import Scaler
from ..errors import InvalidProgram
from .mirror import Mirror
from .optimizer_state import OptimizerState

_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}")


class Optimizers:
    """`given`: an optimizer, or a dict of them. Raises InvalidProgram if it is something else."""

    def __init__(self, given: Any) -> None:
        if isinstance(given, Mapping):
            if not given:
                raise InvalidProgram("the dict of optimizers is empty: give one optimizer at least")
            for name in given:
                if not isinstance(name, str) or not _NAME.fullmatch(name):
                    raise InvalidProgram(
                        f"an optimizer is named {name!r}: give a name of 1 to 63 letters, digits, "
                        "_ and -"
                    )
            self._by_name = dict(given)
        else:
            self._by_name = {"": given}
        for name, optimizer in self._by_name.items():
            _check(f"the optimizer {name}" if name else "the optimizer", optimizer)
        self._states: dict[str, OptimizerState] = {}

    def __iter__(self) -> Iterator[torch.optim.Optimizer]:
        return iter(self._by_name.values())

    def hold_state(self, names: dict[torch.Tensor, str]) -> None:
        """From now on each has its state at fixed addresses. `names`: of the model's parameters."""
        self._states = {
            name: OptimizerState(optimizer, names) for name, optimizer in self._by_name.items()
        }

    def chosen(self, name: str | None) -> list[torch.optim.Optimizer]:
        """Those that `commit(name)` steps. None: all, in their order."""
        if name is None:
            return list(self)
        if name in self._by_name and name:
            return [self._by_name[name]]
        known = ", ".join(map(repr, filter(None, self._by_name)))
        raise InvalidProgram(
            f"commit({name!r}): the training has the optimizers {known}"
            if known
            else f"commit({name!r}): the training has one optimizer, without a name; call commit()"
        )

    def parameters_of(self, chosen: Iterable[torch.optim.Optimizer]) -> set[int] | None:
        """The ids of the parameters that these step. None: all."""
        if len(self._by_name) == 1:
            return None
        return {
            id(each)
            for optimizer in chosen
            for group in optimizer.param_groups
            for each in group["params"]
        }

    # ---- Their state, while it trains ----

    def tensors(self) -> Iterator[tuple[str, Mirror]]:
        for name, state in self._states.items():
            for of_state, mirror in state.tensors():
                yield f"optimizer.{name}.{of_state}" if name else f"optimizer.{of_state}", mirror

    def take_over(self) -> None:
        for state in self._states.values():
            state.take_over()

    def plain(self) -> dict[str, Any]:
        if "" in self._states:
            return self._states[""].plain()
        return {name: state.plain() for name, state in self._states.items()}

    def restore(self, plain: dict[str, Any]) -> None:
        for name, state in self._states.items():
            state.restore(plain[name] if name else plain)


def take_steps(optimizers: list[torch.optim.Optimizer], scaler: Scaler | None) -> None:
    for optimizer in optimizers:
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
    if scaler is not None:
        scaler.update()


def _check(what: str, optimizer: Any) -> None:
    if isinstance(optimizer, list | tuple):
        raise InvalidProgram(
            f"{len(optimizer)} optimizers were given without names: give a dict, "
            "{'d': first, 'g': second}; step.commit('d') steps one of them, step.commit() all"
        )
    if isinstance(optimizer, torch.optim.SparseAdam):
        raise InvalidProgram(
            f"{what} is a SparseAdam, which needs sparse gradients, but the gradient of a batch "
            "is dense: use Adam"
        )
    if not all(hasattr(optimizer, name) for name in ("param_groups", "state", "step")):
        raise InvalidProgram(
            f"{what} is a {type(optimizer).__name__}: it must be a torch.optim.Optimizer"
        )
