"""Quantiles of repeated measurements, with confidence intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Quantile:
    """A quantile and its 95 % confidence interval. Its ends are two of the measurements, chosen by
    the binomial law, which holds for any distribution."""

    value: float
    low: float
    high: float


def quantile(measured: Sequence[float], part: float) -> Quantile:
    ordered = sorted(measured)
    last = len(ordered) - 1
    low, high = _ranks(len(ordered), part)
    return Quantile(ordered[round(last * part)], ordered[low], ordered[min(high, last)])


def _ranks(count: int, part: float) -> tuple[int, int]:
    """The two ranks of the interval: the quantile lies below the first, and above the second, with
    a probability of at most 2.5 % each."""
    below = 0.0
    low, high = 0, count - 1
    for rank in range(count + 1):
        chance = math.comb(count, rank) * part**rank * (1 - part) ** (count - rank)
        if below + chance <= 0.025:
            low = rank
        if below < 0.975:
            high = rank
        below += chance
    return min(low, count - 1), min(high, count - 1)
