"""The results of a story: what two trainings did, what their resizes cost, and whether what must hold holds. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from . import checks
from .checks import Check, Outcome
from .resizes import Request, ResizeReport, report
from .stage import GPUS_TOTAL
from .world import Resize, World


@dataclass
class Told:
    names: tuple[str, str]
    worlds: list[World]
    requests: list[Request]
    resizes: list[ResizeReport]
    outcomes: list[Outcome]
    checks: list[Check]

    @staticmethod
    def of(
        names: tuple[str, str],
        worlds: list[World],
        requests: list[Request],
        resizes: Sequence[tuple[str, Resize]],
        reference_hashes: Mapping[str, str],
        check: Callable[[Sequence[Outcome]], list[Check]] = checks.check_outcomes,
        own_checks: Sequence[Check] = (),
    ) -> "Told":
        """`worlds`: the last one has the ends of both trainings. `reference_hashes`: of the undisturbed runs, by name.
        `own_checks`: those of this story alone."""
        outcomes = [Outcome.of(worlds[-1].trainings[name].job, reference_hashes[name]) for name in names]
        found = [
            *own_checks,
            *check(outcomes),
            *checks.check_worlds(worlds, GPUS_TOTAL),
            checks.check_resizes(resizes),
        ]
        return Told(names, worlds, requests, report(requests, resizes), outcomes, found)

    @property
    def held(self) -> bool:
        return bool(self.checks) and all(check.holds for check in self.checks)
