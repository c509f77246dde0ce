"""Messages to the user."""

import sys


def say(line: str) -> None:
    """Prints a line on standard error; in a job it also reaches the job's log."""
    print(f"pliant: {line}", file=sys.stderr, flush=True)
