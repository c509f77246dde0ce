"""Waits for states that the API server shows."""

import time
from collections.abc import Callable

from .errors import StoryError
from .kubectl import Kubectl
from .screen import Screen

_LOOK_SECONDS = 1.0


def wait(
    kubectl: Kubectl,
    screen: Screen,
    what: str,
    probe: Callable[[], bool],
    seconds: float,
    look_seconds: float = _LOOK_SECONDS,
) -> None:
    """Waits until `probe` returns true. The error after a timeout has the status of each job."""
    deadline = time.monotonic() + seconds
    while not probe():
        if time.monotonic() > deadline:
            raise StoryError(f"timed out after {seconds:.0f} s, waiting until {what}: {_phases(kubectl)}")
        time.sleep(look_seconds)
    screen.say(f"   {what}", "green")


def _phases(kubectl: Kubectl) -> str:
    jobs = kubectl.json("get", "elastictrainingjobs", "--all-namespaces")["items"]
    told = [(job["metadata"]["name"], job.get("status", {})) for job in jobs]
    return "; ".join(f"{name}: {status.get('phase')}, {status.get('reason')}" for name, status in told)
