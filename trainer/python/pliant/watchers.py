"""What looks at a training while it goes on. `elastic.watch(...)`, or FabricModel's user_callback."""

import math
import sys
import time
from pathlib import Path
from typing import Any

from ._event_files import EventFiles
from ._loop import Elastic, Evaluation, Watcher
from .errors import InvalidProgram

_BAR_WIDTH = 24
_LINE_EVERY_SECONDS = 30.0  # where nobody sees a line that is written over
# A line of metrics → what the event files call it.
_TAGS = {
    "train": {
        "loss": "loss/train",
        "accuracy": "accuracy/train",
        "learningRate": "learning_rate",
        "learners": "learners",
        "samplesPerSecond": "samples_per_second",
        "stepSeconds": "step_seconds",
    },
    "test": {"loss": "loss/test", "accuracy": "accuracy/test"},
}
_TAGS_OF_ACCURACY = {"accuracy/train", "accuracy/test"}


class ProgressBar(Watcher):
    """Where the training is, on standard error: of the learner that tells of it. A terminal has a
    line that is written over, a log one every half minute and one for each evaluation."""

    def begin(self, elastic: Elastic[Any]) -> None:
        self._total_steps = elastic.total_steps
        self._epochs = elastic.epochs
        self._batch = elastic.plan.global_batch_size
        self._terminal = sys.stderr.isatty()
        self._said = -math.inf
        self._open = False  # a line that is not ended

    def on_metrics(self, line: dict[str, Any]) -> None:
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

    def end(self) -> None:
        self._end_line()

    def _end_line(self) -> None:
        if self._open:
            print(file=sys.stderr)
        self._open = False

    def _describe(self, line: dict[str, Any]) -> str:
        step = int(line["step"])
        full = _BAR_WIDTH * step // max(1, self._total_steps)
        parts = [
            f"epoch {int(line['epoch']) + 1}/{self._epochs}",
            f"[{'#' * full}{'.' * (_BAR_WIDTH - full)}] {step}/{self._total_steps}",
            "tested:" if line.get("kind") == "test" else "",
            f"loss {line['loss']:.4g}" if "loss" in line else "",
            f"accuracy {line['accuracy']:.4f}" if line.get("accuracy") else "",
        ]
        rate = line.get("samplesPerSecond")
        if rate:
            left = int((self._total_steps - step) * self._batch / rate)
            parts += [
                f"{rate:.0f} samples/s",
                f"{left // 3600}:{left // 60 % 60:02}:{left % 60:02} left",
            ]
        parts.append(f"{line.get('learners', 1)} learners")
        return "  ".join(part for part in parts if part)


class TensorBoard(Watcher):
    """Event files for TensorBoard, beside the checkpoints (`<job>/tensorboard`) or in `log_dir`:
    loss, accuracy, learning rate, learners, samples a second, seconds a step.

    Written by the learner that tells of the training, with the package `tensorboard`, which is also
    below torch.utils.tensorboard. Where it is not installed, or they cannot be written, a line says
    so, and that is all.
    """

    def __init__(self, log_dir: str | Path | None = None) -> None:
        self._folder = Path(log_dir) if log_dir is not None else None
        self._files: EventFiles | None = None
        self._drawn: set[str] = set()  # tags that had a value

    def begin(self, elastic: Elastic[Any]) -> None:
        if self._folder is None:
            self._folder = Path(elastic.job.checkpoint_dir, "tensorboard")

    def on_metrics(self, line: dict[str, Any]) -> None:
        values = {
            tag: float(line[key])
            for key, tag in _TAGS.get(str(line.get("kind")), {}).items()
            if line.get(key) is not None
        }
        # An accuracy is 0 where the program reports none.
        self._drawn.update(tag for tag, value in values.items() if value != 0.0)
        for tag in _TAGS_OF_ACCURACY - self._drawn:
            values.pop(tag, None)
        if not values:
            return
        if self._files is None:
            assert self._folder is not None
            self._files = EventFiles(self._folder)
        self._files.add(line, values)

    def end(self) -> None:
        files, self._files = self._files, None
        if files is not None:
            files.close()


class EarlyStopping(Watcher):
    """Ends the training when so many evaluations in a row brought no better loss. Part of the
    state: it does not matter who came, left or crashed meanwhile."""

    def __init__(self, patience: int = 3, least_gain: float = 0.0) -> None:
        self._patience = patience
        self._least_gain = least_gain
        self._best = math.inf
        self._in_vain = 0

    def begin(self, elastic: Elastic[Any]) -> None:
        if not elastic.evaluates:
            raise InvalidProgram("EarlyStopping looks at evaluations: give test data")
        elastic.register("pliant.early_stopping", self)
        elastic.on_evaluation.append(self._look_at)
        self._stop = elastic.stop

    def state_dict(self) -> dict[str, Any]:
        return {"best": self._best, "in_vain": self._in_vain}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._best, self._in_vain = state_dict["best"], state_dict["in_vain"]

    def _look_at(self, evaluation: Evaluation) -> None:
        if evaluation.loss < self._best - self._least_gain:
            self._best, self._in_vain = evaluation.loss, 0
            return
        self._in_vain += 1
        if self._in_vain >= self._patience:
            self._stop()
