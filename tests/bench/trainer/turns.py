"""Who is measured when: rivals take turns in one run, so that all meet the same hours of the
machine."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from trainers import Late


@dataclass(frozen=True)
class Party:
    """One of those that are compared. `measure`: a repeat of it, by its number from 0."""

    measure: Callable[[int], None]
    repeats: int


def order(repeats: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """A round of all after the other, each with the number of its repeat. Whoever has fewer
    repeats sits out some rounds, evenly among those that it is in."""
    rounds = max(repeats.values())
    for round_ in range(rounds):
        for name, count in repeats.items():
            number = round_ * count // rounds
            if (round_ + 1) * count // rounds > number:
                yield name, number


def take(ours: Party, rivals: Mapping[str, Party]) -> dict[str, str]:
    """Ours first in each round. A rival that is late has no further turn: why, of each of these."""
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
            given_up[name] = f"the rival was given up: {late}"
    return given_up
