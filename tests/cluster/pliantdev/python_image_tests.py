"""Tests of the Python package with libraries that are too large for the build image: only images of
Python programs have them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from . import build_image, product
from .counts import Counts
from .errors import last_lines
from .images import Mounted, engine
from .progress import log_file, phase, run_to_log, say
from .settings import REPO


@dataclass(frozen=True)
class ImageTest:
    image: Callable[[], str]
    scripts: tuple[str, ...]  # in tests/python; each is one case
    environment: Mapping[str, str] = field(default_factory=dict)


def _keras(backend: str, image: Callable[[], str]) -> ImageTest:
    environment = {"KERAS_BACKEND": backend, "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    return ImageTest(image, ("test_keras.py",), environment)


TESTS = {
    "Keras over tensorflow": _keras(
        "tensorflow", lambda: product.build_python_image("learner-tensorflow")
    ),
    "Keras over torch": _keras("torch", product.build_keras_test_image),
    "Keras over jax": _keras("jax", product.build_keras_test_image),
    "Hugging Face": ImageTest(
        product.build_hugging_face_test_image,
        ("test_hugging_face.py", "test_data_hugging_face.py", "test_data_elastic.py"),
        {"HF_HUB_OFFLINE": "1"},
    ),
}
_PACKAGE = "/usr/local/lib/python3.13/dist-packages/pliant"


def run(name: str) -> Counts:
    """Tests the package in an image with the coordinator of the build."""
    product.compile_preset("release", "pliant", "pliant-coordinator")
    test = TESTS[name]
    image = test.image()
    passed = sum(_run_script(name, image, script, test.environment) for script in test.scripts)
    counts = Counts(passed=passed, failed=len(test.scripts) - passed)
    say(f"{name}: {counts}")
    return counts


def _run_script(name: str, image: str, script: str, environment: Mapping[str, str]) -> bool:
    log = log_file(f"test-{name.replace(' ', '-').lower()}-{script.removesuffix('.py')}")
    inside = Mounted(
        command=["python3", "-B", f"/src/tests/python/{script}"],
        mounts={REPO: "/src", build_image.build_directory(): "/src/build"},
        environment={
            "PLIANT_BIN": "/src/build/release/bin",
            "PYTHONPATH": "/src/tests/scenario",
            # The coordinator uses the libraries in the package.
            "LD_LIBRARY_PATH": f"{_PACKAGE}/lib",
            "HOME": "/tmp",
            **environment,
        },
    )
    log.write_bytes(b"")
    with phase(f"Running {script} with {name}"):
        status = run_to_log(engine().command_to_run(image, inside), log)
    if status:
        say(f"last lines of {log}:\n{last_lines(log, 60)}")
    return not status
