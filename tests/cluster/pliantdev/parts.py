"""The parts of ./dev test and CI, as moments."""

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from . import chart, ctest, gpu_pack, product, prometheus, python_image_tests, source_checks, storyteller
from .counts import Counts
from .lock import LOCK_IS_HELD
from .moments import Moment, moment
from .settings import CLUSTER_SOURCES

SANITIZERS = ("asan", "tsan")  # presets
# The sets that sanitizers run. The others need a cluster, or are a search that would become slower.
SANITIZED_SETS = ("unit", "scenario", "simulation", "fuzz")

FORMAT = moment("format", source_checks.check_format)
TYPES = moment("types", source_checks.check_types)
CHART = moment("chart", chart.run)
ALERTS = moment("alerts and dashboard", prometheus.check)
# Without a unity build and precompiled headers, a missing #include is an error.
ALONE = moment("each file by itself", lambda: product.compile_preset("dev", "all"))
CUDA = moment("GPU pack", lambda: gpu_pack.make(gpu_pack.FOLDER))
ON_GPU = moment("GPU pack: its tests on this machine's GPU", gpu_pack.run_unit_tests)
LONG_IN_IMAGES, IN_IMAGES = (
    {
        name: moment(name, partial(python_image_tests.run, name))
        for name, test in python_image_tests.TESTS.items()
        if test.long == long
    }
    for long in (True, False)
)


def ctest_moments(
    groups: Sequence[Sequence[str]], preset: str = "release", *, long: bool = False
) -> list[Moment]:
    """Compiles the sets, and runs each group of them separately."""
    suffix = "" if preset == "release" else f" ({preset})"
    compiling = f"compile{suffix}"
    sets = [name for group in groups for name in group]
    runs = [
        moment(
            f"{', '.join(group)} tests{suffix}",
            partial(ctest.run_sets, group, preset=preset, long=long),
            needs=[compiling],
        )
        for group in groups
    ]
    return [moment(compiling, lambda: ctest.compile_sets(sets, preset)), *runs]


def gpu_moments(preset: str = "release") -> list[Moment]:
    """What concerns GPUs, with stand-ins for CUDA and NCCL; and with a GPU if there is one."""
    return [*ctest_moments([["gpu"]], preset), *([ON_GPU] if gpu_pack.gpu_at_hand() else [])]


def _kill_up() -> Counts:
    command: list[str | Path] = [sys.executable, "-B", CLUSTER_SOURCES / "crash_test.py"]
    # It runs ./dev itself, which would wait for us.
    environment = {**os.environ, LOCK_IS_HELD: "1"}
    return storyteller.run("the kills of ./dev up", command, environment)


KILLS = moment("the kills of ./dev up", _kill_up)
