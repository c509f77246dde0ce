"""Two teams share the cluster: one lends the GPUs that are guaranteed to it, and gets them back when it needs them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from . import checks, reference
from .api_server import ApiServer
from .scene import Scene
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, Stage
from .waiting import wait
from .watcher import Watcher

_OWNER, _BORROWER = "research", "batch"  # queues
_GUARANTEED = 4
_QUEUES: Mapping[str, Mapping] = {
    _OWNER: {"namespaceSelector": {}, "guaranteed": _GUARANTEED},
    _BORROWER: {"namespaceSelector": {}},
}
# One round of the operator, one step of 32 paced shards on eight learners, and the start of pods on this machine.
_MAX_RETURN_SECONDS = 30.0
_STATUS_SECONDS = 90.0


@dataclass(frozen=True)
class Return:
    """The time in which the loan came back, from the owner's `kubectl apply`."""

    shrunk_seconds: float  # until the borrower trained on the rest
    trained_seconds: float  # until the owner trained on its GPUs

    def problems(self) -> tuple[str, ...]:
        if self.shrunk_seconds <= _MAX_RETURN_SECONDS:
            return ()
        return (f"it took {self.shrunk_seconds:.1f} s, more than {_MAX_RETURN_SECONDS:.0f}",)


def play(stage: Stage, screen: Screen) -> list[checks.Check]:
    stage.clear()
    _set_up(stage)
    try:
        return _play(stage, screen)
    finally:
        stage.kubectl.attempt("delete", "trainingqueues", *_QUEUES, "--wait=false")


def _set_up(stage: Stage) -> None:
    for name, spec in _QUEUES.items():
        queue = {"apiVersion": "pliant.dev/v1alpha1", "kind": "TrainingQueue", "metadata": {"name": name}, "spec": spec}
        stage.kubectl.run("apply", "-f", "-", stdin=json.dumps(queue))


def _play(stage: Stage, screen: Screen) -> list[checks.Check]:
    loan, owner = _job(stage, "training-1", _BORROWER, 1, GPUS_TOTAL), _job(stage, "training-2", _OWNER, 2, _GUARANTEED)
    told = _Queues(stage, screen)
    with Watcher(ApiServer(stage.kubectl), [NAMESPACE], screen.show) as watcher:
        borrower = Scene("training-1", stage, screen, watcher)
        borrower.apply(loan)
        borrower.wait("batch trains on all 8 GPUs", lambda each: each.trains_on(GPUS_TOTAL))
        lent = told.reach("half of them are lent", {_OWNER: {"lent": 4}, _BORROWER: {"allocated": 8, "borrowed": 4}})
        team = Scene("training-2", stage, screen, watcher)
        begin = watcher.worlds()[-1].time
        team.apply(owner)
        borrower.wait("batch trains on 4 GPUs", lambda each: each.trains_on(GPUS_TOTAL - _GUARANTEED))
        shrunk = watcher.worlds()[-1].time - begin
        team.wait("research trains on its 4 GPUs", lambda each: each.trains_on(_GUARANTEED))
        back = Return(shrunk, watcher.worlds()[-1].time - begin)
        screen.say(f"   the loan was back after {back.shrunk_seconds:.1f} s, and used after {back.trained_seconds:.1f} s")
        owned = told.reach("nothing is lent", {_OWNER: {"lent": 0, "allocated": 4}, _BORROWER: {"borrowed": 0}})
        ends = [team.complete(), borrower.complete()]
        worlds = watcher.worlds()
    screen.close_table()
    hashes = reference.parameter_hashes(stage.kubectl, [owner, loan])
    return [
        checks.Check("queues show what is lent", lent),
        checks.Check("a loan is back within one round and one step", back.problems()),
        checks.Check("queues show that it is back", owned),
        *checks.check_outcomes([checks.Outcome.of(end, sha256) for end, sha256 in zip(ends, hashes, strict=True)]),
        *checks.check_worlds(worlds, GPUS_TOTAL),
    ]


def _job(stage: Stage, name: str, queue: str, min_learners: int, max_learners: int) -> dict:
    job = stage.manifest(name)
    job["spec"] |= {"queue": queue, "elastic": {"minLearners": min_learners, "maxLearners": max_learners}}
    return job


class _Queues:
    """The statuses of the queues, which the operator writes within half a minute."""

    def __init__(self, stage: Stage, screen: Screen) -> None:
        self._stage = stage
        self._screen = screen

    def reach(self, what: str, wanted: Mapping[str, Mapping[str, int]]) -> tuple[str, ...]:
        """Waits for these numbers. Returns those that are others in the end."""
        found: list[str] = []

        def holds() -> bool:
            found[:] = [
                f"{name}.status.{field} is {status.get(field)}, not {value}"
                for name, fields in wanted.items()
                for status in [self._stage.kubectl.json("get", "trainingqueue", name).get("status", {})]
                for field, value in fields.items()
                if status.get(field) != value
            ]
            return not found

        wait(self._stage.kubectl, self._screen, what, holds, _STATUS_SECONDS)
        return tuple(found)
