"""Lets a learning rate follow a batch that grows."""

import math
from collections.abc import Callable
from typing import Any

import torch

from .._loop import Elastic
from ..errors import InvalidProgram

_RULES: dict[str, Callable[[int], float]] = {"Linear": float, "Sqrt": math.sqrt}


def scale_learning_rate(optimizer: torch.optim.Optimizer, rule: str) -> None:
    """Multiplies the learning rates of all parameter groups during each step of the optimizer: by
    the growth of the batch (`Elastic.batch_growth`) with the rule "Linear", which suits SGD, or by
    its square root with "Sqrt", which suits Adam and AdamW. Between the steps the groups have their
    own rates, so schedules work as always. Without a batch that grows nothing changes. Call it
    once, before the first step."""
    if rule not in _RULES:
        raise InvalidProgram(f"scale_learning_rate: the rule is {rule!r}: use Linear or Sqrt")
    kept: list[Any] = []

    def before(stepped: torch.optim.Optimizer, *_: Any) -> None:
        growth = 1 if Elastic.present is None else Elastic.present.batch_growth
        kept[:] = [group["lr"] for group in stepped.param_groups]
        if growth > 1:
            for group in stepped.param_groups:
                group["lr"] = group["lr"] * _RULES[rule](growth)

    def after(stepped: torch.optim.Optimizer, *_: Any) -> None:
        for group, rate in zip(stepped.param_groups, kept, strict=True):
            group["lr"] = rate

    optimizer.register_step_pre_hook(before)
    optimizer.register_step_post_hook(after)
