"""Callbacks of Keras in an elastic training: those that decide have state, and those that write do
it on one learner."""

import sys
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from .._callback import Callback
from .._say import say
from ..errors import InvalidProgram

_callbacks = keras.callbacks
# Attributes by which a callback decides.
_STATE: dict[type, tuple[str, ...]] = {
    _callbacks.EarlyStopping: ("wait", "stopped_epoch", "best", "best_epoch"),
    _callbacks.ReduceLROnPlateau: ("wait", "best", "cooldown_counter"),
    _callbacks.ModelCheckpoint: (
        "best", "_current_epoch", "epochs_since_last_save", "_batches_seen_since_last_saving",
        "_last_batch_seen",
    ),
}  # fmt: skip
_WRITERS = (
    _callbacks.CSVLogger,
    _callbacks.ProgbarLogger,
    _callbacks.RemoteMonitor,
    _callbacks.TensorBoard,
)


_REMEDIES = {
    "SwapEMAWeights": "changes the weights for an evaluation: use the optimizer's "
    "ema_overwrite_frequency, or evaluate in a loop of your own",
    "OrbaxCheckpoint": "would write on each learner at once: use ModelCheckpoint; the training "
    "resumes from checkpoints of its own",
}


class Silent:
    """The model, for a callback that saves it, on a learner that does not write."""

    def __init__(self, model: keras.Model) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def save(self, *_: Any, **__: Any) -> None: ...

    def save_weights(self, *_: Any, **__: Any) -> None: ...


class Decides:
    """The state of a callback that decides, as an object to register."""

    def __init__(self, callback: Any, names: Sequence[str]) -> None:
        self._callback = callback
        self._names = names
        # Made now, as large as it will be: state does not grow.
        keeps = getattr(callback, "restore_best_weights", False)
        self._weights = [np.array(each) for each in callback.model.get_weights()] if keeps else None

    def state_dict(self) -> dict[str, Any]:
        values = {name: _plain(getattr(self._callback, name, None)) for name in self._names}
        if self._weights is None:
            return values
        best = self._callback.best_weights
        for mine, each in zip(self._weights, best or (), strict=False):
            np.copyto(mine, each)
        return {**values, "has_best": best is not None, "best_weights": self._weights}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for name in self._names:
            setattr(self._callback, name, state_dict[name])
        if "has_best" in state_dict:
            best = [np.array(each) for each in state_dict["best_weights"]]
            self._callback.best_weights = best if state_dict["has_best"] else None


class FitCallbacks:
    """The callbacks given to fit, called as Keras does."""

    def __init__(self, given: Any, verbose: Any) -> None:
        """Raises InvalidProgram if one cannot be elastic."""
        self.history = _callbacks.History()
        keras_own, self.pliants = _sorted(given)
        # On a terminal a bar; in a log a line for each epoch.
        self._verbose = (1 if sys.stdout.isatty() else 2) if verbose == "auto" else int(verbose)
        if self._verbose:
            keras_own.append(_callbacks.ProgbarLogger())
        self._all = [self.history, *keras_own]
        self._first = False
        self.epoch = 0  # the present one

    def follow(self, model: keras.Model, epochs: int, steps: int) -> None:
        """Call it once, before the others. `steps`: of an epoch."""
        self._model = model
        params = {"verbose": self._verbose, "epochs": epochs, "steps": steps}
        for callback in self._all:
            callback.set_params(params)
            if not isinstance(callback, _WRITERS):  # they open files
                callback.set_model(model)

    def deciding(self) -> dict[str, Decides]:
        """By the names of their states."""
        found: dict[str, Decides] = {}
        for callback in self._all:
            for kind, names in _STATE.items():
                if isinstance(callback, kind):
                    name = f"keras.callback.{len(found)}.{kind.__name__}"
                    found[name] = Decides(callback, names)
        return found

    def registered(self) -> list[Any]:
        """Callbacks of the program that have state_dict and load_state_dict."""
        return [each for each in self._all if hasattr(each, "load_state_dict")]

    def call(self, name: str, *arguments: Any) -> None:
        if name == "on_epoch_begin":
            self.epoch = arguments[0]
        for callback in self._all:
            if self._first or not isinstance(callback, _WRITERS):
                getattr(callback, name)(*arguments)

    def write_if(self, first: bool) -> None:
        """Whether this learner writes from now on."""
        if first != self._first:
            self._first = first
            for callback in self._all:
                if isinstance(callback, _WRITERS):
                    self._begin_or_end(callback, first)
        for callback in self._all:
            if isinstance(callback, _callbacks.ModelCheckpoint):
                callback.set_model(self._model if first else Silent(self._model))

    def _begin_or_end(self, callback: Any, first: bool) -> None:
        if not first:
            callback.on_train_end({})
            return
        if isinstance(callback, _callbacks.CSVLogger):
            callback.append = callback.append or self.epoch > 0  # an earlier learner began it
        callback.set_model(self._model)
        callback.on_train_begin({})
        if isinstance(callback, _callbacks.TensorBoard):
            callback._global_train_batch = int(self._model.optimizer.iterations)
        callback.on_epoch_begin(self.epoch, {})


def _sorted(given: Any) -> tuple[list[Any], list[Callback]]:
    """Those of Keras, and those of Pliant."""
    if isinstance(given, _callbacks.CallbackList):
        raise InvalidProgram("callbacks is a CallbackList: give a list of callbacks")
    listed = list(given) if isinstance(given, list | tuple) else [given] if given else []
    own: list[Any] = []
    for callback in listed:
        if isinstance(callback, Callback | _callbacks.History):
            continue
        if not isinstance(callback, _callbacks.Callback):
            raise InvalidProgram(
                f"callbacks has a {type(callback).__name__}: give callbacks of Keras or of Pliant"
            )
        if isinstance(callback, _callbacks.BackupAndRestore):
            say("BackupAndRestore is left out: the training has checkpoints, and resumes from them")
        elif type(callback).__name__ in _REMEDIES:
            name = type(callback).__name__
            raise InvalidProgram(f"{name} {_REMEDIES[name]}")
        else:
            own.append(callback)
    return own, [each for each in listed if isinstance(each, Callback)]


def _plain(value: Any) -> Any:
    """A number of numpy or of a backend as one of Python."""
    return value if value is None or isinstance(value, int | float | str) else float(value)
