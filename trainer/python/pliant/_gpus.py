"""GPUs that a container holds, and its image cannot use."""

from pathlib import Path

_DEVICES = Path("/dev")


def held() -> int:
    """By the container, whatever it can do with them."""
    return len(list(_DEVICES.glob("nvidia[0-9]*")))


def problem(framework: str, *, usable: bool) -> str | None:
    """What to tell the job's owner; None: nothing."""
    count = held()
    if usable or count == 0:
        return None
    return f"its container holds {count} GPU{'s'[: count - 1]}, which {framework} in its image cannot use"
