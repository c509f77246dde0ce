"""Static checks of the source: its format, and the types of the Python package, of kubectl pliant, of ./dev and of the tests' browser."""

from . import build_image
from .progress import log_file, phase
from .settings import REPO

FORMATTED = (".cc", ".h", ".cu", ".cuh")


def check_format() -> None:
    files = [
        str(path.relative_to(REPO))
        for folder in ("base", "operator", "simulator", "trainer", "tests")
        for path in sorted((REPO / folder).rglob("*"))
        if path.suffix in FORMATTED
    ]
    build_image.stage("build", "about 5 min")
    with phase(f"Checking the format of {len(files)} files"):
        build_image.run(
            ["clang-format", "--dry-run", "-Werror", *files], log_file("format"), "the format check"
        )


def check_types() -> None:
    settings = ["--config-file", "trainer/python/pyproject.toml", "--cache-dir", "build/mypy"]
    sources = ["trainer/python/pliant", "trainer/python/compatibility"]
    ours = ["--python-version", "3.11", "--cache-dir", "build/mypy-dev", "--package", "pliantdev"]
    browser = ["--python-version", "3.11", "--cache-dir", "build/mypy-browser", "--package", "browser"]
    tool = ["--config-file", "cli/pyproject.toml", "--cache-dir", "build/mypy-cli", "cli/kubectl_pliant"]
    build_image.stage("build", "about 5 min")
    with phase("Checking the types of the Python package, of kubectl pliant, of ./dev and of the tests' browser"):
        build_image.run(["mypy", *settings, *sources], log_file("types"), "the type check")
        build_image.run(["mypy", *tool], log_file("types-cli"), "the type check of kubectl pliant")
        inside = ["env", "MYPYPATH=tests/cluster", "mypy", *ours]
        build_image.run(inside, log_file("types-dev"), "the type check of ./dev")
        inside = ["env", "MYPYPATH=tests/e2e", "mypy", *browser]
        build_image.run(inside, log_file("types-browser"), "the type check of the tests' browser")
