"""The number of threads of an operation on the CPU. The result depends on it.

PyTorch's number can be set at any time. TensorFlow and JAX read the environment at their first
computation, which is when a model is built. To set it there would change a process that only
imports this package, so the program or its image does, and a line says so otherwise.
"""

import os

from ._checks import whole_of_text
from ._say import say
from ._settings import THREADS_MAX
from .errors import InvalidProgram

_XLA_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"


def threads_from_environment() -> int:
    """OMP_NUM_THREADS, else 1. It may be a list, one number for each nesting level: the first
    counts."""
    said = os.environ.get("OMP_NUM_THREADS") or "1"
    threads = whole_of_text(said.partition(",")[0].strip(), 1, THREADS_MAX)
    if threads is None:
        raise InvalidProgram(
            f"OMP_NUM_THREADS is {said!r}: it must be a whole number from 1 to {THREADS_MAX}"
        )
    return threads


def threads_of(backend: str, asked: int | None) -> int:
    """The number of threads that the backend uses. `asked`: the program's setting."""
    if backend == "tensorflow":
        named = os.environ.get("TF_NUM_INTRAOP_THREADS", "0")
        if named.isdigit() and int(named) > 0:
            return int(named)
        return _all_threads("TF_NUM_INTRAOP_THREADS=1 and TF_NUM_INTEROP_THREADS=1")
    if backend == "jax" and "xla_cpu_multi_thread_eigen" not in os.environ.get("XLA_FLAGS", ""):
        return _all_threads(f"XLA_FLAGS={_XLA_ONE_THREAD}")
    return asked or threads_from_environment()


def _all_threads(remedy: str) -> int:
    threads = os.cpu_count() or 1
    say(
        f"an operation uses all {threads} threads of this machine, and the result depends on their "
        f"number: set {remedy} in the environment, as the learner image does, for the bits of a job"
    )
    return threads
