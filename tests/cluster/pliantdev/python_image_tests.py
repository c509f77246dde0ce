"""Tests of what only an image of Python programs has: Keras with TensorFlow, too large for the build image."""

import subprocess

from . import build_image, product
from .counts import Counts
from .images import Mounted, engine
from .errors import last_lines
from .progress import log_file, phase, say
from .settings import REPO

_IMAGE = "learner-tensorflow"
_PACKAGE = "/usr/local/lib/python3.13/dist-packages/pliant"


def run() -> Counts:
    """The package as it is in the image, against the coordinator of the build, as one case."""
    product.compile_preset("release", "pliant", "pliant-coordinator")
    image = product.build_python_image(_IMAGE)
    log = log_file("test-keras")
    inside = Mounted(
        command=["python3", "-B", "/src/tests/python/test_keras.py"],
        mounts={REPO: "/src", build_image.build_directory(): "/src/build"},
        environment={
            "PLIANT_BIN": "/src/build/release/bin",
            "PYTHONPATH": "/src/tests/scenario",
            # The coordinator's libraries are those that the package brings.
            "LD_LIBRARY_PATH": f"{_PACKAGE}/lib",
            "HOME": "/tmp",
        },
    )
    with phase(f"Running the Keras tests in {_IMAGE}"), log.open("w") as out:
        command = engine().command_to_run(image, inside)
        ended = subprocess.run(
            command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False
        )
    counts = Counts(failed=1) if ended.returncode else Counts(passed=1)
    say(f"Keras tests: {counts}")
    if counts.failed:
        say(f"last lines of {log}:\n{last_lines(log, 60)}")
    return counts
