"""The order of measurements: rivals take turns in one run, so that all see the same load of the
machine."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from trainers import Late


@dataclass(frozen=True)
class Party:
    """One of the compared parties. `measure` runs a repeat, given its number from 0."""

    measure: Callable[[int], None]
    repeats: int


def order(repeats: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Rounds over all parties, each with the number of its repeat. A party with fewer repeats skips
    some rounds, evenly spread."""
    rounds = max(repeats.values())
    for round_ in range(rounds):
        for name, count in repeats.items():
            number = round_ * count // rounds
            if (round_ + 1) * count // rounds > number:
                yield name, number


def take(ours: Party, rivals: Mapping[str, Party]) -> dict[str, str]:
    """Measures in rounds, ours first. A rival that is late gets no further turn. Returns the
    reason, by rival."""
    given_up: dict[str, str] = {}
    parties = {"": ours, **rivals}
    for name, number in order({name: party.repeats for name, party in parties.items()}):
        if name in given_up:
            continue
        try:
            parties[name].measure(number)
        except Late as late:
            if name not in rivals:
                raise
            given_up[name] = f"the rival was dropped: {late}"
    return given_up
