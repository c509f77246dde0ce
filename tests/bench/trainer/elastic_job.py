"""A Pliant job on this machine: a coordinator and learners, real processes over loopback. The bench
takes the operator's part."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import commits
import mortal
import trainers
from commits import Commit
from sizes import SIZES

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scenario"))

import harness

# The resolution of times in the log is a millisecond.
_LOG_SECONDS = 0.001

_LEARNER = Path(__file__).with_name("pliant_learner.py")


class Member:
    """A learner that the bench started."""

    def __init__(self, process: harness.Learner, commits_file: Path, place: int) -> None:
        self.process = process
        self.place = place
        self.log = process.log
        self._commits_file = commits_file

    def running(self) -> bool:
        return self.process.running()

    def commits(self) -> list[Commit]:
        return commits.read(self._commits_file)

    def kill(self) -> None:
        self.process.kill()

    def die_in_reduction(self, share: float) -> float:
        """See mortal.die."""
        return mortal.die(self._commits_file, share)

    def logged_at(self, message: str, since: float) -> float | None:
        """Time on the monotonic clock when the first such line after `since` was written."""
        wall_clock = time.time() - time.monotonic()
        for line in self.process.logged(message):
            at = datetime.fromisoformat(line["time"]).timestamp() - wall_clock
            if at >= since - _LOG_SECONDS:
                return at
        return None


class ElasticJob:
    """`arguments` and `environment` are for its learners; `core_of` gives a learner's core by its
    place."""

    def __init__(
        self,
        model: str,
        arguments: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        core_of: Callable[[int], int] = trainers.core_of,
    ) -> None:
        self._model = model
        self._arguments = arguments
        self._core_of = core_of
        self._count = 0
        self._wanted: list[Member] = []
        batch, self.shards = SIZES[model]
        self._job = harness.Job(
            environment={
                "PLIANT_GLOBAL_BATCH_SIZE": str(batch),
                "PLIANT_LOGICAL_SHARDS": str(self.shards),
                "PLIANT_CHECKPOINT_EVERY_STEPS": "0",
                **trainers.environment(),
                **(environment or {}),
            }
        )
        self.folder = self._job.folder

    def __enter__(self) -> "ElasticJob":
        self._job.start_coordinator()
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._job.clean = error is None
        self._job.close()
        if error is not None:
            print(f"the logs are in {self.folder}", file=sys.stderr)

    def begin(self, count: int) -> list[Member]:
        """Starts the first learners: no step is taken before all of them are ready."""
        came = [self._start() for _ in range(count)]
        trainers.wait(f"{count} learners are ready: see {self.folder}", lambda: self._ready(count))
        self._plan(came)
        return came

    def join(self, count: int = 1) -> list[Member]:
        """Starts `count` more learners, and wants them."""
        came = [self._start() for _ in range(count)]
        self._plan([*self._wanted, *came])
        return came

    def replace(self, gone: Member) -> Member:
        """Replaces `gone` by a new learner in its place."""
        came = self._start(gone.place)
        self._plan([came if member is gone else member for member in self._wanted])
        return came

    def leave(self, members: Sequence[Member]) -> None:
        """No longer wants these members."""
        self._plan([member for member in self._wanted if member not in members])

    def _ready(self, count: int) -> bool:
        learners = json.loads(self._job.status("/progress")[1])["learners"]
        return sum(learner["state"] == "Ready" for learner in learners) == count

    def _plan(self, wanted: list[Member]) -> None:
        self._wanted = wanted
        self._job.plan([member.process for member in wanted])

    def _start(self, place: int | None = None) -> Member:
        """Starts a learner in a new place, unless one is given."""
        number = self._count
        self._count += 1
        if place is None:
            place = number
        file = self.folder / f"commits-{number}"
        self._job.program = [
            sys.executable, "-B", str(_LEARNER), self._model, str(file),
            f"--core={self._core_of(place)}", *self._arguments,
        ]  # fmt: skip
        return Member(self._job.start_learner(number), file, place)
