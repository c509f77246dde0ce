"""Seeds that depend on the work, never on the learner or process that does it."""

import random
import sys

_MASK = (1 << 64) - 1


def mix(*words: int) -> int:
    """A 64-bit hash of words (SplitMix64), the same on every machine."""
    state = 0
    for word in words:
        state = (state + 0x9E3779B97F4A7C15 + (word & _MASK)) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state


def seed_python(seed: int) -> None:
    """Seeds Python's generator and, if it is imported, numpy's."""
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        # One 32-bit word: a list of words takes three times as long, and this runs for each sample.
        numpy.random.seed((seed ^ (seed >> 32)) & 0xFFFFFFFF)
