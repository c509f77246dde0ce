"""Checks the machine, the library, the frameworks and the environment of a learner, and reports
what is wrong. PyTorch or Keras is needed: `training` tries each that is installed."""

import contextlib
import importlib.util
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from . import __version__, _gpus
from .errors import InvalidProgram

_USAGE = """usage: python -m pliant doctor [--gpu [--job FILE]]

Checks this machine: Python, the library, PyTorch, Keras, GPUs, the job that the environment
describes. Then runs a short training with each installed framework. Exit code: 0 if a framework
can train and nothing else is wrong, else 1.

  --gpu      instead, measure this machine's GPU in half a minute: how many samples a shard needs,
             and what bitwise reproducibility costs
  --job FILE also say which logicalShards would make the job of this YAML or JSON file fastest
  --help     print this text
  --version  print the version of the package
"""


class Trouble(Exception):
    """The text says what does not work and what would help."""


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


def _is_there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _torch() -> str:
    if not _is_there("torch"):
        return "not installed"
    import torch

    if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
        raise Trouble(f"torch {torch.__version__} is too old: 2.1 or later is needed")
    return f"torch {torch.__version__}"


def _keras() -> str:
    if not _is_there("keras"):
        return "not installed"
    import keras

    if not hasattr(keras, "version") or int(keras.__version__.partition(".")[0]) < 3:
        raise Trouble(f"keras {keras.__version__} is too old: 3 is needed")
    return f"keras {keras.__version__} on {keras.backend.backend()}"


def _tensorboard() -> str:
    if not _is_there("tensorboard"):
        return "not installed: pliant.TensorBoard writes nothing (pip install tensorboard)"
    from importlib.metadata import version

    return f"tensorboard {version('tensorboard')}"


def _gpu() -> str:
    """The GPUs. Raises Trouble if no installed framework can use those of the container."""
    problems = []
    for name, look in _GPU_PROBLEMS.items():
        if _is_there(name):
            with contextlib.suppress(Exception):  # `training` reports a framework that fails
                problems.append(look())
    if problems and all(problems):
        raise Trouble("; ".join(map(str, problems)))
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return f"{torch.cuda.device_count()} x {torch.cuda.get_device_name()}"
    held = _gpus.held()
    return f"{held} in the container" if held else "none"


def _gpu_problem_of_torch() -> str | None:
    from ._torch.numerics import gpu_problem

    return gpu_problem()


def _gpu_problem_of_keras() -> str | None:
    from ._keras.engines import engine_of_backend

    return engine_of_backend().gpu_problem()


_GPU_PROBLEMS: dict[str, Callable[[], str | None]] = {
    "torch": _gpu_problem_of_torch,
    "keras": _gpu_problem_of_keras,
}


def _train_with_torch(folder: str) -> int:
    import torch

    from ._torch.elastic import attach

    data = torch.utils.data.TensorDataset(torch.randn(12, 4), torch.randn(12, 1))
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    elastic = attach(model, optimizer, data, epochs=1, batch_size=4, checkpoint_dir=folder)
    for step in elastic.steps():
        for inputs, targets in step:
            step.backward((model(inputs) - targets).square().mean())
        step.commit()
    return elastic.total_steps


def _train_with_keras(folder: str) -> int:
    import keras
    import numpy as np

    from ._keras.elastic import attach

    data = np.ones((12, 4), np.float32), np.ones((12, 1), np.float32)
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    elastic = attach(
        model,
        "sgd",
        data,
        loss="mean_squared_error",
        epochs=1,
        batch_size=4,
        checkpoint_dir=folder,
    )
    for step in elastic.steps():
        for batch in step:
            step.train(batch)
        step.commit()
    return elastic.total_steps


_TRAININGS: dict[str, Callable[[str], int]] = {
    "torch": _train_with_torch,
    "keras": _train_with_keras,
}


def _trains() -> str:
    """Three steps of a small model, with a checkpoint."""
    done, troubles = [], []
    kept = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("PLIANT_")}
    library = kept.get("PLIANT_LIBRARY")
    os.environ.update({"PLIANT_LIBRARY": library} if library else {})
    try:
        for name, train in _TRAININGS.items():
            if not _is_there(name):
                continue
            try:
                with tempfile.TemporaryDirectory(prefix="pliant-doctor-") as folder:
                    done.append(f"{train(folder)} steps alone with {name}")
            except Exception as error:  # any error: the other framework may work
                troubles.append(f"{name} does not train: {type(error).__name__}: {error}")
    finally:
        os.environ.update(kept)
    if not done and not troubles:
        raise Trouble("neither torch (2.1 or later) nor keras (3) is installed: one is needed")
    if not done:
        raise Trouble("; ".join(troubles))
    return "; ".join(done + troubles)


def _job() -> str:
    if "PLIANT_COORDINATOR" not in os.environ:
        return "none: a program started here trains alone"
    name = os.environ.get("PLIANT_JOB", "")
    folder = Path(os.environ.get("PLIANT_CHECKPOINT_DIR", ""))
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise Trouble(
            f"{name}: PLIANT_CHECKPOINT_DIR ({folder}) is not a writable folder"
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
# One of these is enough. `training` fails if there is none.
_FRAMEWORKS = {"torch", "keras"}


def _measure_gpu(job_file: str | None) -> int:
    from ._job_file import read

    job = None
    if job_file is not None:
        try:
            job = read(Path(job_file).read_text())
        except (OSError, ValueError, InvalidProgram) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            print(f"FAILED  job       {job_file}: {reason}", flush=True)
            return 1
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    if not _is_there("torch"):
        print("FAILED  gpu       PyTorch measures it, and is not installed", flush=True)
        return 1
    import torch

    if not torch.cuda.is_available():
        problem = _gpu_problem_of_torch() or "this machine has no GPU that PyTorch can use"
        print(f"FAILED  gpu       {problem}", flush=True)
        return 1
    from . import _gpu_speed, _shard_choice

    print(f"ok      gpu       {torch.cuda.get_device_name()}", flush=True)
    speeds = _gpu_speed.measure()
    print(*_gpu_speed.report(speeds), sep="\n", flush=True)
    if job is not None:
        seconds = partial(_gpu_speed.shard_seconds, speeds)
        print(_shard_choice.report(job, seconds), flush=True)
    return 0


def main(arguments: list[str]) -> int:
    if arguments in (["--help"], ["-h"], ["doctor", "--help"], ["doctor", "-h"]):
        print(_USAGE, end="")
        return 0
    if arguments == ["--version"]:
        print(f"pliant {__version__}")
        return 0
    if arguments == ["doctor", "--gpu"]:
        return _measure_gpu(None)
    if arguments[:-1] == ["doctor", "--gpu", "--job"]:
        return _measure_gpu(arguments[-1])
    if arguments != ["doctor"]:
        print(_USAGE, end="", file=sys.stderr)
        return 2
    worst = 0
    for name, check in _CHECKS.items():
        try:
            print(f"ok      {name:9} {check()}", flush=True)
        except Exception as trouble:  # any error: the other checks still run
            worst = worst if name in _FRAMEWORKS else 1
            kind = "" if isinstance(trouble, Trouble) else f"{type(trouble).__name__}: "
            print(f"FAILED  {name:9} {kind}{trouble}", flush=True)
    return worst
