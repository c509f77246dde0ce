"""Makes sure that only `step.commit()` steps the optimizers."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from .._say import say
from ..errors import InvalidProgram


class OptimizerSteps:
    """Observes the steps of all optimizers of the process, from its creation until `remove`."""

    def __init__(
        self,
        optimizers: Iterable[torch.optim.Optimizer],
        parameters: Iterable[torch.Tensor],
    ) -> None:
        self._optimizers = list(optimizers)
        self._of_model = {id(parameter) for parameter in parameters}
        self._allowed = False
        self._told = False
        self._hook = register_optimizer_step_pre_hook(self._before_step)

    def remove(self) -> None:
        self._hook.remove()

    @contextlib.contextmanager
    def allowed(self) -> Iterator[None]:
        self._allowed = True
        try:
            yield
        finally:
            self._allowed = False

    def _before_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if self._allowed:  # also for an optimizer that the attached one wraps
            return
        if any(optimizer is each for each in self._optimizers):
            raise InvalidProgram(
                "the loop calls optimizer.step(): step.commit() takes the optimizer's step, with "
                "the gradient of the whole batch, on all learners alike. Take optimizer.step() "
                "(and scaler.step, scaler.update) out of the loop, and give a scaler to "
                "pliant.attach"
            )
        moved = (each for group in optimizer.param_groups for each in group["params"])
        if any(id(parameter) in self._of_model for parameter in moved):
            raise InvalidProgram(
                f"an optimizer that pliant.attach was not given ({type(optimizer).__name__}) steps "
                "parameters of the model: give pliant.attach a dict of optimizers, "
                "{'d': first, 'g': second}, and step one with step.commit('d')"
            )
        if not self._told:
            self._told = True
            say(
                f"an optimizer that pliant.attach was not given ({type(optimizer).__name__}) takes "
                "steps: its parameters are not part of the training's state, so neither "
                "checkpoints nor learners that join get them"
            )
