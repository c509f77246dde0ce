"""The loop of pliant.keras.fit."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from .._callback import Callback
from .._evaluation import Evaluation
from .._say import say
from .._step import Step
from .compiled import SUMS, CompiledObjective
from .elastic import KerasElastic
from .fit_callbacks import FitCallbacks

_MAX_ROWS, _MAX_COLUMNS = 4096, 64  # of the history that learners who join receive


class _Progress:
    """What the logs of the present epoch are made of, and the history."""

    def __init__(self, numbers: int, epochs: int) -> None:
        self._epoch = np.zeros(numbers + 2)  # what is counted, the sum of the loss, the samples
        self._history = np.full((min(epochs, _MAX_ROWS), _MAX_COLUMNS), math.nan)
        self._names: list[str] = []

    def begin_epoch(self) -> None:
        self._epoch[:] = 0

    def add(self, counted: np.ndarray, loss_sum: float, samples: float) -> None:
        self._epoch += [*counted, loss_sum, samples]

    def logs(self, objective: CompiledObjective) -> dict[str, float]:
        *counted, loss_sum, samples = self._epoch
        return objective.results(np.array(counted), loss_sum, samples)

    def keep(self, epoch: int, logs: dict[str, Any]) -> None:
        if epoch < len(self._history):
            for name in logs:
                if name not in self._names and len(self._names) < _MAX_COLUMNS:
                    self._names.append(name)
            for column, name in enumerate(self._names):
                self._history[epoch, column] = logs.get(name, math.nan)

    def history(self, epochs: int) -> dict[str, list[float]]:
        rows = self._history[:epochs]
        columns = {name: rows[:, column].tolist() for column, name in enumerate(self._names)}
        return {
            name: [each for each in values if not math.isnan(each)]
            for name, values in columns.items()
        }

    def state_dict(self) -> dict[str, Any]:
        names = ",".join(self._names).ljust(_MAX_COLUMNS * 24)
        return {"counted": self._epoch, "history": self._history, "names": names}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._epoch[:] = state_dict["counted"]
        self._history[:] = state_dict["history"]
        self._names = [each for each in state_dict["names"].strip().split(",") if each]


class Fit(Callback):
    """Calls the callbacks of Keras where a step, an epoch or an evaluation ends: what they change
    there belongs to the state."""

    def __init__(self, elastic: KerasElastic, model: Any, callbacks: FitCallbacks) -> None:
        self._elastic = elastic
        self._model = model
        objective = elastic.objective
        assert isinstance(objective, CompiledObjective)
        self._objective = objective
        self._callbacks = callbacks
        callbacks.follow(model, elastic.epochs, elastic.steps_per_epoch)
        self._progress = _Progress(objective.numbers, elastic.epochs)
        self._is_over = False
        self._history_file = Path(elastic.job.checkpoint_dir, "keras-history.json")
        elastic.register("keras.fit", self)
        for name, state in callbacks.deciding().items():
            elastic.register(name, state)
        for index, callback in enumerate(callbacks.registered()):
            elastic.register(f"keras.callback.of_program.{index}", callback)
        elastic.add_callback(self)
        for callback in callbacks.pliants:
            elastic.add_callback(callback)

    def state_dict(self) -> dict[str, Any]:
        epoch, stops = self._callbacks.epoch, bool(self._model.stop_training)
        return {**self._progress.state_dict(), "epoch": epoch, "stops": stops}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._progress.load_state_dict(state_dict)
        self._callbacks.epoch = state_dict["epoch"]
        self._model.stop_training = state_dict["stops"]

    def run(self) -> Any:
        """Trains. Returns the History."""
        elastic, steps = self._elastic, self._elastic.steps_per_epoch
        for step in elastic.steps():
            self._callbacks.write_if(elastic.first)
            self._callbacks.call("on_train_batch_begin", step.number % steps, {})
            for batch in step:
                step.train(batch)
            step.commit()
        history = self._callbacks.history
        history.history = self._history()
        history.epoch = list(range(max(map(len, history.history.values()), default=0)))
        self._model.history = history
        return history

    def _history(self) -> dict[str, list[float]]:
        """That of the whole training. Who came after the last step reads what the first learner has
        written."""
        if self._is_over:
            return self._progress.history(self._callbacks.epoch + 1)
        try:
            with self._history_file.open() as file:
                kept = json.load(file)
        except (OSError, ValueError):
            return {}
        return kept if isinstance(kept, dict) else {}

    def _write_history(self) -> None:
        try:
            text = json.dumps(self._progress.history(self._callbacks.epoch + 1))
            self._history_file.write_text(text)
        except OSError as error:
            say(f"{self._history_file} cannot be written: {error}")

    # ---- As a callback of the loop ----

    def on_train_begin(self) -> None:
        self._model.stop_training = False
        self._callbacks.call("on_train_begin", {})
        self._begin_epoch(0)

    def on_log(self, line: dict[str, Any]) -> None:
        """For the callbacks after this one, the sums get the names of their metrics."""
        sums = line.get("sums")
        if not isinstance(sums, dict) or "loss" not in line:
            return
        samples = float(line.get("samples", 0))
        counted = self._objective.counted(sums)
        metrics = self._objective.results(counted, line["loss"] * samples, samples)
        own = {name: each for name, each in sums.items() if not name.startswith(SUMS)}
        line |= {"sums": own, "metrics": {k: v for k, v in metrics.items() if k != "loss"}}

    def on_train_batch_end(self, step: Step) -> None:
        self._callbacks.write_if(self._elastic.first)
        counted = self._objective.counted(step.sums)
        self._progress.add(counted, step.loss * step.weight, step.weight)
        logs = self._progress.logs(self._objective)
        self._callbacks.call("on_train_batch_end", step.number % self._elastic.steps_per_epoch, logs)
        # A callback that stops in mid epoch, such as TerminateOnNaN, ends it without an evaluation.
        if self._model.stop_training and not step.last_of_epoch:
            self._end_epoch(step.epoch, {})

    def on_epoch_end(self, epoch: int) -> None:
        if not self._elastic.evaluates:
            self._end_epoch(epoch, {})

    def on_test_end(self, evaluation: Evaluation) -> None:
        if self._is_over:
            return
        self._callbacks.write_if(self._elastic.first)
        self._callbacks.call("on_test_begin", {})
        counted = self._objective.counted(evaluation.sums)
        samples = float(evaluation.samples)
        found = self._objective.results(counted, evaluation.loss * samples, samples)
        self._callbacks.call("on_test_end", found)
        self._end_epoch(evaluation.epoch, {f"val_{name}": value for name, value in found.items()})

    def _begin_epoch(self, epoch: int) -> None:
        self._progress.begin_epoch()
        self._callbacks.call("on_epoch_begin", epoch, {})

    def _end_epoch(self, epoch: int, of_evaluation: dict[str, float]) -> None:
        logs: dict[str, Any] = {**self._progress.logs(self._objective), **of_evaluation}
        self._callbacks.call("on_epoch_end", epoch, logs)
        self._progress.keep(epoch, logs)  # a callback may add to them
        if self._model.stop_training or epoch + 1 == self._elastic.epochs:
            self._is_over = True
            self._model.optimizer.finalize_variable_values(self._model.trainable_weights)
            # Before the final model is written: EarlyStopping puts the best weights back.
            self._callbacks.call("on_train_end", logs)
            self._elastic.stop()
            if self._elastic.first:
                self._write_history()
        else:
            self._begin_epoch(epoch + 1)
