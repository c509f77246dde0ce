"""A callback that keeps the best model."""

import json
import math
from pathlib import Path
from typing import Any

from ._callback import Callback
from ._evaluation import Evaluation, monitored, sign_of
from ._loop import Elastic
from .errors import InvalidProgram

_NOTE_BYTES = 1 << 16  # a larger file is none that this class has written


class BestModel(Callback):
    """Writes the model of the best evaluation so far to `<job>/best`, in the layout of the final
    model, with the value and its step in `best.json`. The training continues meanwhile.

    monitor: "loss", "accuracy", or the name of a sum that `evaluate` returns.
    mode: "min" or "max": which values are better. None: "min" for the loss, else "max".

    The best value (`value`) and the optimizer steps before it (`step`) are part of the training's
    state. They are None before the first evaluation.

    One learner writes, and a crash leaves the old model or the new one whole. If that learner is
    lost before it has written, the next evaluation that is better than the model on the volume
    replaces it. Raises InvalidProgram if there are no test data.
    """

    def __init__(self, monitor: str = "loss", mode: str | None = None) -> None:
        self._monitor = monitor
        self._sign = sign_of(monitor, mode)
        # Values times the sign: less is better.
        self._best = math.inf
        self._step = 0
        self._exported = math.inf  # the best one that this process writes

    def set_elastic(self, elastic: Elastic[Any]) -> None:
        if not elastic.evaluates:
            raise InvalidProgram("BestModel needs evaluations: give test data")
        elastic.register("pliant.best_model", self)
        self._elastic = elastic

    @property
    def value(self) -> float | None:
        """The best value so far."""
        return None if self._best == math.inf else self._sign * self._best

    @property
    def step(self) -> int | None:
        """The optimizer steps before it."""
        return None if self._best == math.inf else self._step

    def state_dict(self) -> dict[str, Any]:
        return {"best": self._best, "step": self._step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._best, self._step = state_dict["best"], state_dict["step"]

    def on_test_end(self, evaluation: Evaluation) -> None:
        value = self._sign * monitored(evaluation, self._monitor)
        better = value < self._best
        if better:
            self._best, self._step = value, evaluation.step
        # The first learner's export is the one that counts. That is output only.
        if not better and not (self._elastic.first and self._is_lost(value)):
            return
        if self._elastic.first:
            self._exported = value
        note = {"monitor": self._monitor, "value": self._sign * value, "step": evaluation.step}
        self._elastic._export_best(json.dumps(note))

    def _is_lost(self, value: float) -> bool:
        """Whether the best model was not written, and this one is better than the written one."""
        return value < math.inf and value < self._exported and value < self._written()

    def _written(self) -> float:
        """The value of the model on the volume, times the sign; infinity: there is none."""
        path = Path(self._elastic.job.checkpoint_dir, "best", "best.json")
        try:
            with path.open("rb") as file:
                note = json.loads(file.read(_NOTE_BYTES))
            return self._sign * float(note["value"])
        except (OSError, ValueError, KeyError, TypeError):
            return math.inf
