"""Finds the learning rate schedule of an optimizer, if the program did not register it: a learner
that joins would begin it again."""

import gc
from typing import Any

import torch
from torch.optim import lr_scheduler

from .._say import say
from .._states import States
from ..errors import InvalidProgram

_NAME = "pliant.schedule"


def register_schedule(
    optimizer: torch.optim.Optimizer, states: States, *, place: int = 0
) -> None:
    """Registers the optimizer's schedule unless the program did. `place`: the optimizer's, among
    several. Raises InvalidProgram if there are
    several: learners must register them in the same order."""
    if not _unregistered(optimizer, states):
        return
    gc.collect()  # one that is no longer used may be in a cycle
    found = _unregistered(optimizer, states)
    if len(found) > 1:
        kinds = ", ".join(sorted(type(each).__name__ for each in found))
        raise InvalidProgram(
            f"{len(found)} schedules of the optimizer are not registered ({kinds}): learners that "
            "join would begin them again. Call elastic.register(name, schedule) for each before "
            "the first step, and delete those that are not used"
        )
    for schedule in found:
        states.add(f"{_NAME}.{place}" if place else _NAME, schedule)
        say(
            f"the schedule {type(schedule).__name__} of the optimizer is part of the training's "
            'state now, as if by elastic.register("schedule", schedule)'
        )


def _unregistered(optimizer: torch.optim.Optimizer, states: States) -> list[Any]:
    kinds = (lr_scheduler.LRScheduler, lr_scheduler.ReduceLROnPlateau)
    # `type`, because isinstance asks proxies for their class, which may do anything.
    found = [
        each
        for each in gc.get_objects()
        if issubclass(type(each), kinds) and getattr(each, "optimizer", None) is optimizer
    ]
    known = {id(state) for state in states.objects()}
    # A schedule of schedules has the state of those in it.
    for each in [*found, *states.objects()]:
        known |= {id(part) for part in getattr(each, "_schedulers", ())}
    return [each for each in found if id(each) not in known]
