"""The metrics of TRL's trainers: each batch adds a number to a list, whose mean is logged."""

from collections.abc import Mapping
from typing import Any

_PREFIX = "trl."  # of the named sums
_COUNT = "trl.count."
_TOKENS = f"{_PREFIX}tokens"
_TOTAL = "_total_train_tokens"  # of a trainer: since the training began, logged as num_tokens
_METRICS_MAX = 14  # with a sum and a count each, of the 32 sums that a step may have


class TrlMetrics:
    """Puts the mean over all batches of a step in the place of the numbers of this learner's, so
    that the log is the same whoever computes them. Does nothing for a trainer without them."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        self._before: dict[str, int] = {}
        self._tokens_before = 0

    def begin_batch(self) -> None:
        self._before = {name: len(values) for name, values in self._lists().items()}
        self._tokens_before = getattr(self._trainer, _TOTAL, 0)

    def end_batch(self) -> dict[str, float]:
        """Takes out what the batch has added, as named sums."""
        found: dict[str, float] = {}
        for name, values in self._lists().items():
            before = self._before.get(name, 0)
            fits = len(found) < 2 * _METRICS_MAX
            if len(values) == before + 1 and name != "num_tokens" and fits:
                found[_PREFIX + name] = float(values.pop())
                found[_COUNT + name] = 1.0
        if hasattr(self._trainer, _TOTAL):
            found[_TOKENS] = getattr(self._trainer, _TOTAL) - self._tokens_before
            setattr(self._trainer, _TOTAL, self._tokens_before)
        return found

    def end_step(self, sums: Mapping[str, float]) -> None:
        lists = self._lists()
        for name, count in sums.items():
            if name.startswith(_COUNT) and count:
                metric = name.removeprefix(_COUNT)
                lists[metric].append(sums[_PREFIX + metric] / count)
        if _TOKENS in sums:
            total = getattr(self._trainer, _TOTAL) + int(sums[_TOKENS])
            setattr(self._trainer, _TOTAL, total)
            lists["num_tokens"] = [total]

    def _lists(self) -> Any:
        metrics = getattr(self._trainer, "_metrics", None)
        of_training = metrics.get("train") if isinstance(metrics, dict) else None
        return of_training if isinstance(of_training, dict) else {}
