"""Measures how long a learner takes to plan its part of the sum of gradients when the members have changed."""

import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from rows import Aim, Measured, Row, line, measured_row

_REPEATS = 60
_QUICK_REPEATS = 5
# Members stand still meanwhile. A plan is made once for each membership.
_AIM = Aim("value", 50.0)


def measure(binaries: Path, *, quick: bool) -> Iterator[Row]:
    repeats = _QUICK_REPEATS if quick else _REPEATS
    ran = subprocess.run([binaries / "plan_bench", str(repeats)], capture_output=True, text=True, check=True)
    milliseconds: dict[str, list[float]] = defaultdict(list)
    for answer in ran.stdout.splitlines():
        case, part, seconds = answer.split()
        milliseconds[f"plan/{case}/{part}"].append(float(seconds) * 1e3)
    for name, values in milliseconds.items():
        row = measured_row(name, "ms", Measured.of(values), aim=_AIM if "4096" in name else None)
        print(line(row), flush=True)
        yield row
