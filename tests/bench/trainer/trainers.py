"""Common parts of elastic_job.py and torchrun_job.py: processes that train and write a line for
each committed step."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from commits import Commit

_REPOSITORY = Path(__file__).resolve().parents[3]
# Maximum time of a process's start on a busy machine.
PATIENCE_SECONDS = 300.0


class Late(Exception):
    """A condition did not become true in time."""


class Trainer(Protocol):
    log: Path

    def running(self) -> bool: ...
    def commits(self) -> list[Commit]: ...


def wait(what: str, condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    """Polls seldom, because polling takes time from the measured processes."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Late(f"waited {seconds:.0f} s: {what}")
        time.sleep(0.1)


def wait_for_steps(
    trainer: Trainer,
    count: int,
    *,
    since: float,
    shards: int,
    patience: float = PATIENCE_SECONDS,
) -> list[Commit]:
    """Waits until the process has computed `count` steps of `shards` shards each. Returns all its
    commits."""

    def reached() -> bool:
        if not trainer.running():
            raise Late(f"a process ended: see {trainer.log}")
        found = [c for c in trainer.commits() if c.at >= since and c.shards == shards]
        return len(found) >= count

    wait(f"{count} steps with {shards} shards each: see {trainer.log}", reached, patience)
    return trainer.commits()


def core_of(number: int) -> int:
    """The first process has a core of its own; later ones share the others."""
    first, *others = sorted(os.sched_getaffinity(0))
    return others[(number - 1) % len(others)] if number > 0 and others else first


def shared_core_of(number: int) -> int:
    """Gives every core the same number of processes."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[number % len(cores)]


def environment(**more: str) -> dict[str, str]:
    """The environment of a training process."""
    paths = [str(_REPOSITORY / "trainer" / "python"), os.environ.get("PYTHONPATH", "")]
    library = Path(os.environ["PLIANT_BIN"]).parent / "lib" / "libpliant.so"
    return {
        **os.environ,
        "PYTHONPATH": ":".join(path for path in paths if path),
        "PLIANT_LIBRARY": os.environ.get("PLIANT_LIBRARY", str(library)),
        "OMP_NUM_THREADS": "1",
        **more,
    }
