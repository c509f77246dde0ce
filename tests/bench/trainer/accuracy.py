"""Compares what a model has learned with a batch that grows (mode FromState) and with a constant
one: five seeds each, the same number of epochs. The aim: the means differ by less than twice the
standard error of their difference."""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rows import Aim, Measured, Row, line, measured_row
from trainers import environment

_PROGRAM = Path(__file__).with_name("accuracy_program.py")
_MODELS = ("cnn", "characters")
_MAX_BATCH = 256
_AIM = Aim("value", 2.0)


@dataclass(frozen=True)
class Outcome:
    accuracy: float
    loss: float
    steps: int
    batch: int  # the largest


def measure(binaries: Path, *, quick: bool) -> Iterator[Row]:
    del binaries
    for model in _MODELS[:1] if quick else _MODELS:
        yield from _of_model(model, range(2 if quick else 5), {"EPOCHS": "3"} if quick else {})


def _of_model(model: str, seeds: Sequence[int], more: dict[str, str]) -> Iterator[Row]:
    grows = {"PLIANT_BATCH_MODE": "FromState", "PLIANT_MAX_BATCH_SIZE": str(_MAX_BATCH)}
    constant, grown = [], []
    for seed in seeds:
        constant.append(_train(model, seed, more))
        grown.append(_train(model, seed, more | grows))
    batches = sorted(each.batch for each in grown)
    for figure in ("accuracy", "loss"):
        ours = [getattr(each, figure) for each in grown]
        theirs = [getattr(each, figure) for each in constant]
        yield _shown(
            measured_row(
                f"batch/{model}/{figure}", "", Measured.of(ours), Measured.of(theirs),
                note=f"means {statistics.mean(ours):.4f} and {statistics.mean(theirs):.4f}",
            )  # fmt: skip
        )
        yield _shown(
            measured_row(
                f"batch/{model}/{figure}/difference", "standard errors",
                Measured.of([difference(ours, theirs)]), aim=_AIM,
                note=f"batches grew from 16 to {batches[0]} to {batches[-1]}",
            )  # fmt: skip
        )
    yield _shown(
        measured_row(
            f"batch/{model}/steps", "steps", Measured.of([each.steps for each in grown]),
            Measured.of([each.steps for each in constant]),
        )  # fmt: skip
    )


def difference(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Of the means, in standard errors of the difference; 0 if both are the same."""
    gap = abs(statistics.mean(ours) - statistics.mean(theirs))
    error = (statistics.variance(ours) / len(ours) + statistics.variance(theirs) / len(theirs)) ** 0.5
    return gap / error if error > 0 else (0.0 if gap == 0 else float("inf"))


def _train(model: str, seed: int, more: dict[str, str]) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="pliant-bench-") as folder:
        of_process = environment(PLIANT_CHECKPOINT_DIR=folder, **more)
        command = [sys.executable, "-B", str(_PROGRAM), model, str(seed)]
        ended = subprocess.run(
            command, env=of_process, capture_output=True, text=True, timeout=1200, check=False
        )
    if ended.returncode != 0:
        raise RuntimeError(f"{model}, seed {seed}: {ended.stderr[-2000:]}")
    return Outcome(**json.loads(ended.stdout.splitlines()[-1]))


def _shown(row: Row) -> Row:
    print(line(row), flush=True)
    return row
