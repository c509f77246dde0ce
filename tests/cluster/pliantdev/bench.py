"""Figures, measured in the build image on a release build, beside those of rivals."""

import shutil
import subprocess
from pathlib import Path

from . import build_image
from .product import compile_preset
from .progress import log_file, phase

BENCHES = ("planner", "trainer")

_BINARIES = "/src/build/release/bin"
# The build directory, which the host sees too.
_RESULT = "release/bench.json"


def planner() -> int:
    compile_preset("release", "planner_bench")
    return _run("planner", [f"{_BINARIES}/planner_bench"])


def trainer(json: Path | None, *, quick: bool) -> int:
    compile_preset("release", "trainer_bench")
    command = ["python3", "-B", "/src/tests/bench/trainer/run.py", _BINARIES]
    command += ["--json", f"/src/build/{_RESULT}"]
    status = _run("trainer", command + (["--quick"] if quick else []))
    if status == 0 and json:
        shutil.copyfile(build_image.build_directory() / _RESULT, json)
    return status


def _run(name: str, inside: list[str]) -> int:
    """Its lines go to the terminal; what goes wrong, to a log."""
    log = log_file(f"bench-{name}")
    with phase(f"Running the {name} bench (log: {log})"), log.open("w") as errors:
        return subprocess.run(build_image.command(inside), stderr=errors, check=False).returncode
