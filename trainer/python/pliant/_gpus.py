"""GPUs that a container holds but its image cannot use."""

import re
from pathlib import Path

_DEVICES = Path("/dev")
_DRIVER = Path("/proc/driver/nvidia/version")


def held() -> int:
    """The number of GPUs that the container holds, usable or not."""
    return len(list(_DEVICES.glob("nvidia[0-9]*")))


def driver_version() -> str | None:
    """The version of NVIDIA's driver: "580.159.04"; None: there is none."""
    try:
        text = _DRIVER.read_text()
    except OSError:
        return None
    found = re.search(r"Kernel Module\s.*?(\d+(?:\.\d+)+)", text)
    return found[1] if found else None


def problem(framework: str, *, usable: bool) -> str | None:
    """The problem to report in the job's status; None: there is none."""
    count = held()
    if usable or count == 0:
        return None
    return f"its container holds {count} GPU{'s'[: count - 1]}, which {framework} in its image cannot use"
