"""An optimizer's state at fixed addresses.

torch creates it at the first step. Learners that join before and after that step must agree on its
shapes, so a trial step is taken with gradients of 0, and undone.
"""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from ..errors import InvalidProgram
from .mirror import Mirror


class OptimizerState:
    """Until the first step the optimizer has no state, as without Pliant. From then on its tensors
    are the ones held here."""

    def __init__(self, optimizer: torch.optim.Optimizer, names: dict[torch.Tensor, str]) -> None:
        self._optimizer = optimizer
        self._parameters = [
            parameter
            for group in optimizer.param_groups
            for parameter in group["params"]
            if parameter.requires_grad
        ]
        unknown = [parameter for parameter in self._parameters if parameter not in names]
        if unknown:
            shapes = ", ".join(str(tuple(parameter.shape)) for parameter in unknown)
            raise InvalidProgram(
                f"the optimizer has parameters that are not the model's, of shapes {shapes}"
            )
        self._names = [names[parameter] for parameter in self._parameters]
        self._mirrors: dict[tuple[int, str], Mirror] = {}
        present = all(optimizer.state.get(parameter) for parameter in self._parameters)
        state = optimizer.state if present else self._tried_state()
        for i, parameter in enumerate(self._parameters):
            for key, value in sorted(state.get(parameter, {}).items()):
                if isinstance(value, torch.Tensor):
                    if is_traceable_wrapper_subclass(value):
                        raise InvalidProgram(
                            f"the optimizer's {key} of {self._names[i]} is a "
                            f"{type(value).__name__}, whose memory cannot be handed over: use an "
                            "optimizer with plain tensors, such as bitsandbytes' 8-bit ones"
                        )
                    self._mirrors[i, key] = Mirror(value.detach().clone())
        if present:
            self.take_over()

    def tensors(self) -> Iterator[tuple[str, Mirror]]:
        """Those of each parameter, as "<parameter>.<key>"."""
        for (i, key), mirror in self._mirrors.items():
            yield f"{self._names[i]}.{key}", mirror

    def _tried_state(self) -> dict[torch.Tensor, dict[str, Any]]:
        """The state after a trial step, which is undone."""
        optimizer = self._optimizer
        parameters = [(parameter, parameter.detach().clone()) for parameter in self._parameters]
        before = {key: copy.deepcopy(value) for key, value in optimizer.state.items()}
        groups = [
            {k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups
        ]
        groups = copy.deepcopy(groups)
        try:
            for parameter in self._parameters:
                parameter.grad = torch.zeros_like(parameter)
            # The method of the class: a schedule wraps the instance's method and counts its calls.
            type(optimizer).step(optimizer)
        except TypeError as error:
            raise InvalidProgram(
                f"{type(optimizer).__name__} cannot be used: its step needs more than gradients "
                f"({error})"
            ) from None
        finally:
            tried = {
                parameter: dict(optimizer.state.get(parameter, {}))
                for parameter in self._parameters
            }
            optimizer.state.clear()
            optimizer.state.update(before)
            for group, saved in zip(optimizer.param_groups, groups, strict=True):
                group.update(saved)
            with torch.no_grad():
                for parameter, saved_parameter in parameters:
                    parameter.copy_(saved_parameter)
                    parameter.grad = None
        return tried

    def take_over(self) -> None:
        """After a step: copies the state's tensors here and makes the optimizer use these ones."""
        for i, parameter in enumerate(self._parameters):
            state = self._optimizer.state.get(parameter, {})
            for key, value in state.items():
                if not isinstance(value, torch.Tensor):
                    continue
                mirror = self._mirrors.get((i, key))
                if (
                    mirror is None
                    or mirror.live.shape != value.shape
                    or mirror.live.dtype != value.dtype
                ):
                    raise InvalidProgram(
                        f"the optimizer's {key} of {self._names[i]} is not what it was at the "
                        "start: state that changes its shape cannot be handed over"
                    )
                state[key] = mirror.adopt(value)
                mirror.save()

    def plain(self) -> dict[str, Any]:
        """The part of the state that is not in tensors."""
        optimizer = self._optimizer
        values = [
            {
                key: value
                for key, value in optimizer.state.get(parameter, {}).items()
                if not isinstance(value, torch.Tensor)
            }
            for parameter in self._parameters
        ]
        groups = [
            {k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups
        ]
        return {"started": bool(optimizer.state), "values": values, "param_groups": groups}

    def restore(self, plain: dict[str, Any]) -> None:
        """Sets the optimizer's state from the memory here and from `plain`."""
        optimizer = self._optimizer
        for group, saved in zip(optimizer.param_groups, plain["param_groups"], strict=True):
            group.update(saved)
        optimizer.state.clear()
        if not plain["started"]:
            return
        for parameter, values in zip(self._parameters, plain["values"], strict=True):
            optimizer.state[parameter].update(values)
        for (i, key), mirror in self._mirrors.items():
            mirror.restore()
            optimizer.state[self._parameters[i]][key] = mirror.live
