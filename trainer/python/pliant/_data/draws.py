"""The global generators of random numbers, from which a program's functions draw."""

import random
import sys
from typing import Any

from .._seeds import mix, seed_python


class Draws:
    """Seeds the generators for each sample of a stream."""

    __slots__ = ("_fresh", "_notices", "_seed")

    def __init__(self, seed: int, *, notices: bool) -> None:
        """`notices`: also finds out which samples draw, which takes some microseconds for each."""
        self._seed = seed
        self._notices = notices
        self._fresh: list[Any] = []

    def begin(self, number: int) -> None:
        """Before a sample is read."""
        seed_all(mix(self._seed, number))
        if self._notices:
            self._fresh = _states()

    def happened(self) -> bool:
        """Whether reading the sample drew random numbers. False if nobody notices."""
        return self._notices and _states() != self._fresh

    def settle(self, place: int) -> None:
        """Before a sample is used, which may have been read with others, now or earlier."""
        seed_all(mix(self._seed, place, 1))


def seed_all(seed: int) -> None:
    """Seeds the generators of Python, numpy and torch, as far as they are imported."""
    seed_python(seed)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.manual_seed(seed)
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed_all(seed)


def _states() -> list[Any]:
    states: list[Any] = [random.getstate()]
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        _, words, *rest = numpy.random.get_state()
        states += [words.tobytes(), rest]
    if torch is not None:
        states.append(torch.get_rng_state().numpy().tobytes())
    return states
