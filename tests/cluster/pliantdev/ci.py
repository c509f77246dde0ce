"""The whole check of a change: format, types, warnings, tests, the CUDA build and the end-to-end story."""

import time
from collections.abc import Callable

from . import build_image, commands, ctest, preflight, product, prometheus
from .counts import Counts
from .errors import DevError
from .progress import clock, log_file, phase, say
from .settings import REPO

# What a sanitizer can tell of: the rest needs a cluster, or is a search that it would slow down.
_SANITIZED_SETS = ("unit", "scenario", "simulation", "fuzz")

# What is compiled with nvcc or against NCCL's headers; the rest is the release's.
_CUDA_TARGETS = ("pliant_cuda_kernels", "pliant_nccl")


def _check_format() -> None:
    files = [
        str(path.relative_to(REPO))
        for folder in ("base", "operator", "trainer", "tests")
        for path in sorted((REPO / folder).rglob("*"))
        if path.suffix in (".cc", ".h", ".cu", ".cuh")
    ]
    build_image.stage("build", "about 5 min")
    with phase(f"Checking the format of {len(files)} files"):
        build_image.run(
            ["clang-format", "--dry-run", "-Werror", *files], log_file("format"), "the format check"
        )


def _check_types() -> None:
    settings = ["--config-file", "trainer/python/pyproject.toml", "--cache-dir", "build/mypy"]
    sources = ["trainer/python/pliant", "trainer/python/compatibility"]
    build_image.stage("build", "about 5 min")
    with phase("Checking the types of the Python package"):
        build_image.run(["mypy", *settings, *sources], log_file("types"), "the type check")


def _check_tests(counts: Counts) -> None:
    if counts.failed:
        raise DevError(f"tests failed: {counts}")


def run() -> int:
    """Runs all parts, also after one has failed, and names those that did at the end."""
    preflight.check(cluster=True)
    parts: dict[str, Callable[[], None]] = {
        "format": _check_format,
        "types": _check_types,
        "tests": lambda: _check_tests(commands.run_tests([])),
        "alerts and dashboard": prometheus.check,
        **{
            f"tests with {name}": lambda preset=preset: _check_tests(
                ctest.run(_SANITIZED_SETS, preset=preset)
            )
            for name, preset in (
                ("AddressSanitizer and UBSan", "asan"),
                ("ThreadSanitizer", "tsan"),
            )
        },
        "compilation with CUDA": lambda: product.compile_preset("cuda", *_CUDA_TARGETS),
    }
    failed = []
    summary = []
    try:
        for name, part in parts.items():
            say(f"--- {name}")
            begun = time.monotonic()
            try:
                part()
            except DevError as error:
                say(f"{name}: {error}")
                failed.append(name)
            verdict = "FAILED" if name in failed else "ok"
            summary.append(f"{clock(time.monotonic() - begun):>6}  {verdict:6}  {name}")
    finally:
        commands.down()
    print(
        *summary, f"CI failed: {', '.join(failed)}" if failed else "CI passed", sep="\n", flush=True
    )
    return 1 if failed else 0
