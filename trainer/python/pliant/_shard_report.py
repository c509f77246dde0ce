"""The sums that a program reports of a batch."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ._numbers import one_number
from .errors import InvalidProgram

Number = Callable[[str, Any], Any]

_SUMS_MAX = 32  # as in the library
_NAME = re.compile(r"[A-Za-z0-9_./-]{1,63}")
_TAKEN = ("samples", "weight", "loss", "correct", "accuracy")


@dataclass
class ShardReport:
    """What is reported of one batch. Numbers may be tensors of a GPU: they stay there."""

    loss: Any = 0.0  # in the form that the program reports: a mean or a sum
    correct: Any = 0.0  # a sum
    weight: float | None = None  # the tokens that the loss is over; None: the samples
    sums: dict[str, Any] = field(default_factory=dict)
    loss_is_known: bool = False

    def weigh(self, weight: Any) -> None:
        """The loss is over this weight. Raises InvalidProgram unless it is a number ≥ 0, and the
        same in all calls for the batch."""
        number = None if weight is None else _weight(weight)
        if self.loss_is_known and number != self.weight:
            raise InvalidProgram(
                f"weight is {number} in a second report of a batch whose weight is {self.weight}: "
                "a batch has one weight, so add up its losses before"
            )
        self.weight = number

    def add(self, loss: Any, correct: Any, number: Number) -> None:
        self.loss += number("the loss", loss)
        if correct is not None:
            self.correct += number("the number of right samples (correct)", correct)
        self.loss_is_known = True

    def log(self, sums: Mapping[str, Any], number: Number) -> None:
        """Adds to the named sums."""
        for name, value in sums.items():
            _check_name(name)
            self.sums[name] = self.sums.get(name, 0.0) + number(f"the sum {name}", value)
        if len(self.sums) > _SUMS_MAX:
            raise InvalidProgram(
                f"{len(self.sums)} named sums are reported in a batch: at most {_SUMS_MAX} are "
                "possible"
            )

    def loss_sum(self, samples: int, *, is_mean: bool) -> Any:
        """The sum of the loss over the weight, or over so many samples. 0 without any weight: a
        mean over nothing is not a number."""
        if self.weight == 0:
            return 0.0
        over = samples if self.weight is None else self.weight
        return self.loss * over if is_mean else self.loss


def evaluated(said: Any, number: Number = one_number) -> ShardReport:
    """What `evaluate` returned of a batch: a loss, (loss, correct), (loss, correct, weight), or a
    dict with a loss, whose other numbers are correct, weight and named sums."""
    if isinstance(said, tuple) and len(said) in (2, 3):
        said = dict(zip(("loss", "correct", "weight"), said, strict=False))
    if not isinstance(said, Mapping):
        if said is None or isinstance(said, tuple):
            raise InvalidProgram(
                f"evaluate returned {'None' if said is None else f'{len(said)} values'}: it must "
                "return the loss of the batch, (loss, number of correct samples), (loss, correct, "
                "weight) or a dict with these and further sums"
            )
        said = {"loss": said}
    sums = dict(said)
    if "loss" not in sums:
        raise InvalidProgram(
            f"evaluate returned a dict with {', '.join(map(str, sums)) or 'nothing'}: it must have "
            "the loss"
        )

    def returned(what: str, value: Any) -> Any:
        return number(f"{what} that evaluate returned", value)

    report = ShardReport()
    report.weigh(sums.pop("weight", None))
    report.add(sums.pop("loss"), sums.pop("correct", None), returned)
    report.log(sums, returned)
    return report


def _weight(value: Any) -> float:
    weight = one_number("weight", value)
    if not (weight >= 0 and math.isfinite(weight)):
        raise InvalidProgram(
            f"weight is {weight:g}: it must be a number ≥ 0, the tokens or samples that the loss "
            "is the mean of"
        )
    return weight


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _TAKEN:
        raise InvalidProgram(
            f"a sum is named {name!r}: give a name of 1 to 63 letters, digits and _-./, other than "
            f"{', '.join(_TAKEN)}"
        )
