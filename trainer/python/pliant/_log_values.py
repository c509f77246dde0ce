"""The values of a line of metrics.jsonl, by the names that trackers show."""

import math
from typing import Any

# Field of a line → name.
_NAMES = {
    "train": {
        "loss": "loss/train",
        "accuracy": "accuracy/train",
        "learningRate": "learning_rate",
        "learners": "learners",
        "samplesPerSecond": "samples_per_second",
        "stepSeconds": "step_seconds",
        "batchSize": "batch_size",
    },
    "test": {"loss": "loss/test", "accuracy": "accuracy/test"},
}
_ACCURACY = {"accuracy/train", "accuracy/test"}


class LogValues:
    """Turns lines into values. The program's own sums become means, as the loss is."""

    def __init__(self) -> None:
        self._seen: set[str] = set()  # names that had a value other than 0

    def of(self, line: dict[str, Any]) -> dict[str, float]:
        kind = str(line.get("kind"))
        values = {
            name: float(line[field])
            for field, name in _NAMES.get(kind, {}).items()
            if line.get(field) is not None
        }
        count = line.get("weight", line.get("samples"))
        if count:
            values |= {f"{each}/{kind}": sum_ / count for each, sum_ in _sums(line).items()}
        values |= {f"{name}/{kind}": value for name, value in line.get("metrics", {}).items()}
        # The accuracy is 0 if the program reports none: it is left out until it is not 0.
        self._seen.update(name for name, value in values.items() if value != 0.0)
        return {name: value for name, value in values.items() if self._is_shown(name, value)}

    def _is_shown(self, name: str, value: float) -> bool:
        return math.isfinite(value) and (name not in _ACCURACY or name in self._seen)


def _sums(line: dict[str, Any]) -> dict[str, float]:
    sums = line.get("sums")
    # Sums of metrics of Keras have no name until pliant.keras.fit gives them one.
    known = sums if isinstance(sums, dict) else {}
    return {name: sum_ for name, sum_ in known.items() if not name.startswith("keras/")}
