"""What an evaluation says."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Evaluation:
    """The result of an epoch's evaluation: the same on all learners."""

    epoch: int
    step: int  # optimizer steps committed before
    loss: float  # mean over the test set
    accuracy: float  # share of its samples that are correct, 0 to 1
