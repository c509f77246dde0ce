"""Waiting for what the API server shows."""

import time
from collections.abc import Callable

from .errors import StoryError
from .screen import Screen

_LOOK_SECONDS = 1.0


def wait(screen: Screen, what: str, probe: Callable[[], bool], seconds: float, told: Callable[[], str]) -> None:
    """`told`: what is known of the state when it did not come."""
    deadline = time.monotonic() + seconds
    while not probe():
        if time.monotonic() > deadline:
            raise StoryError(f"not within {seconds:.0f} s: {what}; {told()}")
        time.sleep(_LOOK_SECONDS)
    screen.say(f"   {what}", "green")


def phases(jobs: list[dict]) -> str:
    """What each job says of itself, for people. Pure."""
    told = [(job["metadata"]["name"], job.get("status", {})) for job in jobs]
    return "; ".join(f"{name}: {status.get('phase')}, {status.get('reason')}" for name, status in told)
