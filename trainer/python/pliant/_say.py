"""Lines for people."""

import sys


def say(line: str) -> None:
    """To whoever watches the program, and in a job its log."""
    print(f"pliant: {line}", file=sys.stderr, flush=True)
