"""What trackers have in common: one run of a job, whichever of its learners writes to it."""

import contextlib
import http.client
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from .._background import Background
from .._callback import Callback
from .._log_values import LogValues
from .._loop import Elastic
from .._say import say
from ..errors import InvalidProgram
from .identity import Turn, run_of
from .metrics_file import with_lines_of
from .resizes import MembershipId, Resize, Resizes, membership_id

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0
_LAST_PAUSE_SECONDS = 0.1  # when the learner ends
_ASK_EVERY_SECONDS = 5.0  # for resizes, at most
_NO_ANSWER = (OSError, ValueError, KeyError, http.client.HTTPException, RecursionError)
_WITH_PASSWORD = re.compile(r"//[^/@\s]+@")


# Metrics that say what a run has: of training lines, and of evaluations.
POSITIONS = {"train": "step", "test": "evaluated_step"}


@dataclass(frozen=True)
class Identity:
    """What a run is opened with."""

    run: str  # its id: letters and digits
    job: str  # "<namespace>/<name>"; "" for a training alone
    folder: Path  # for files of the tracker, next to the checkpoints
    config: Mapping[str, Any]  # by the program, and what it is trained with


@dataclass(frozen=True)
class Entry:
    line: dict[str, Any]  # of metrics.jsonl
    values: dict[str, float]  # of it, by name


@dataclass
class Logged:
    """The last of each that the run has."""

    steps: dict[str, int] = field(default_factory=dict)  # by kind of line: train, test
    membership: MembershipId = (0, 0)


class Run(Protocol):
    """A run of a tracker, in the process that writes to it now. Methods may raise any exception:
    the run is then opened again, and asked what it has."""

    def open(self, identity: Identity) -> Logged: ...
    def log(self, entries: list[Entry], logged: Logged) -> None: ...
    def resized(self, resize: Resize, logged: Logged) -> None: ...
    def close(self, ending: str | None) -> None: ...


class Tracker(Callback):
    """Writes to one run of a tracker, on the learner that writes the metrics."""

    _name: str  # of the tracker, as programs write it
    _package: str

    def __init__(self, run: Run, config: Mapping[str, Any] | None) -> None:
        if find_spec(self._package) is None:
            raise InvalidProgram(
                f"{self._name} needs the package {self._package}: pip install {self._package}"
            )
        if config is not None and not isinstance(config, Mapping):
            raise InvalidProgram(
                f"config of {self._name} is a {type(config).__name__}: give a dict of settings"
            )
        self._run = run
        self._config = dict(config or {})
        self._resizes = Resizes()
        self._begin()

    def _begin(self) -> None:
        """Of a training: a process may have several, one after the other."""
        self._values = LogValues()
        self._logged: Logged | None = None  # None: the run is not open
        self._missed = False  # a line that had no room to wait
        self._told = False  # that a call has failed
        self._ask_after = 0.0  # for resizes
        self._present: MembershipId | None = None  # of the newest line
        self._thread: Background | None = None

    def set_elastic(self, elastic: Elastic[Any]) -> None:
        self._elastic = elastic
        self._begin()
        self._folder = Path(elastic.job.checkpoint_dir, "tracking")
        self._metrics_file = Path(elastic.job.checkpoint_dir, "metrics.jsonl")
        self._turn = Turn(self._folder / f"{self._package}.lock")

    def on_log(self, line: dict[str, Any]) -> None:
        if self._thread is None:
            self._thread = Background(
                f"pliant-{self._package}", self._take, self._finish, self._failure, self._tell
            )
        if not self._thread.add(line):
            self._missed = True

    def on_train_end(self) -> None:
        if self._thread is not None:
            self._thread.close()

    def _tell(self, what: str) -> None:
        # An address may have a password: MLFLOW_TRACKING_URI=https://user:password@host.
        say(f"{self._name}: {_WITH_PASSWORD.sub('//…@', what)}")

    def _say_once(self, what: str) -> None:
        if not self._told:
            self._told = True
            self._tell(what)

    @staticmethod
    def _failure(error: Exception) -> str:
        return f"the last lines are not logged: {type(error).__name__}: {error}"

    # ---- The thread ----

    def _take(self, line: dict[str, Any]) -> None:
        """Tries again until the line is logged or this learner ends: a server may be away."""
        assert self._thread is not None
        thread, pause = self._thread, _FIRST_PAUSE_SECONDS
        while not thread.over:
            try:
                return self._log(line)
            except Exception as error:
                self._logged = None
                self._say_once(f"it is tried again: {type(error).__name__}: {error}")
            if thread.closing.wait(pause):
                time.sleep(_LAST_PAUSE_SECONDS)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _log(self, line: dict[str, Any]) -> None:
        lines = [line]
        if self._logged is None:
            self._turn.take()
            self._logged = self._run.open(self._identity())
            self._missed = True  # what the last writer has lost
        if self._missed:
            self._missed = False
            lines = with_lines_of(self._metrics_file, line)
        new = [Entry(each, self._values.of(each)) for each in lines if self._is_new(each)]
        if new:
            self._run.log(new, self._logged)
            self._present = membership_id(line.get("membership"))
            self._look_for_resizes()

    def _is_new(self, line: dict[str, Any]) -> bool:
        """A learner that becomes the writer passes on the line before, and after a restore steps
        come again."""
        assert self._logged is not None
        kind, step = str(line["kind"]), int(line["step"])
        if step <= self._logged.steps.get(kind, -1):
            return False
        self._logged.steps[kind] = step
        return True

    def _look_for_resizes(self) -> None:
        """Later, if it has just been done, or if this learner ends and lines may wait."""
        assert self._thread is not None
        if time.monotonic() >= self._ask_after and not self._thread.closing.is_set():
            self._log_resizes()

    def _log_resizes(self) -> None:
        assert self._logged is not None
        if self._present is None or self._present <= self._logged.membership:
            return
        self._ask_after = time.monotonic() + _ASK_EVERY_SECONDS
        # Tried again later: the coordinator is away, or knows it a moment later.
        with contextlib.suppress(*_NO_ANSWER):
            for resize in self._resizes.known():
                if resize.membership > self._logged.membership:
                    self._logged.membership = resize.membership
                    self._run.resized(resize, self._logged)

    def _identity(self) -> Identity:
        elastic, plan = self._elastic, self._elastic.plan
        trained_with = {
            "epochs": elastic.epochs,
            "global_batch_size": plan.global_batch_size,
            "logical_shards": plan.logical_shards,
            "seed": plan.seed,
        }
        return Identity(
            run=run_of(self._folder),
            job=elastic.job.name,
            folder=self._folder,
            config={**trained_with, **self._config},
        )

    def _finish(self) -> None:
        try:
            if self._logged is not None:
                self._log_resizes()
                ending = self._elastic.ending
                self._run.close(None if ending is None else ending.reason)
        finally:
            self._turn.end()
