"""Measures what the gradient noise scale costs: every 16th step of a learner is measured, and is
compared with the steps around it, in processor time of all threads of the process.

The control compares the steps in the middle between two measured ones in the same way: what it
shows is chance.
"""

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import commits
from paced import start_alone
from rows import Aim, Measured, Row, line, measured_row

_EVERY = 16  # steps
_MODELS = ("transformer", "resnet18")
_QUICK_MODELS = ("transformer",)
_TURNS = {"transformer": 40, "resnet18": 12}  # measured steps
_AIM = Aim("value", 0.3)


def measure(binaries: Path, *, quick: bool) -> Iterator[Row]:
    del binaries
    for model in _QUICK_MODELS if quick else _MODELS:
        yield from _of_model(model, 2 if quick else _TURNS[model])


def _of_model(model: str, turns: int) -> Iterator[Row]:
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pliant-bench-")))
        pacer = start_alone(stack, scratch, "pliant", "pliant_learner.py", model)
        pacer.steps(_EVERY * (turns + 1))
        used = {
            commit.step - 1: commit.used * 1000
            for commit in commits.read(scratch / "pliant-0")
            if commit.used is not None
        }
    step = statistics.median(used.values())
    for name, place, aim in (("measured", 0, _AIM), ("control", _EVERY // 2, None)):
        extra = [100 * each / step / _EVERY for each in extras(used, place)]
        row = measured_row(
            f"noise-scale/{model}/{name}", "% of a step", Measured.of(extra), aim=aim,
            note=f"on average over all steps; a step takes {step:.1f} ms of a processor",
        )  # fmt: skip
        print(line(row), flush=True)
        yield row


def extras(used: dict[int, float], place: int) -> Sequence[float]:
    """By how much each step at this place of 16 took longer than the median of those around it that
    are not measured. The first 16 steps are left out: they warm up."""
    found = []
    for number in sorted(used):
        around = range(number - _EVERY // 2 + 1, number + _EVERY // 2)
        others = [each for each in around if each != number and each % _EVERY != 0]
        if number < _EVERY or number % _EVERY != place or any(each not in used for each in others):
            continue
        found.append(used[number] - statistics.median(used[each] for each in others))
    return found
