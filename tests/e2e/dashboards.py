#!/usr/bin/env python3
"""Grafana dashboards on the command line.

check: sends every query to a Prometheus, prints the last values, and fails if one returns no data.
rules: writes the queries as recording rules, for `promtool check rules`.
"""

import argparse
import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from story import dashboards, table
from story.errors import StoryError


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = parser.add_subparsers(dest="word", required=True)
    check = words.add_parser("check")
    check.add_argument("dashboard", type=Path)
    check.add_argument("--prometheus", metavar="URL", default="http://127.0.0.1:9090")
    check.add_argument("--minutes", type=float, default=15.0, help="how far back to query; default: %(default)g")
    check.add_argument("--window", default="1m", help="interval of rates: four times the scrape interval; default: %(default)s")
    rules = words.add_parser("rules")
    rules.add_argument("dashboard", type=Path)
    rules.add_argument("file", type=Path)
    arguments = parser.parse_args()
    dashboard = json.loads(arguments.dashboard.read_text())
    try:
        if arguments.word == "rules":
            arguments.file.write_text(dashboards.as_rules(dashboard) + "\n")
            return 0
        end = time.time()
        get = _getter(arguments.prometheus)
        answers = dashboards.ask(get, dashboard, end - 60 * arguments.minutes, end, arguments.window)
    except StoryError as error:
        print(f"dashboards: {error}", file=sys.stderr)
        return 1
    print(*table.layout(dashboards.HEADER, dashboards.rows(answers)), sep="\n")
    problems = dashboards.check(answers).problems
    print(*problems, sep="\n", file=sys.stderr)
    return 1 if problems else 0


def _getter(server: str) -> dashboards.GetJson:
    def get(path: str) -> Mapping:
        try:
            with urllib.request.urlopen(f"{server.rstrip('/')}/api/v1/{path}", timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)  # Prometheus' answer describes the error in the query
        except OSError as error:
            raise StoryError(f"{server}: {error}") from error

    return get


if __name__ == "__main__":
    sys.exit(main())
