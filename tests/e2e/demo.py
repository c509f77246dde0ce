#!/usr/bin/env python3
"""Two trainings share eight GPUs and end with the results of undisturbed runs. `./dev demo` runs this."""

import argparse
import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path

from story import dashboards, ending, operator_page, plot, teams, where
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
    parser.add_argument("--live", action="store_true", help="open the operator's page while the story is played")
    parser.add_argument(
        "--html", metavar="FILE", type=Path, help="also write the operator's page with the story to this file"
    )
    parser.add_argument("--svg", metavar="FILE", type=Path, help="also write its picture of the GPUs to this file, as SVG")
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
        stage = where.stage_of(arguments)
        with contextlib.ExitStack() as page:
            if arguments.live:
                address = page.enter_context(operator_page.opened(stage.operator_kubectl))
                screen.say(f"the operator's page, until the story ends: {address}", "bold")
            told = tell(stage, screen, with_teams=arguments.teams, with_dashboards=arguments.dashboards)
        keep_page(stage, told, arguments.html, arguments.svg)
    except StoryError as error:
        screen.close_table()
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted", file=sys.stderr)
        return 130
    if arguments.json:
        arguments.json.write_text(json.dumps(ending.to_json(told), indent=2) + "\n")
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


def keep_page(stage: Stage, told: Told, html: Path | None, svg: Path | None) -> None:
    """Writes the operator's page since the story's beginning, and the picture of the story alone."""
    if html is None and svg is None:
        return
    begin, end = told.worlds[0].time, told.worlds[-1].time
    with tempfile.TemporaryDirectory() as folder:
        page = html.resolve() if html else Path(folder) / "page.html"
        operator_page.save(stage.operator_kubectl, page, begin)
        if svg:
            document = operator_page.saved_document(page.read_text())
            svg.write_text(operator_page.picture(operator_page.part_of(document, begin, end)))


if __name__ == "__main__":
    sys.exit(main())
