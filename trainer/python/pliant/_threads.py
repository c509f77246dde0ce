"""The number of threads of an operation on the CPU. The result depends on it.

PyTorch's number can be set at any time. TensorFlow and JAX read the environment at their first
computation, which is when a model is built, so the variables are set when pliant is imported.
"""

import os
import sys

from ._checks import whole_of_text
from ._say import say
from ._settings import THREADS_MAX
from .errors import InvalidProgram

_XLA_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
_settled_late = False


def settle_in_environment() -> None:
    """Sets the variables that the environment does not set already."""
    global _settled_late
    named = "TF_NUM_INTRAOP_THREADS" in os.environ
    _settled_late = "tensorflow" in sys.modules and not named
    threads = os.environ.get("OMP_NUM_THREADS") or "1"
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", threads)
    os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
    flags = os.environ.get("XLA_FLAGS", "")
    if threads == "1" and "xla_cpu_multi_thread_eigen" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_XLA_ONE_THREAD}".strip()


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
    if backend != "tensorflow":
        return asked or threads_from_environment()
    if _settled_late:
        say(
            "import pliant before tensorflow and keras, or set TF_NUM_INTRAOP_THREADS: the "
            "result depends on the number of threads of an operation"
        )
        return os.cpu_count() or 1
    return int(os.environ["TF_NUM_INTRAOP_THREADS"])
