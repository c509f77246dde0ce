"""The trainer's figures, beside those of its rivals: what ./dev bench trainer runs in the build
image.

run.py BINARIES [--json FILE] [--quick]
"""

import argparse
from pathlib import Path

import all_reduce
import rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binaries", type=Path)
    parser.add_argument("--json", type=Path, help="where the rows go")
    parser.add_argument("--quick", action="store_true", help="fewer repeats, two processes only")
    arguments = parser.parse_args()
    found = list(all_reduce.measure(arguments.binaries, quick=arguments.quick))
    if arguments.json:
        rows.write(found, arguments.json)


if __name__ == "__main__":
    main()
