"""Measures the cost of registered state: an average of a million parameters, kept by AveragedModel,
compared with the same training without it, and with one that is not registered.

Each process has one thread, on the same core. They take turns, a few steps at a time.
"""

import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from paced import start_alone
from rows import Aim, Measured, Row, line, measured_row

_ROUNDS = 40
_STEPS = 20  # per turn
_WARM_UP = 20
_AIM = Aim("ratio", 1 / 1.1)  # at most 10 % slower than without an average


def measure(binaries: Path, *, quick: bool) -> Iterator[Row]:
    del binaries
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pliant-bench-")))
        pacers = {
            name: start_alone(stack, scratch, name, "registered_learner.py", name)
            for name in ("none", "computed", "registered")
        }
        times = defaultdict(list)
        for pacer in pacers.values():
            pacer.steps(_WARM_UP)
        for _ in range(2 if quick else _ROUNDS):
            for name, pacer in pacers.items():
                times[name].append(statistics.mean(pacer.steps(_STEPS)) * 1000)
    measured = {name: Measured.of(found) for name, found in times.items()}
    for rival, aim, note in (
        ("none", _AIM, "the rival has no average"),
        ("computed", None, "the rival's average is not registered"),
    ):
        row = measured_row(
            f"registered/1M/{rival}", "ms", measured["registered"], measured[rival], aim=aim, note=note
        )
        print(line(row), flush=True)
        yield row
