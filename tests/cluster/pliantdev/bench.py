"""Benchmarks of Pliant and of comparable software, in the build image on a release build."""

import contextlib
import json
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from . import build_image, control_plane, ctest, gpu_pack
from .daemon import Daemon
from .errors import DevError
from .images import engine
from .product import build_hugging_face_test_image, build_python_image, compile_preset
from .progress import log_file, phase
from .python_image_tests import in_image, run_script

BENCHES = ("operator", "planner", "trainer", "python", "reach", "simulator", "gpu")

_BINARIES = "/src/build/release/bin"
# In the build directory, which the host shares.
_RESULT = "release/bench.json"
_PLOT = "release/bench.svg"
_CPU_SECONDS = "release/cpu-seconds"
# Paths in the image.
_CIFAR10 = "/cifar10"
_SCRIPTS = "/scripts"


@dataclass(frozen=True)
class Choices:
    """Options of the benches."""

    json: Path | None = None
    quick: bool = False
    only: Sequence[str] = ()
    cifar10: Path | None = None
    churn_seconds: int | None = None
    svg: Path | None = None
    scripts: Path | None = None


def planner(choices: Choices) -> int:
    compile_preset("release", "planner_bench")
    command = [f"{_BINARIES}/planner_bench", "--json", f"/src/build/{_RESULT}"]
    command += ["--svg", f"/src/build/{_PLOT}"] if choices.svg else []
    command += ["--plans", "100"] if choices.quick else []
    status = _run("planner", command)
    for result, wanted in ((_RESULT, choices.json), (_PLOT, choices.svg)):
        if status == 0 and wanted:
            shutil.copyfile(build_image.build_directory() / result, wanted)
    return status


def simulator(choices: Choices) -> int:
    """The worth of planning by speed, then the whole table of the founding paper."""
    compile_preset("release", "simulator_bench", "jsa_bench")
    rows: list[object] = []
    result = build_image.build_directory() / _RESULT
    for program in ("simulator_bench", "jsa_bench"):
        command = [f"{_BINARIES}/{program}", "--json", f"/src/build/{_RESULT}"]
        command += ["--quick"] if choices.quick and program == "simulator_bench" else []
        if status := _run(program.replace("_", "-"), command):
            return status
        rows += json.loads(result.read_text())
    if choices.json:
        choices.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


# The parts of the GPU pack's benches.
_OF_GPU = ("kernels", "steps")


def gpu(choices: Choices) -> int:
    """The GPU pack's benches, on this machine."""
    for name in choices.only:
        if name not in _OF_GPU:
            raise DevError(f"there is no bench {name} for GPUs", remedy=f"use {' or '.join(_OF_GPU)}")
    if not gpu_pack.gpu_at_hand():
        raise DevError(
            "this machine has no NVIDIA GPU with its driver",
            remedy="./dev gpu pack makes build/gpu-pack: carry it to one, and run there "
            "build/gpu-pack/run bench kernels --json FILE",
        )
    gpu_pack.make(gpu_pack.FOLDER)
    rows: list[object] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in choices.only or _OF_GPU:
            file = Path(folder) / f"{name}.json"
            command = [str(gpu_pack.FOLDER / "run"), "bench", name, "--json", str(file)]
            if status := subprocess.run(command, check=False).returncode:
                return status
            rows += json.loads(file.read_text())
    if choices.json:
        choices.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


# The trainer's benches of the Python package, and that of a Trainer, which needs an image of its own.
_OF_PYTHON = ("step", "package", "registered")
_TRAINER = "transformers"


def python(choices: Choices) -> int:
    names = choices.only or (*_OF_PYTHON, _TRAINER)
    in_build_image = [name for name in names if name != _TRAINER]
    if in_build_image and (status := trainer(replace(choices, only=in_build_image))):
        return status
    return _transformers(choices, added=bool(in_build_image)) if _TRAINER in names else 0


def _transformers(choices: Choices, *, added: bool) -> int:
    """`added`: to the rows that are written already."""
    compile_preset("release", "pliant", "pliant-coordinator")
    image = build_hugging_face_test_image()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)  # the image's user writes there
        command = ["python3", "-B", "-W", "ignore", "/src/tests/bench/trainer/trainer_rate.py"]
        command += ["--json", "/result/rows.json", *(["--quick"] if choices.quick else [])]
        inside = in_image(command, {"HF_HUB_OFFLINE": "1"}, {Path(folder): "/result"})
        log = log_file("bench-transformers")
        with phase(f"Running the bench of a Trainer (log: {log})"), log.open("w") as errors:
            command = engine().command_to_run(image, inside)
            status = subprocess.run(command, stderr=errors, check=False).returncode
        if status == 0 and choices.json:
            rows = json.loads(choices.json.read_text()) if added else []
            rows += json.loads(Path(folder, "rows.json").read_text())
            choices.json.write_text(json.dumps(rows, indent=1) + "\n")
    return status


def reach(choices: Choices) -> int:
    """Public scripts with few added lines: whether they run elastic, with equal bits."""
    compile_preset("release", "pliant", "pliant-coordinator")
    images = {
        "reach": build_hugging_face_test_image(),
        "reach of Keras": build_python_image("learner-tensorflow"),
    }
    environment = {"PLIANT_REACH_SCRIPTS": _SCRIPTS if choices.scripts else "fetch"}
    mounts = {choices.scripts.resolve(): _SCRIPTS} if choices.scripts else {}
    passed, found = True, []
    for name, image in images.items():
        passed &= run_script(name, image, "reach/test_reach.py", environment, mounts)
        log = log_file(f"test-{name.replace(' ', '-').lower()}-test_reach").read_text()
        rows = re.findall(r'(\{"script": .*\})$', log, re.MULTILINE)
        found += [json.loads(row) for row in rows]
    print(f"{'script':<50} {'added lines':>11} {'seconds':>7}  bits")
    for row in found:
        print(f"{row['script']:<50} {row['added lines']:>11} {row['seconds']:>7}  {row['bits']}")
    if choices.json:
        choices.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if passed else 1


def trainer(choices: Choices) -> int:
    compile_preset("release", "trainer_bench")
    command = ["python3", "-B", "/src/tests/bench/trainer/run.py", _BINARIES]
    command += ["--json", f"/src/build/{_RESULT}"]
    command += ["--quick"] if choices.quick else []
    command += ["--only", *choices.only] if choices.only else []
    mounts = {}
    if choices.cifar10:
        mounts[choices.cifar10.resolve()] = _CIFAR10
        command += ["--cifar10", _CIFAR10]
    result = build_image.build_directory() / _RESULT
    result.unlink(missing_ok=True)
    status = _run("trainer", command, mounts)
    # Rows are written as they are measured: those of a failed run are valid, too.
    if choices.json and result.exists():
        shutil.copyfile(result, choices.json)
    return status


def operator(choices: Choices) -> int:
    """Runs the timeline's bench, then the operator's against its own etcd and API server, on
    loopback."""
    compile_preset("release", "operator_bench", "timeline_bench")
    result = build_image.build_directory() / _RESULT
    timeline = [f"{_BINARIES}/timeline_bench", "--json", f"/src/build/{_RESULT}"]
    timeline += ["--seconds", "5"] if choices.quick else []
    if status := _run("timeline", timeline):
        return status
    rows = json.loads(result.read_text())
    command = [f"{_BINARIES}/operator_bench", "--json", f"/src/build/{_RESULT}"]
    command += ["--quick"] if choices.quick else []
    if choices.churn_seconds:
        command += ["--churn-seconds", str(choices.churn_seconds)]
    command += ["--cpu-seconds", f"/src/build/{_CPU_SECONDS}"]
    with (
        ctest.api_server() as (kubeconfig, mounts),
        _cpu_seconds(control_plane.daemons(kubeconfig.parent)),
    ):
        environment = {"PLIANT_TEST_KUBECONFIG": str(kubeconfig)}
        status = _run("operator", command, mounts, environment)
    if status == 0 and choices.json:
        rows += json.loads(result.read_text())
        choices.json.write_text(json.dumps(rows, indent=1) + "\n")
    return status


@contextlib.contextmanager
def _cpu_seconds(daemons: Sequence[Daemon]) -> Iterator[None]:
    """Meanwhile writes the processor time of each daemon to a file: programs in the build image
    cannot see these processes."""
    file = build_image.build_directory() / _CPU_SECONDS
    over = threading.Event()

    def keep_up() -> None:
        scratch = file.with_suffix(".new")
        while not over.wait(0.2):
            seconds = {daemon.name: daemon.cpu_seconds() for daemon in daemons if daemon.pid()}
            scratch.write_text("".join(f"{name} {used}\n" for name, used in seconds.items()))
            scratch.replace(file)

    thread = threading.Thread(target=keep_up)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        file.unlink(missing_ok=True)


def _run(
    name: str,
    inside: list[str],
    mounts: Mapping[Path, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Runs a bench. Its output goes to the terminal, its errors to a log."""
    log = log_file(f"bench-{name}")
    with phase(f"Running the {name} bench (log: {log})"), log.open("w") as errors:
        command = build_image.command(inside, environment=environment, mounts=mounts)
        return subprocess.run(command, stderr=errors, check=False).returncode
