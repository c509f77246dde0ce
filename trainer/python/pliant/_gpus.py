"""GPUs that a container holds but its image cannot use."""

from pathlib import Path

_DEVICES = Path("/dev")


def held() -> int:
    """The number of GPUs that the container holds, usable or not."""
    return len(list(_DEVICES.glob("nvidia[0-9]*")))


def problem(framework: str, *, usable: bool) -> str | None:
    """The problem to report in the job's status; None: there is none."""
    count = held()
    if usable or count == 0:
        return None
    return f"its container holds {count} GPU{'s'[: count - 1]}, which {framework} in its image cannot use"
