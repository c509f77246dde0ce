"""Tests of the Python package with libraries that are too large for the build image: only images of
Python programs have them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from . import build_image, product
from .counts import Counts
from .errors import last_lines
from .images import Mounted, engine
from .progress import log_file, phase, run_to_log, say
from .settings import REPO


@dataclass(frozen=True)
class ImageTest:
    image: Callable[[], str]
    scripts: tuple[str, ...]  # in tests, with the classes of tests to run; each is one case
    environment: Mapping[str, str] = field(default_factory=dict)
    long: bool = False  # only in ./dev test all


def _keras(backend: str, image: Callable[[], str]) -> ImageTest:
    environment = {"KERAS_BACKEND": backend, "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    return ImageTest(image, ("python/test_keras.py", "python/test_keras_fit.py"), environment)


def _hugging_face(*scripts: str, long: bool = False, **versions: str) -> ImageTest:
    image = partial(product.build_hugging_face_test_image, **versions)
    return ImageTest(image, scripts, {"HF_HUB_OFFLINE": "1"}, long)


_PACKAGES = "/usr/local/lib/python3.13/dist-packages"
TESTS = {
    "Keras over tensorflow": _keras(
        "tensorflow", lambda: product.build_python_image("learner-tensorflow")
    ),
    "Keras over torch": _keras("torch", product.build_keras_test_image),
    "Keras over jax": _keras("jax", product.build_keras_test_image),
    "Hugging Face": _hugging_face(
        "python/test_hugging_face.py", "python/test_data_hugging_face.py", "python/test_data_elastic.py"
    ),
    "Trainers of Hugging Face": _hugging_face(
        "python/test_transformers.py",
        "python/test_accelerate.py",
        "python/test_transformers_elastic.py TrainersTest",
        "reach/test_reach.py",
    ),
    "further Trainers of Hugging Face": _hugging_face(
        "python/test_transformers_elastic.py FurtherTrainersTest", long=True
    ),
    "Lightning and trackers": ImageTest(
        product.build_libraries_test_image, ("python/test_lightning.py", "python/test_trackers.py TrackersTest")
    ),
    "a Trainer with trackers": ImageTest(
        product.build_libraries_test_image,
        ("python/test_trackers.py FurtherTrackersTest",),
        {"HF_HUB_OFFLINE": "1"},
        long=True,
    ),
    "the newest torch": ImageTest(
        product.build_newest_test_image,
        (
            "python/test_transformers.py",
            "python/test_accelerate.py",
            "python/test_transformers_elastic.py TrainersTest",
            "python/test_elastic.py",
        ),
        # Its Python is newer, too, and looks elsewhere.
        {"HF_HUB_OFFLINE": "1", "PYTHONPATH": f"{_PACKAGES}:/src/tests/scenario"},
        long=True,
    ),
    "the oldest transformers": _hugging_face(
        "python/test_transformers.py",
        "python/test_accelerate.py",
        "python/test_transformers_elastic.py",
        long=True,
        TRANSFORMERS="5.5",
    ),
}


def run(name: str) -> Counts:
    """Tests the package in an image with the coordinator of the build."""
    product.compile_preset("release", "pliant", "pliant-coordinator")
    test = TESTS[name]
    image = test.image()
    passed = sum(run_script(name, image, script, test.environment) for script in test.scripts)
    counts = Counts(passed=passed, failed=len(test.scripts) - passed)
    say(f"{name}: {counts}")
    return counts


def run_script(
    name: str,
    image: str,
    script: str,
    environment: Mapping[str, str],
    mounts: Mapping[Path, str] | None = None,
) -> bool:
    """Whether it passes. `script`: as in ImageTest."""
    file, *classes = script.split()
    log = log_file(f"test-{name.replace(' ', '-').lower()}-{Path(file).stem}")
    inside = in_image(["python3", "-B", f"/src/tests/{file}", *classes], environment, mounts)
    log.write_bytes(b"")
    with phase(f"Running {script} with {name}"):
        status = run_to_log(engine().command_to_run(image, inside), log)
    if status:
        say(f"last lines of {log}:\n{last_lines(log, 60)}")
    return not status


def in_image(
    command: Sequence[str],
    environment: Mapping[str, str],
    mounts: Mapping[Path, str] | None = None,
) -> Mounted:
    """The command with the tree and the build at hand."""
    return Mounted(
        command=command,
        mounts={REPO: "/src", build_image.build_directory(): "/src/build", **(mounts or {})},
        environment={
            "PLIANT_BIN": "/src/build/release/bin",
            "PYTHONPATH": "/src/tests/scenario",
            # The coordinator uses the libraries in the package.
            "LD_LIBRARY_PATH": f"{_PACKAGES}/pliant/lib",
            "HOME": "/tmp",
            **environment,
        },
    )
