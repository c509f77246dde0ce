#!/usr/bin/env python3
"""Two trainings share eight GPUs and end with the results of undisturbed runs. `./dev demo` runs this."""

import argparse
import json
import sys
import time
from pathlib import Path

from story import dashboards, ending, plot, teams, where
from story.errors import StoryError
from story.monitoring import Monitoring
from story.screen import Screen
from story.stage import Stage
from story.told import Told


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "--teams",
        action="store_true",
        help="play another story: two teams with a queue each, a loan of GPUs between them and its return",
    )
    parser.add_argument(
        "--json", metavar="FILE", type=Path, help="also write the measurements and checks to this file"
    )
    parser.add_argument(
        "--html", metavar="FILE", type=Path, help="also write the chart of GPU slots to this file, as a web page"
    )
    parser.add_argument("--svg", metavar="FILE", type=Path, help="also write the chart to this file, as SVG")
    parser.add_argument(
        "--dashboards",
        action="store_true",
        help="run a Prometheus in the cluster, and at the end every query of the chart's Grafana dashboard",
    )
    where.add_arguments(parser)
    arguments = parser.parse_args()
    if arguments.dashboards and arguments.cluster == where.CURRENT:
        parser.error("--dashboards runs a Prometheus in the local cluster only: the current one has its own")
    if arguments.teams and arguments.cluster == where.CURRENT:
        parser.error("--teams makes queues and namespaces in the local cluster only: the current one has those of its users")
    screen = Screen(sys.stdout)
    try:
        told = tell(
            where.stage_of(arguments), screen, with_teams=arguments.teams, with_dashboards=arguments.dashboards
        )
    except StoryError as error:
        screen.close_table()
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted", file=sys.stderr)
        return 130
    if arguments.json:
        arguments.json.write_text(json.dumps(ending.to_json(told), indent=2) + "\n")
    if arguments.html:
        arguments.html.write_text(ending.to_html(told))
    if arguments.svg:
        arguments.svg.write_text(ending.to_svg(told))
    if not told.held:
        failed = [check.name for check in told.checks if not check.holds]
        print(f"demo: does not hold: {'; '.join(failed)}", file=sys.stderr)
        return 1
    screen.say("everything holds", "bold", "green")
    return 0


def tell(stage: Stage, screen: Screen, *, with_teams: bool, with_dashboards: bool) -> Told:
    play = teams.play if with_teams else plot.play
    if not with_dashboards:
        told = play(stage, screen)
        ending.show(told, screen)
        return told
    screen.say("starting Prometheus")
    monitoring = Monitoring(stage)
    begin = time.time()
    told = play(stage, screen)
    ending.show(told, screen)
    answers = monitoring.answers(begin, time.time())
    ending.show_dashboard(answers, screen)
    for check in (dashboards.check(answers), *([teams.check_dashboard(answers)] if with_teams else [])):
        told.checks.append(check)
        ending.show_check(check, screen)
    return told


if __name__ == "__main__":
    sys.exit(main())
