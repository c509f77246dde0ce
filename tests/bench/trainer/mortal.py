"""A process that trains kills itself in the midst of a reduction when the bench asks it to: when
that is can be told from within only.

Both talk through files beside the process's commits. The bench leaves the share of the gradients
that is to be handed over before, the process the time of its death.
"""

import os
import signal
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import trainers

# So long another thread of the process has to send what was handed over.
_SENDING_SECONDS = 0.005


def die(commits: Path, share: float) -> float:
    """When the process that writes these commits killed itself, with that share (0 to 1) of its
    gradients handed over."""
    died = _died(commits)
    died.unlink(missing_ok=True)
    _leave(_wish(commits), share)
    trainers.wait(f"a process kills itself: see {commits}", died.exists)
    return float(died.read_text())


class Mortal:
    """`parameters`: PyTorch's, whose gradients are made in a backward pass."""

    def __init__(self, commits: Path, parameters: Sequence[Any]) -> None:
        self._commits = commits
        self._parameters = parameters

    def before_reduction(self) -> None:
        """The backward pass that comes hands its gradients over as it makes them."""
        try:
            share = float(_wish(self._commits).read_text())
        except FileNotFoundError:
            return
        # Whoever takes this process's place is not meant.
        _wish(self._commits).unlink()
        elements = [parameter.numel() for parameter in self._parameters]
        countdown = Countdown(elements, share)
        for index, parameter in enumerate(self._parameters):
            parameter.register_post_accumulate_grad_hook(partial(self._made, countdown, index))

    def _made(self, countdown: "Countdown", index: int, _: object) -> None:
        if not countdown.over(index):
            return
        time.sleep(_SENDING_SECONDS)
        _leave(_died(self._commits), time.monotonic())
        os.kill(os.getpid(), signal.SIGKILL)


class Countdown:
    """How much of the gradients is handed over. `elements`: of each parameter."""

    def __init__(self, elements: Sequence[int], share: float) -> None:
        self._elements = elements
        self._least = share * sum(elements)
        self._left = len(elements)
        self._handed_over = 0

    def over(self, index: int) -> bool:
        """A parameter's gradient is made: whether those before it were the share, or it is the
        last one."""
        over = self._handed_over >= self._least or self._left == 1
        self._handed_over += self._elements[index]
        self._left -= 1
        return over


def _wish(commits: Path) -> Path:
    return commits.with_name(f"{commits.name}.die")


def _died(commits: Path) -> Path:
    return commits.with_name(f"{commits.name}.died")


def _leave(path: Path, value: float) -> None:
    """Whoever reads finds all of it or no file."""
    scratch = path.with_name(f"{path.name}.new")
    scratch.write_text(str(value))
    scratch.replace(path)
