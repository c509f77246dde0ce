"""The trainer's benches, compared with its rivals: `./dev bench trainer` runs this in the build
image.

run.py BINARIES [--json FILE] [--quick] [--only NAME ...] [--cifar10 FOLDER]
"""

import argparse
import importlib
import os
import sys
import time
import traceback
from pathlib import Path

import rows

# Modules that measure. The requested ones are imported after the environment is set.
_BENCHES = {
    "all-reduce": "all_reduce",
    "plan": "plan",
    "step": "step_rate",
    "package": "package",
    "registered": "registered",
    "resize": "resize",
    "kill": "kill",
    "checkpoint": "checkpoint",
    "noise-scale": "noise",
    "goodput": "goodput",
    "batch": "accuracy",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binaries", type=Path, help="the folder of the built programs")
    parser.add_argument("--json", type=Path, help="where the rows go")
    parser.add_argument("--quick", action="store_true", help="fewer cases and repeats, few rivals")
    parser.add_argument("--only", nargs="+", choices=_BENCHES, metavar="NAME", default=[*_BENCHES])
    parser.add_argument("--cifar10", type=Path, help="images for the CNN; else they are made up")
    arguments = parser.parse_args()
    os.environ["PLIANT_BIN"] = str(arguments.binaries.resolve())
    if arguments.cifar10:
        os.environ["PLIANT_BENCH_CIFAR10"] = str(arguments.cifar10.resolve())
    found: list[rows.Row] = []
    failed = 0

    def keep() -> None:
        if arguments.json:
            rows.write(found, arguments.json)

    keep()
    for name in arguments.only:
        began = time.monotonic()
        print(f"--- {name}", flush=True)
        # The results so far are kept even if a later bench fails.
        try:
            bench = importlib.import_module(_BENCHES[name])
            for row in bench.measure(arguments.binaries, quick=arguments.quick):
                found.append(row)
                keep()
        except (Exception, SystemExit):
            traceback.print_exc()
            failed += 1
        print(f"--- {name}: {time.monotonic() - began:.0f} s", flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
