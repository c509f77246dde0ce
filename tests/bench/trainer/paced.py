"""Starts processes that take steps on request: one alone, or several together."""

import contextlib
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import trainers
from elastic_job import ElasticJob
from pacing import Pacer

_HERE = Path(__file__).parent


def start_alone(
    stack: ExitStack,
    scratch: Path,
    name: str,
    program: str,
    model: str,
    *options: str,
    core: int | None = 0,
    **environment: str,
) -> Pacer:
    pacer = _pacer(stack, scratch, name, 1)
    _start(stack, scratch, name, 0, core, [program, model], list(options), environment)
    return pacer


def start_ddp(stack: ExitStack, scratch: Path, name: str, model: str, *options: str) -> Pacer:
    pacer = _pacer(stack, scratch, name, 2)
    for rank in range(2):
        group = [f"--rendezvous={scratch / name}.ranks", f"--rank={rank}", "--world=2"]
        program = ["torch_learner.py", model]
        _start(stack, scratch, name, rank, rank, program, [*options, *group], {})
    return pacer


def start_pliant(
    stack: ExitStack, scratch: Path, name: str, model: str, **environment: str
) -> Pacer:
    """Two learners of a job."""
    pacer = _pacer(stack, scratch, name, 2)
    job = ElasticJob(model, [f"--paced={_socket(scratch, name)}"], environment)
    stack.enter_context(job).begin(2)
    return pacer


def _socket(scratch: Path, name: str) -> Path:
    return scratch / f"{name}.sock"


def _pacer(stack: ExitStack, scratch: Path, name: str, count: int) -> Pacer:
    return stack.enter_context(contextlib.closing(Pacer(_socket(scratch, name), count)))


def _start(
    stack: ExitStack,
    scratch: Path,
    name: str,
    rank: int,
    core: int | None,
    program: list[str],
    options: list[str],
    environment: dict[str, str],
) -> None:
    log = stack.enter_context((scratch / f"{name}-{rank}.log").open("w"))
    script, model = program
    own = [] if core is None else [f"--core={trainers.core_of(core)}"]
    process = subprocess.Popen(
        [
            sys.executable, "-B", str(_HERE / script), model, str(scratch / f"{name}-{rank}"),
            f"--paced={_socket(scratch, name)}", *own, *options,
        ],
        env=trainers.environment(
            PLIANT_CHECKPOINT_DIR=str(scratch / f"{name}-checkpoints"), **environment
        ),
        stdout=log,
        stderr=log,
    )  # fmt: skip
    stack.callback(_end, process)


def _end(process: subprocess.Popen) -> None:
    """Kills a process that is no longer needed."""
    process.kill()
    process.wait()
