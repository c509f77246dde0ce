"""Tests of Keras on each of its backends. Only the images of Python programs have Keras: it is too
large for the build image."""

from collections.abc import Callable

from . import build_image, product
from .counts import Counts
from .errors import last_lines
from .images import Mounted, engine
from .progress import log_file, phase, run_to_log, say
from .settings import REPO

# Value of KERAS_BACKEND → the image with this backend.
BACKENDS: dict[str, Callable[[], str]] = {
    "tensorflow": lambda: product.build_python_image("learner-tensorflow"),
    "torch": product.build_keras_test_image,
    "jax": product.build_keras_test_image,
}
_PACKAGE = "/usr/local/lib/python3.13/dist-packages/pliant"


def run(backend: str) -> Counts:
    """Tests the package in an image with the coordinator of the build. Each backend is one case."""
    product.compile_preset("release", "pliant", "pliant-coordinator")
    image = BACKENDS[backend]()
    log = log_file(f"test-keras-{backend}")
    inside = Mounted(
        command=["python3", "-B", "/src/tests/python/test_keras.py"],
        mounts={REPO: "/src", build_image.build_directory(): "/src/build"},
        environment={
            "KERAS_BACKEND": backend,
            "PLIANT_BIN": "/src/build/release/bin",
            "PYTHONPATH": "/src/tests/scenario",
            # The coordinator uses the libraries in the package.
            "LD_LIBRARY_PATH": f"{_PACKAGE}/lib",
            "HOME": "/tmp",
        },
    )
    log.write_bytes(b"")
    with phase(f"Running the Keras tests over {backend}"):
        status = run_to_log(engine().command_to_run(image, inside), log)
    counts = Counts(failed=1) if status else Counts(passed=1)
    say(f"Keras tests over {backend}: {counts}")
    if counts.failed:
        say(f"last lines of {log}:\n{last_lines(log, 60)}")
    return counts
