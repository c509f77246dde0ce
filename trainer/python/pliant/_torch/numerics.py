"""Settings that must be equal on every learner for bitwise equal results."""

import contextlib
import ctypes
import os

import torch

from .. import _gpus
from .._seeds import seed_python

# Has a fixed buffer for each stream, without which cuBLAS may choose another algorithm.
_CUBLAS_WORKSPACE = ":4096:8"


def seed_all(seed: int) -> None:
    """Seeds Python's, numpy's and torch's generators, on all devices."""
    seed_python(seed)
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def products_problem() -> str | None:
    """Why products of matrices on a GPU may differ from one learner to the next; None: they do
    not. Called before anything here uses the GPU."""
    if "CUBLAS_WORKSPACE_CONFIG" in os.environ or not torch.cuda.is_initialized():
        return None
    # cuBLAS reads it at its first use, which may be over.
    return (
        "the environment has no CUBLAS_WORKSPACE_CONFIG, so products of matrices on a GPU may "
        "differ from one learner to the next. Set it in the container (the learner images have "
        "CUBLAS_WORKSPACE_CONFIG=:4096:8), or set reproducibility: Statistical in the job"
    )


def settle(threads: int, *, bitwise: bool) -> None:
    """Sets the number of threads, which decides how a kernel divides its sums, so the result
    depends on it. Deterministic kernels are required only for a bitwise job: otherwise the rounding
    may differ, and a program may use operations that have no deterministic kernel."""
    torch.set_num_threads(threads)
    _limit_openblas(threads)
    if bitwise:
        compute_deterministically()


def compute_deterministically() -> None:
    """What a bitwise job needs of PyTorch. Called before the first use of cuBLAS."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", _CUBLAS_WORKSPACE)
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
    if not torch.cuda.is_available():
        return version
    return " ".join([version, *(f"{name}={value}" for name, value in _of_gpu().items())])


def _of_gpu() -> dict[str, object]:
    """What decides the bits of a computation on a GPU, apart from the program."""
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    attention = [name for name in ("flash", "mem_efficient", "math", "cudnn") if _attends_by(name)]
    return {
        "cuda": torch.version.cuda,
        "gpu": torch.cuda.get_device_name().replace(" ", "-"),
        "driver": _gpus.driver_version() or "unknown",
        "cudnn": cudnn.version() if cudnn.is_available() else None,
        "matmul": torch.get_float32_matmul_precision(),
        "tf32": f"{matmul.allow_tf32},{cudnn.allow_tf32}",
        "reduced": f"{matmul.allow_fp16_reduced_precision_reduction},"
        f"{matmul.allow_bf16_reduced_precision_reduction}",
        "attention": ",".join(attention),
        "cublas": os.environ.get("CUBLAS_WORKSPACE_CONFIG", _CUBLAS_WORKSPACE),
    }


def _attends_by(kernel: str) -> bool:
    """Whether attention may use this kernel. False: this version of torch does not have it."""
    enabled = getattr(torch.backends.cuda, f"{kernel}_sdp_enabled", None)
    return enabled is not None and bool(enabled())
