"""How many threads an operation on the CPU is cut into: part of the result.

PyTorch can be told at any time. TensorFlow and JAX read the environment when they compute for the
first time, which is when a model is built: so it is set when pliant is imported.
"""

import os
import sys

from ._say import say
from ._settings import threads_from_environment

_XLA_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
_settled_late = False


def settle_in_environment() -> None:
    """What the environment does not say already."""
    global _settled_late
    named = "TF_NUM_INTRAOP_THREADS" in os.environ
    _settled_late = "tensorflow" in sys.modules and not named
    threads = os.environ.get("OMP_NUM_THREADS") or "1"
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", threads)
    os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
    flags = os.environ.get("XLA_FLAGS", "")
    if threads == "1" and "xla_cpu_multi_thread_eigen" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_XLA_ONE_THREAD}".strip()


def threads_of(backend: str, asked: int | None) -> int:
    """How many there are, `asked` being what the program wants."""
    if backend != "tensorflow":
        return asked or threads_from_environment()
    if _settled_late:
        say(
            "import pliant before tensorflow and keras, or set TF_NUM_INTRAOP_THREADS: how "
            "many threads an operation has is part of the result"
        )
        return os.cpu_count() or 1
    return int(os.environ["TF_NUM_INTRAOP_THREADS"])
