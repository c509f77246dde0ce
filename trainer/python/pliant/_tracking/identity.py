"""Which run of a tracker belongs to this training."""

import contextlib
import fcntl
import hashlib
import json
import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

_MAX_FILE_BYTES = 1 << 16


def run_of_job() -> str | None:
    """The id of the job's run, equal on all its learners; None: this process is not in a job."""
    job = os.environ.get("PLIANT_JOB_UID")
    return hashlib.sha256(job.encode()).hexdigest()[:16] if job else None


def run_of(folder: Path) -> str:
    """The same; for a training alone, an id that is kept in the folder."""
    return run_of_job() or _kept_id(folder / "run-id")


def _kept_id(file: Path) -> str:
    new = uuid.uuid4().hex[:16]
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError), file.open("x") as created:
            created.write(new)
        kept = file.read_text()[:64].strip()
        if kept.isalnum():
            return kept
    return new  # the folder cannot be used: the next process begins another run


class Kept:
    """A small object in a file, which the writer of the metrics keeps for its successor."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> dict[str, Any]:
        """Empty: there is none, or it is damaged."""
        try:
            with self._file.open("rb") as opened:
                kept = json.loads(opened.read(_MAX_FILE_BYTES))
        except (OSError, ValueError):
            return {}
        return kept if isinstance(kept, dict) else {}

    def write(self, value: dict[str, Any]) -> None:
        """Raises OSError."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(value))
        new.replace(self._file)


class Turn:
    """A lock on a file. A learner that leaves may still log when its successor begins; a lock that
    is not free in time, or that the volume does not have, is done without."""

    def __init__(self, file: Path, seconds: float = 10.0) -> None:
        self._file = file
        self._seconds = seconds
        self._held: int | None = None

    def take(self, wait: Callable[[float], object] = time.sleep) -> None:
        if self._held is not None:
            return
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._held = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o660)
            until = time.monotonic() + self._seconds
            while not self._is_free() and time.monotonic() < until:
                wait(0.1)

    def end(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def _is_free(self) -> bool:
        assert self._held is not None
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
