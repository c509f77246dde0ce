"""Callbacks for `elastic.add_callback(...)` or FabricModel's user_callback."""

import math
import sys
import time
from pathlib import Path
from typing import Any

from ._callback import Callback
from ._checks import whole
from ._evaluation import Evaluation, monitored, sign_of
from ._event_files import EventFiles
from ._log_values import LogValues
from ._loop import Elastic
from .errors import InvalidProgram

_BAR_WIDTH = 24
_LINE_EVERY_SECONDS = 30.0  # in a log, where a line cannot be overwritten


class ProgressBar(Callback):
    """Prints the progress on standard error, on the one learner that writes the metrics. On a
    terminal it overwrites one line; in a log it prints a line every 30 seconds and after each
    evaluation."""

    def set_elastic(self, elastic: Elastic[Any]) -> None:
        self._epochs = elastic.epochs
        self._terminal = sys.stderr.isatty()
        self._said = -math.inf
        self._open = False  # the last line on the terminal has no line end yet

    def on_log(self, line: dict[str, Any]) -> None:
        test = line.get("kind") == "test"
        if not self._terminal and not test:
            if time.monotonic() - self._said < _LINE_EVERY_SECONDS:
                return
            self._said = time.monotonic()
        text = self._describe(line)
        if not self._terminal or test:
            self._end_line()
            print(text, file=sys.stderr, flush=True)
            return
        print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)
        self._open = True

    def on_train_end(self) -> None:
        self._end_line()

    def _end_line(self) -> None:
        if self._open:
            print(file=sys.stderr)
        self._open = False

    def _describe(self, line: dict[str, Any]) -> str:
        # A batch that grows makes the total smaller.
        step, total = int(line["step"]), int(line["totalSteps"])
        full = _BAR_WIDTH * step // max(1, total)
        parts = [
            f"epoch {int(line['epoch']) + 1}/{self._epochs}",
            f"[{'#' * full}{'.' * (_BAR_WIDTH - full)}] {step}/{total}",
            "tested:" if line.get("kind") == "test" else "",
            f"loss {line['loss']:.4g}" if "loss" in line else "",
            f"accuracy {line['accuracy']:.4f}" if line.get("accuracy") else "",
        ]
        rate = line.get("samplesPerSecond")
        if rate:
            left = int((total - step) * line["batchSize"] / rate)
            parts += [
                f"{rate:.0f} samples/s",
                f"{left // 3600}:{left // 60 % 60:02}:{left % 60:02} left",
            ]
        parts.append(f"{line.get('learners', 1)} learners")
        return "  ".join(part for part in parts if part)


class TensorBoard(Callback):
    """Writes event files for TensorBoard, next to the checkpoints (`<job>/tensorboard`) or in
    `log_dir`: loss, accuracy, the program's own sums as means, learning rate, learners, samples per
    second, seconds per step.

    The one learner that writes the metrics writes them. This needs the package `tensorboard`, which
    torch.utils.tensorboard needs, too. If it is not installed, or the files cannot be written, one
    line on standard error says so; the training continues.
    """

    def __init__(self, log_dir: str | Path | None = None) -> None:
        self._folder = Path(log_dir) if log_dir is not None else None
        self._files: EventFiles | None = None
        self._values = LogValues()

    def set_elastic(self, elastic: Elastic[Any]) -> None:
        if self._folder is None:
            self._folder = Path(elastic.job.checkpoint_dir, "tensorboard")

    def on_log(self, line: dict[str, Any]) -> None:
        values = self._values.of(line)
        if not values:
            return
        if self._files is None:
            assert self._folder is not None
            self._files = EventFiles(self._folder)
        self._files.add(line, values)

    def on_train_end(self) -> None:
        files, self._files = self._files, None
        if files is not None:
            files.close()


class EarlyStopping(Callback):
    """Stops the training after `patience` evaluations in a row without progress: `monitor` was not
    better than the best one by more than `min_delta`.

    monitor: "loss", "accuracy", or the name of a sum that `evaluate` returns.
    mode: "min" or "max": which values are better. None: "min" for the loss, else "max".

    Its counter is part of the training's state, so learners that join, leave or crash do not change
    the result. Raises InvalidProgram if there are no test data.
    """

    def __init__(
        self,
        patience: int = 3,
        min_delta: float = 0.0,
        *,
        monitor: str = "loss",
        mode: str | None = None,
    ) -> None:
        self._patience = whole(1, 1 << 31)("patience", patience)
        if not min_delta >= 0:
            raise InvalidProgram(f"min_delta is {min_delta}: it must be a number ≥ 0")
        self._min_delta = min_delta
        self._monitor = monitor
        self._sign = sign_of(monitor, mode)
        self._best = math.inf  # times the sign: less is better
        self._in_vain = 0

    def set_elastic(self, elastic: Elastic[Any]) -> None:
        if not elastic.evaluates:
            raise InvalidProgram("EarlyStopping needs evaluations: give test data")
        elastic.register(f"pliant.early_stopping.{self._monitor}", self)
        self._stop = elastic.stop

    def state_dict(self) -> dict[str, Any]:
        return {"best": self._best, "in_vain": self._in_vain}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._best, self._in_vain = state_dict["best"], state_dict["in_vain"]

    def on_test_end(self, evaluation: Evaluation) -> None:
        value = self._sign * monitored(evaluation, self._monitor)
        if value < self._best - self._min_delta:
            self._best, self._in_vain = value, 0
            return
        self._in_vain += 1
        if self._in_vain >= self._patience:
            self._stop()
