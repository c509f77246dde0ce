"""Measures the time of a step of a Trainer of transformers: alone, and of two learners, compared with a plain Trainer and
with two processes of DistributedDataParallel. `./dev bench python` runs it in the image that has transformers.

trainer_rate.py [--json FILE] [--quick]: pairs of new processes, one after the other.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import rows

sys.path.append(str(Path(__file__).parents[2] / "scenario"))
from harness import Job

_PROGRAM = [sys.executable, "-B", str(Path(__file__).with_name("trainer_program.py"))]
_PAIRS = 5
_STEPS = 24
_WARM_UP = 4
_ACCUMULATION = 8
_OVERHEAD = rows.Aim("ratio", 0.97)  # at most 3 % slower


def measure(*, quick: bool) -> Iterator[rows.Row]:
    pairs = 1 if quick else _PAIRS
    for name, ours, rival, aim, note in (
        ("trainer/1", _alone("pliant"), _alone("plain"), _OVERHEAD, "the rival accumulates"),
        ("trainer/2", _two_learners, _two_processes, None, "under TLS, as in a job; the rival's is plain"),
    ):
        times: dict[str, list[float]] = {"ours": [], "rival": []}
        for _ in range(pairs):
            times["rival"].append(1000 * rival())
            times["ours"].append(1000 * ours())
        row = rows.measured_row(
            name, "ms", rows.Measured.of(times["ours"]), rows.Measured.of(times["rival"]), aim=aim, note=note
        )
        print(rows.line(row), flush=True)
        yield row


def _step(output: str) -> float:
    """The median of the seconds of a step."""
    return statistics.median(json.loads(output.strip().splitlines()[-1])[_WARM_UP:])


def _start(kind: str, accumulation: int, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    command = [*_PROGRAM, kind, str(accumulation), str(_STEPS)]
    return subprocess.Popen(
        command, env={**os.environ, "OMP_NUM_THREADS": "1", **environment}, stdout=subprocess.PIPE, text=True
    )


def _ended(process: subprocess.Popen[str]) -> float:
    output, _ = process.communicate(timeout=300)
    if process.returncode:
        raise RuntimeError(f"{process.args} ended with {process.returncode}")
    return _step(output)


def _alone(kind: str):
    return lambda: _ended(_start(kind, _ACCUMULATION, {}))


def _two_processes() -> float:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "USE_LIBUV": "0"}
    processes = [
        _start("plain", _ACCUMULATION // 2, {**common, "RANK": rank, "LOCAL_RANK": rank}) for rank in "01"
    ]
    return max([_ended(process) for process in processes])


def _two_learners() -> float:
    job = Job(
        program=[*_PROGRAM, "pliant", str(_ACCUMULATION), str(_STEPS)],
        environment={"PLIANT_PACE_FILE": "", "OMP_NUM_THREADS": "1", "PLIANT_CHECKPOINT_EVERY_STEPS": "0"},
    )
    try:
        job.start_coordinator()
        learners = job.start_learners([0, 1])
        job.plan(learners)
        for learner in learners:
            if learner.exit_code():
                raise RuntimeError(learner.log.read_text())
        job.clean = True
        steps = [each for each in learners[0].log.read_text().splitlines() if each.startswith("[")]
        return _step(steps[-1])
    finally:
        job.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="where the rows go")
    parser.add_argument("--quick", action="store_true", help="one pair")
    arguments = parser.parse_args()
    found = list(measure(quick=arguments.quick))
    if arguments.json:
        rows.write(found, arguments.json)


if __name__ == "__main__":
    main()
