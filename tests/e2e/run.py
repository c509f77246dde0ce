#!/usr/bin/env python3
"""The end-to-end test: the demo's story and more, on a running cluster. `./dev test e2e` runs this.

The last line is `N passed, N failed`.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from story import (
    added_node,
    bad_connection,
    bad_jobs,
    browsed,
    by_speed,
    churn,
    control_faults,
    deadly_writes,
    ending,
    examples,
    faults,
    filling,
    full_volume,
    kills,
    maintenance,
    pages,
    plot,
    ranks,
    slices,
    survivor,
    teams,
    tenants,
    tutorial,
    upgrade,
    where,
    yielding,
)
from story.checks import Check
from story.errors import StoryError
from story.screen import Screen
from story.stage import Stage
from story.told import Told

Moment = Callable[[Stage, Screen], list[Check]]


def demo(stage: Stage, screen: Screen) -> list[Check]:
    play_it = browsed.play if stage.chromium else plot.play
    return shown(play_it(stage, screen), screen)


def two_teams(stage: Stage, screen: Screen) -> list[Check]:
    return shown(teams.play(stage, screen), screen)


def story_with_kills(stage: Stage, screen: Screen) -> list[Check]:
    return shown(kills.play(stage, screen), screen)


def shown(told: Told, screen: Screen) -> list[Check]:
    """Shows the end of a story. Returns its checks."""
    ending.show(told, screen)
    return told.checks


_TUTORIAL = "two trainings of the founding tutorial share the GPUs"

# For the local cluster only: they need access to the nodes, remove the operator's replicas, or make queues.
_LOCAL_MOMENTS: dict[str, Moment] = {
    "two teams, a loan and its return": two_teams,
    "late, cut off and refused by the API server": bad_connection.play,
    "faults in mid step": faults.play,
    "faults of operator, API server and nodes": control_faults.play,
    "a checkpoint volume that is full for a while": full_volume.play,
    "a learner evicted, a node drained": maintenance.play,
}
_MOMENTS: dict[str, Moment] = {
    "the story with a PyTorch script, the operator killed after each step": story_with_kills,
    "a PyTorch script is resized, and loses a learner": examples.player(examples.CHAR_TRANSFORMER),
    "a Keras script is resized, and loses a learner": examples.player(examples.KERAS_CNN),
    "suspended, then all learners gone at once": survivor.play,
    "learners of two GPUs": ranks.play,
    "bad jobs, and deletion": bad_jobs.play,
}
_LONG_LOCAL_MOMENTS: dict[str, Moment] = {
    "a node autoscaler adds a node for a job that waits": added_node.play,
    "ordinary pods preempt trainings that only fill": filling.play,
    "GPUs go where they speed something up": by_speed.play,
    "a pool yields to a pod that waits": yielding.play,
    "a pool shares another resource": slices.play,
    "the commands of the documents": pages.play,
    "what one tenant does costs another nothing": tenants.play,
    f"an upgrade from {upgrade.FROM} while jobs train": upgrade.play,
    "an operator that dies before and after each of its writes": deadly_writes.play,
}
_LONG_MOMENTS: dict[str, Moment] = {
    "the demo": demo,
    "ResNet-18 is resized, and loses a learner": examples.player(examples.RESNET18),
    "a script for IBM's product is resized, and loses a learner": examples.player(examples.IBM_STYLE),
    _TUTORIAL: tutorial.player(tutorial.MADE_UP),
}


def play(name: str, moment: Moment, stage: Stage, screen: Screen, results: Path | None = None) -> list[Check]:
    screen.say(f"=== {name}", "bold")
    begin = time.monotonic()
    try:
        found = moment(stage, screen)
    except StoryError as error:
        found = [Check("it comes about", (str(error),))]
    screen.close_table()
    seconds = time.monotonic() - begin
    screen.say(f"=== {name}: {seconds:.0f} s", "bold")
    for check in found:
        screen.say(f"{'ok  ' if check.holds else 'FAIL'} {name}: {check.name}", "green" if check.holds else "red")
        for problem in check.problems:
            screen.say(f"       {problem}")
    if results:
        write_result(results, name, seconds, found)
    return found


def write_result(file: Path, name: str, seconds: float, found: list[Check]) -> None:
    """Appends a line of JSON to the file."""
    passed = sum(check.holds for check in found)
    result = {"name": name, "seconds": round(seconds, 1), "passed": passed, "failed": len(found) - passed}
    with file.open("a") as out:
        out.write(json.dumps(result) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev test e2e", description=__doc__)
    parser.add_argument("--all", action="store_true", help="also play the long moments")
    parser.add_argument(
        "--churn-minutes", metavar="N", type=float, default=5.0, help="with --all: duration of the churn; default: 5"
    )
    parser.add_argument("--only", metavar="WORD", default="", help="only moments whose name contains this")
    parser.add_argument("--skip", metavar="NAME", action="append", default=[], help="leave out the moment with this name")
    parser.add_argument("--results", metavar="FILE", type=Path, help="append a line of JSON after each moment")
    where.add_arguments(parser)
    arguments = parser.parse_args()
    screen = Screen(sys.stdout)
    moments = _MOMENTS | (_LONG_MOMENTS if arguments.all else {})
    if arguments.cluster == where.LOCAL:
        moments |= _LOCAL_MOMENTS
        if arguments.all:
            minutes = arguments.churn_minutes
            moments |= _LONG_LOCAL_MOMENTS
            if folder := os.environ.get("PLIANT_CIFAR10"):
                moments["ResNet-18 on CIFAR-10 is resized, and loses a learner"] = examples.player(examples.on_cifar10(folder))
                moments[_TUTORIAL] = tutorial.player(tutorial.on_cifar10(folder))
            moments[f"jobs come and go for {minutes:g} min"] = lambda *scene: churn.play(*scene, minutes)
    else:
        screen.say(f"not on the current cluster, whose nodes are not ours: {', '.join(_LOCAL_MOMENTS)}", "yellow")
    found = []
    try:
        stage = where.stage_of(arguments)
        for name, moment in moments.items():
            if arguments.only in name and name not in arguments.skip:
                found += play(name, moment, stage, screen, arguments.results)
        stage.clear()
    except StoryError as error:
        found.append(Check("the stage", (str(error),)))
        screen.say(str(error), "red")
    failed = sum(not check.holds for check in found)
    print(f"{len(found) - failed} passed, {failed} failed", flush=True)
    return 1 if failed or not (found or arguments.skip) else 0


if __name__ == "__main__":
    sys.exit(main())
