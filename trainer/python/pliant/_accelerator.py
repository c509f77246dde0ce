"""The environment that Watson Machine Learning Accelerator gave to programs, which their scripts
read. For the modules under whose names they import us."""

import contextlib
import os
import tempfile
from pathlib import Path


def settle_environment() -> None:
    """What the environment does not say already."""
    # Scripts look below it for a zip of the old product. Where there is none, Python passes it by.
    os.environ.setdefault("FABRIC_HOME", "/usr/local")
    volume, job = os.environ.get("PLIANT_CHECKPOINT_DIR"), os.environ.get("PLIANT_JOB_UID")
    if "PLIANT_COORDINATOR" not in os.environ or not volume or not job:
        return  # it trains alone: where the old product was not, scripts have their own defaults
    os.environ.setdefault("DATA_DIR", tempfile.gettempdir())
    # Beside the checkpoints: what is written there outlives the pod.
    results = os.environ.setdefault("RESULT_DIR", str(Path(volume, job, "results")))
    logs = os.environ.setdefault("LOG_DIR", str(Path(results, "log")))
    for folder in (results, logs):
        with contextlib.suppress(OSError):  # who writes there says so
            Path(folder).mkdir(parents=True, exist_ok=True)
