"""Messages to the user."""

import sys


def say(line: str) -> None:
    """Prints a line on standard error; in a job it also reaches the job's log."""
    print(f"pliant: {line}", file=sys.stderr, flush=True)


class Once:
    """Says each line once."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            say(line)
