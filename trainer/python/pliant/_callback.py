"""The interface of callbacks, and the callbacks of a training."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ._evaluation import Evaluation
from ._step import Step
from .errors import InvalidProgram


class Callback:
    """Observes a training while it runs: see Elastic.add_callback. The methods have the names of
    Keras' callbacks. A batch is a global batch here: one step of the optimizer.

    All but `on_log` are called on every learner. What they decide or change must depend only on
    their arguments and on registered state, so that learners stay equal."""

    def set_elastic(self, elastic: Any) -> None:
        """Called when the callback is added. Register its state here."""

    def on_train_begin(self) -> None:
        """Called before the first step, and before a state of others or of a checkpoint is loaded:
        what it changes in registered state is what a new training begins with."""

    def on_train_batch_end(self, step: Step) -> None:
        """Called after each commit. What it changes still belongs to the step."""

    def on_epoch_end(self, epoch: int) -> None:
        """Called after the commit of an epoch's last step, after `on_train_batch_end`."""

    def on_test_end(self, evaluation: Evaluation) -> None:
        """Called after each evaluation. What it changes is part of the state."""

    def on_log(self, line: dict[str, Any]) -> None:
        """Called with each line of metrics.jsonl, on one learner at a time. The line also has the
        learning rate and the seconds per step."""

    def on_train_end(self) -> None:
        """Called when this learner ends, for any reason."""


class LambdaCallback(Callback):
    """A callback made of functions, by the names of Callback's methods:
    `pliant.LambdaCallback(on_test_end=lambda evaluation: schedule.step(evaluation.loss))`."""

    def __init__(self, **functions: Callable[..., None]) -> None:
        known = sorted(name for name in vars(Callback) if name.startswith("on_"))
        for name, function in functions.items():
            if name not in known:
                raise InvalidProgram(f"LambdaCallback has no {name}: it has {', '.join(known)}")
            if not callable(function):
                raise InvalidProgram(f"{name} of LambdaCallback is {function!r}: give a function")
            setattr(self, name, function)


class Callbacks:
    """The callbacks of a training, called in the order in which they were added."""

    def __init__(self) -> None:
        self._all: list[Callback] = []

    def __iter__(self) -> Iterator[Callback]:
        return iter(self._all)

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, callback: Callback, elastic: Any) -> None:
        if not isinstance(callback, Callback):
            raise InvalidProgram(
                f"add_callback was given a {type(callback).__name__}: it must be a pliant.Callback; "
                "pliant.LambdaCallback makes one of functions"
            )
        callback.set_elastic(elastic)
        self._all.append(callback)

    def end(self, last: contextlib.ExitStack) -> None:
        """Ends them when `last` is closed, in the order of their addition."""
        callbacks, self._all = self._all, []
        for callback in reversed(callbacks):
            last.callback(callback.on_train_end)
