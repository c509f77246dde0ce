"""What an evaluation says."""

from dataclasses import dataclass

from ._learner import Evaluated


@dataclass(frozen=True)
class Evaluation:
    """The result of an epoch's evaluation: the same on all learners."""

    epoch: int
    step: int  # optimizer steps committed before
    loss: float  # mean over the test set
    accuracy: float  # share of its samples that are correct, 0 to 1

    @classmethod
    def of(cls, evaluated: Evaluated) -> "Evaluation":
        loss, correct = evaluated.loss / evaluated.samples, evaluated.correct / evaluated.samples
        return cls(epoch=evaluated.epoch, step=evaluated.step, loss=loss, accuracy=correct)
