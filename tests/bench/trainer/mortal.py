"""A training process kills itself in the middle of a reduction when the bench asks for it: only the
process itself knows that moment.

They communicate through files next to the process's commits. The bench writes the share of the
gradients that must be handed over before, the process the time of its death.
"""

import os
import signal
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import trainers

# Time for another thread of the process to send what was handed over.
_SENDING_SECONDS = 0.005


def die(commits: Path, share: float) -> float:
    """Lets the process that writes these commits kill itself when this share (0 to 1) of its
    gradients is handed over. Returns the time of its death."""
    died = _died(commits)
    died.unlink(missing_ok=True)
    _leave(_wish(commits), share)
    trainers.wait(f"a process kills itself: see {commits}", died.exists)
    return float(died.read_text())


class Mortal:
    """`parameters`: those of the PyTorch model, whose gradients a backward pass computes."""

    def __init__(self, commits: Path, parameters: Sequence[Any]) -> None:
        self._commits = commits
        self._parameters = parameters

    def before_reduction(self) -> None:
        """The next backward pass hands its gradients over as it computes them."""
        try:
            share = float(_wish(self._commits).read_text())
        except FileNotFoundError:
            return
        # The request must not reach the process that replaces this one.
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
    """Tracks how much of the gradients is handed over. `elements`: those of each parameter."""

    def __init__(self, elements: Sequence[int], share: float) -> None:
        self._elements = elements
        self._least = share * sum(elements)
        self._left = len(elements)
        self._handed_over = 0

    def over(self, index: int) -> bool:
        """A parameter's gradient is ready. Returns whether those before it reach the share, or it
        is the last one."""
        over = self._handed_over >= self._least or self._left == 1
        self._handed_over += self._elements[index]
        self._left -= 1
        return over


def _wish(commits: Path) -> Path:
    return commits.with_name(f"{commits.name}.die")


def _died(commits: Path) -> Path:
    return commits.with_name(f"{commits.name}.died")


def _leave(path: Path, value: float) -> None:
    """Readers find the complete file or none."""
    scratch = path.with_name(f"{path.name}.new")
    scratch.write_text(str(value))
    scratch.replace(path)
