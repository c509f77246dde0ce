"""Settings that must be equal on every learner for bitwise equal results."""

import contextlib
import ctypes
import os

import torch

from .. import _gpus
from .._seeds import seed_python


def seed_all(seed: int) -> None:
    """Seeds Python's, numpy's and torch's generators, on all devices."""
    seed_python(seed)
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def settle(threads: int, *, bitwise: bool) -> None:
    """Sets the number of threads, which decides how a kernel divides its sums, so the result
    depends on it. Deterministic kernels are required only for a bitwise job: otherwise the rounding
    may differ, and a program may use operations that have no deterministic kernel."""
    torch.set_num_threads(threads)
    _limit_openblas(threads)
    if bitwise:
        _compute_deterministically()


def _compute_deterministically() -> None:
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    # Deterministic mode fills new memory to reveal reads of uninitialized data, which doubles the
    # work. PyTorch 2.1 does not do this and has no such setting.
    deterministic = getattr(torch.utils, "deterministic", None)
    if deterministic is not None:
        deterministic.fill_uninitialized_memory = False


def _limit_openblas(threads: int) -> None:
    """OpenBLAS built with pthreads ignores the OpenMP call that torch makes."""
    with contextlib.suppress(OSError):
        with open("/proc/self/maps") as maps:
            paths = {line.split(maxsplit=5)[5].strip() for line in maps if "libopenblas" in line}
        for path in sorted(paths):
            with contextlib.suppress(OSError, AttributeError):
                ctypes.CDLL(path).openblas_set_num_threads(threads)


def gpu_problem() -> str | None:
    built = f"CUDA {torch.version.cuda}" if torch.version.cuda else "without CUDA"
    return _gpus.problem(f"torch {torch.__version__} ({built})", usable=torch.cuda.is_available())


def describe(threads: int) -> str:
    """Versions and settings that must be equal on all learners of a bitwise job."""
    version = f"torch {torch.__version__} threads={threads}"
    if torch.cuda.is_available():
        version += f" cuda={torch.version.cuda} gpu={torch.cuda.get_device_name()}"
    return version
