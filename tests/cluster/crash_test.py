"""Kills ./dev up repeatedly at random moments: the next one must work, and ./dev down must leave
nothing behind.

It takes long and ends a running cluster, so only ./dev test all runs it. It prints the seed; --seed
repeats the same moments.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time

from pliantdev import cluster
from pliantdev.settings import REPO

_DEV = REPO / "dev"
_LONGEST_SECONDS = 15.0  # time to start a cluster on an idle machine


def _start_and_kill(seconds: float) -> None:
    up = subprocess.Popen(
        [_DEV, "up", "--cluster-only"], start_new_session=True, stderr=subprocess.DEVNULL
    )
    time.sleep(seconds)
    # Kills its children, too, as when a terminal is closed. Daemons have their own sessions and
    # stay.
    os.killpg(up.pid, signal.SIGKILL)
    up.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    random_moment = random.Random(arguments.seed)
    failures = 0
    for number in range(arguments.rounds):
        seconds = random_moment.uniform(0.1, _LONGEST_SECONDS)
        _start_and_kill(seconds)
        # The next command is alternately `up` and `down`: both must work after the kill.
        again = (
            number % 2 == 0
            and subprocess.run([_DEV, "up", "--cluster-only"], check=False).returncode
        )
        subprocess.run([_DEV, "down"], check=True)
        left = cluster.leftovers()
        failures += bool(again or left)
        print(
            f"killed after {seconds:.1f} s: {'up fails' if again else 'fine'}",
            *left,
            sep="\n  ",
            flush=True,
        )
    print(f"{arguments.rounds - failures} passed, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
