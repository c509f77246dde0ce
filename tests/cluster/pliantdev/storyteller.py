"""Runs programs that print their progress, and in their last line how many checks passed."""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from .counts import Counts
from .progress import log_file, phase, say

_PATIENCE_SECONDS = 20  # time for an interrupted program to clean up


def run(
    title: str,
    command: Sequence[str | Path],
    environment: Mapping[str, str],
    heard: Callable[[], None] = lambda: None,
) -> Counts:
    """Runs the program. `heard` is called after each line of its output."""
    log = log_file("test-" + title.rpartition(" ")[2])
    last = ""
    with phase(f"Running {title}"), log.open("w") as out, _started(command, environment) as program:
        for line in program.stdout or ():
            out.write(line)
            sys.stderr.write("    " + line)
            last = line if line.strip() else last
            heard()
        status = program.wait()
    heard()
    counts = Counts.from_last_line(last, status)
    say(f"{title}: {counts} (log: {log})")
    return counts


@contextlib.contextmanager
def _started(
    command: Sequence[str | Path], environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Ends the program with us: otherwise it would disturb the next run on the cluster."""
    program = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        yield program
    except BaseException:
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(_PATIENCE_SECONDS)
        program.terminate()
        program.wait()
        raise
