"""The environment that Watson Machine Learning Accelerator gave to programs, which their scripts
read. For the modules under whose names they import us."""

import contextlib
import os
import sys
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from ._seeds import seed_python
from ._settings import whole_of_text
from .errors import InvalidProgram
from .process import _install_hook

_seeded = False


def settle_environment() -> None:
    """What the environment does not say already."""
    # Scripts look below it for a zip of the old product. Where there is none, Python passes it by.
    os.environ.setdefault("FABRIC_HOME", "/usr/local")
    volume, job = os.environ.get("PLIANT_CHECKPOINT_DIR"), os.environ.get("PLIANT_JOB_UID")
    # Alone, where the old product was not, scripts have their own defaults.
    if "PLIANT_COORDINATOR" in os.environ and volume and job:
        os.environ.setdefault("DATA_DIR", tempfile.gettempdir())
        # Beside the checkpoints: what is written there outlives the pod.
        results = os.environ.setdefault("RESULT_DIR", str(Path(volume, job, "results")))
        os.environ.setdefault("LOG_DIR", str(Path(results, "log")))
    make_folders()


def make_folders() -> None:
    """Those that scripts write to without making them."""
    for name in ("RESULT_DIR", "LOG_DIR"):
        folder = os.environ.get(name)
        if folder:
            with contextlib.suppress(OSError):  # who writes there says so
                Path(folder).mkdir(parents=True, exist_ok=True)


def seed_once() -> None:
    """Scripts that seed nothing build the same model in each run of a job, and on each learner.
    Once in a process: what a script seeds later stays."""
    global _seeded
    if _seeded:
        return
    _seeded = True
    seed = _number("PLIANT_SEED", 0, (1 << 64) - 1) or 0
    # Before it is imported there is nothing to seed. Beside TensorFlow, which a script of Keras has
    # imported by now, it would take seconds for nothing.
    if "tensorflow" not in sys.modules and "keras" not in sys.modules:
        _import_if_there("torch")
    _import_if_there("numpy")
    seed_python(seed)
    # Their generators take no more.
    word = (seed ^ (seed >> 32)) & 0xFFFFFFFF
    if "keras" in sys.modules:
        sys.modules["keras"].utils.set_random_seed(word)
    elif "tensorflow" in sys.modules:
        sys.modules["tensorflow"].random.set_seed(word)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def _import_if_there(module: str) -> None:
    if module not in sys.modules and find_spec(module) is not None:
        import_module(module)


def global_batch_size() -> int | None:
    """The job's; None: the environment names none."""
    return _number("PLIANT_GLOBAL_BATCH_SIZE", 1, 1 << 32)


def logical_shards() -> int | None:
    return _number("PLIANT_LOGICAL_SHARDS", 1, 1 << 16)


def _number(name: str, least: int, most: int) -> int | None:
    text = os.environ.get(name)
    if not text:
        return None
    number = whole_of_text(text, least, most)
    if number is None:
        raise wrong(f"{name} is {text!r}: it must be a whole number from {least} to {most}")
    return number


def wrong(message: str) -> InvalidProgram:
    """To be raised. Where nobody catches it, the process ends with its exit code, although there is
    no training yet."""
    _install_hook()
    return InvalidProgram(message)
