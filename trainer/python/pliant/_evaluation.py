"""What an evaluation says."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ._checks import one_of, or_none
from ._learner import Evaluated
from .errors import InvalidProgram


@dataclass(frozen=True)
class Evaluation:
    """The result of an evaluation: the same on all learners."""

    epoch: int
    step: int  # optimizer steps committed before
    loss: float  # mean over the test set, by weight if `evaluate` returns one
    accuracy: float  # share of its samples that are correct, 0 to 1
    samples: float = 0.0  # in the test set
    weight: float = 0.0  # sum of the weights; the samples if there are none
    sums: Mapping[str, float] = field(default_factory=dict)  # named ones, over the test set

    @classmethod
    def of(cls, evaluated: Evaluated) -> "Evaluation":
        totals = evaluated.totals
        return cls(
            epoch=evaluated.epoch,
            step=evaluated.step,
            loss=totals.mean_loss,
            accuracy=totals.accuracy,
            samples=totals.samples,
            weight=totals.weight,
            sums=totals.named,
        )


def monitored(evaluation: Evaluation, monitor: str) -> float:
    """The value of this name: loss, accuracy, or a named sum. Raises InvalidProgram if there is
    none."""
    if monitor in ("loss", "accuracy"):
        value: float = getattr(evaluation, monitor)
        return value
    if monitor in evaluation.sums:
        return evaluation.sums[monitor]
    known = ["loss", "accuracy", *sorted(evaluation.sums)]
    raise InvalidProgram(f"monitor is {monitor!r}: the evaluation has {', '.join(known)}")


def sign_of(monitor: str, mode: str | None) -> int:
    """The factor that makes smaller values the better ones. `mode`: "min" or "max"; None: "min" for
    the loss, else "max"."""
    mode = or_none(one_of("min", "max"))("mode", mode)
    return 1 if (mode or ("min" if monitor == "loss" else "max")) == "min" else -1
