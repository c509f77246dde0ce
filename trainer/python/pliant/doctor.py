"""Looks at the machine, the library, torch and the environment of a learner, and says what is
wrong."""

import importlib.util
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from . import _gpus

USAGE = "usage: python -m pliant doctor"


class Trouble(Exception):
    """What does not work, and what would help."""


def _python() -> str:
    return f"Python {platform.python_version()} on {platform.machine()}"


def _library() -> str:
    from . import _native

    try:
        loaded = _native.library()
    except ImportError as error:
        raise Trouble(f"{error}; libc here: {' '.join(platform.libc_ver())}") from None
    version, interface = loaded.pliant_version().decode(), loaded.pliant_abi_version()
    return f"version {version}, interface {interface}, {_native.library_path()}"


def _torch() -> str:
    if importlib.util.find_spec("torch") is None:
        raise Trouble(
            "torch is not installed: pliant.attach and FabricModel need it (2.1 or later)"
        )
    import torch

    if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
        raise Trouble(f"torch {torch.__version__} is too old: 2.1 or later is needed")
    return f"torch {torch.__version__}"


def _keras() -> str:
    if importlib.util.find_spec("keras") is None:
        return "not installed"
    import keras

    if not hasattr(keras, "version") or int(keras.__version__.partition(".")[0]) < 3:
        raise Trouble(f"keras {keras.__version__} is too old: 3 is needed")
    return f"keras {keras.__version__} on {keras.backend.backend()}"


def _tensorboard() -> str:
    if importlib.util.find_spec("tensorboard") is None:
        return "not installed: pliant.TensorBoard writes nothing"
    from importlib.metadata import version

    return f"tensorboard {version('tensorboard')}"


def _gpu() -> str:
    if importlib.util.find_spec("torch") is None:
        return f"{_gpus.held()} in the container"
    import torch

    from ._torch.numerics import gpu_problem

    if torch.cuda.is_available():
        return f"{torch.cuda.device_count()} x {torch.cuda.get_device_name()}"
    if problem := gpu_problem():
        raise Trouble(problem)
    return "none"


def _trains() -> str:
    """Three steps of a small model, with a checkpoint."""
    if importlib.util.find_spec("torch") is None:
        raise Trouble("not tried, without torch")
    import torch

    from ._torch.elastic import attach

    data = torch.utils.data.TensorDataset(torch.randn(12, 4), torch.randn(12, 1))
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("PLIANT_")}
    library = kept.get("PLIANT_LIBRARY")
    os.environ.update({"PLIANT_LIBRARY": library} if library else {})
    try:
        with tempfile.TemporaryDirectory(prefix="pliant-doctor-") as folder:
            elastic = attach(model, optimizer, data, epochs=1, batch_size=4, checkpoint_dir=folder)
            for step in elastic.steps():
                for inputs, targets in step:
                    step.backward((model(inputs) - targets).square().mean())
                step.commit()
    finally:
        os.environ.update(kept)
    return f"{elastic.total_steps} steps alone"


def _job() -> str:
    if "PLIANT_COORDINATOR" not in os.environ:
        return "none: a program started here trains alone"
    name = os.environ.get("PLIANT_JOB", "")
    folder = Path(os.environ.get("PLIANT_CHECKPOINT_DIR", ""))
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise Trouble(
            f"{name}: PLIANT_CHECKPOINT_DIR ({folder}) is no folder that can be written to"
        )
    return name


_CHECKS: dict[str, Callable[[], str]] = {
    "python": _python,
    "library": _library,
    "torch": _torch,
    "keras": _keras,
    "events": _tensorboard,
    "gpu": _gpu,
    "job": _job,
    "training": _trains,
}


def main(arguments: list[str]) -> int:
    if arguments != ["doctor"]:
        print(USAGE, file=sys.stderr)
        return 2
    worst = 0
    for name, check in _CHECKS.items():
        try:
            print(f"ok      {name:9} {check()}", flush=True)
        except Exception as trouble:  # whatever it is, the other checks say more
            worst = 1
            kind = "" if isinstance(trouble, Trouble) else f"{type(trouble).__name__}: "
            print(f"FAILED  {name:9} {kind}{trouble}", flush=True)
    return worst
