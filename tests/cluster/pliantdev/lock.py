"""Only one ./dev at a time changes the machine: a second one waits and says for which command."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from .progress import say

# One lock per machine, because the cluster's addresses and control groups exist once per machine,
# whatever PLIANT_STATE is.
_FILE = Path("/run/lock/pliant-dev")

# Set for programs that run ./dev on behalf of one that holds the lock.
LOCK_IS_HELD = "PLIANT_DEV_LOCK_IS_HELD"


@contextlib.contextmanager
def exclusive(what: str) -> Iterator[None]:
    if LOCK_IS_HELD in os.environ:
        yield
        return
    _FILE.parent.mkdir(parents=True, exist_ok=True)
    with _FILE.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            say(f"waiting for another ./dev to finish: {file.read().strip()}")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(f"{what} (process {os.getpid()})\n")
        file.flush()
        yield
