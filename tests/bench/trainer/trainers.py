"""What elastic_job.py and torchrun_job.py have in common: processes that train, and leave a line for
each committed step."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from commits import Commit

_REPOSITORY = Path(__file__).resolve().parents[3]
# So long a process may take to start on a busy machine.
PATIENCE_SECONDS = 300.0


class Late(Exception):
    """What was waited for did not happen."""


class Trainer(Protocol):
    log: Path

    def running(self) -> bool: ...
    def commits(self) -> list[Commit]: ...


def wait(what: str, condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    """Looks seldom: who looks takes time from who is measured."""
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
    """Until it has computed so many shards of so many steps. Its commits, all of them."""

    def reached() -> bool:
        if not trainer.running():
            raise Late(f"a process ended: see {trainer.log}")
        found = [c for c in trainer.commits() if c.at >= since and c.shards == shards]
        return len(found) >= count

    wait(f"{count} steps with {shards} shards each: see {trainer.log}", reached, patience)
    return trainer.commits()


def core_of(number: int) -> int:
    """The first process has a core of its own; those that come later share the others."""
    first, *others = sorted(os.sched_getaffinity(0))
    return others[(number - 1) % len(others)] if number > 0 and others else first


def shared_core_of(number: int) -> int:
    """As many processes on each core as on the others."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[number % len(cores)]


def environment(**more: str) -> dict[str, str]:
    """Of a process that trains."""
    paths = [str(_REPOSITORY / "trainer" / "python"), os.environ.get("PYTHONPATH", "")]
    library = Path(os.environ["PLIANT_BIN"]).parent / "lib" / "libpliant.so"
    return {
        **os.environ,
        "PYTHONPATH": ":".join(path for path in paths if path),
        "PLIANT_LIBRARY": os.environ.get("PLIANT_LIBRARY", str(library)),
        "OMP_NUM_THREADS": "1",
        **more,
    }
