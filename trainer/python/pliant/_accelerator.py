"""The environment variables that Watson Machine Learning Accelerator set and its scripts read.
Used by the compatibility modules, whose names are those that the scripts import."""

import contextlib
import os
import sys
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from ._checks import whole_of_text
from ._seeds import seed_python
from .errors import InvalidProgram
from .process import _install_hook

_seeded = False


def settle_environment() -> None:
    """Sets the variables that the environment does not set already."""
    # Scripts add a zip file of the old product below it to sys.path. Python ignores a missing one.
    os.environ.setdefault("FABRIC_HOME", "/usr/local")
    volume, job = os.environ.get("PLIANT_CHECKPOINT_DIR"), os.environ.get("PLIANT_JOB_UID")
    # Outside a job scripts use their own defaults, as they did without the old product.
    if "PLIANT_COORDINATOR" in os.environ and volume and job:
        os.environ.setdefault("DATA_DIR", tempfile.gettempdir())
        # On the checkpoint volume: results outlive the pod.
        results = os.environ.setdefault("RESULT_DIR", str(Path(volume, job, "results")))
        os.environ.setdefault("LOG_DIR", str(Path(results, "log")))
    make_folders()


def make_folders() -> None:
    """Creates the folders that scripts write to without creating them."""
    for name in ("RESULT_DIR", "LOG_DIR"):
        folder = os.environ.get(name)
        if folder:
            with contextlib.suppress(OSError):  # a write to it reports the error
                Path(folder).mkdir(parents=True, exist_ok=True)


def seed_once() -> None:
    """Seeds all generators, so that a script that seeds nothing builds the same model in each run
    of a job and on each learner. Only once in a process: a script may set other seeds later."""
    global _seeded
    if _seeded:
        return
    _seeded = True
    seed = _number("PLIANT_SEED", 0, (1 << 64) - 1) or 0
    # torch can be seeded only once it is imported. A Keras script has imported TensorFlow by now
    # and does not need torch, whose import takes seconds.
    if "tensorflow" not in sys.modules and "keras" not in sys.modules:
        _import_if_there("torch")
    _import_if_there("numpy")
    seed_python(seed)
    # TensorFlow and Keras take 32-bit seeds.
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
    """The job's global batch size, in samples; None: the environment does not set it."""
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
    """An error for the caller to raise. If it is not caught, the process ends with the error's exit
    code, even before a training exists."""
    _install_hook()
    return InvalidProgram(message)
