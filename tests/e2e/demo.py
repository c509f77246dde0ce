#!/usr/bin/env python3
"""Two trainings share eight GPUs and lose nothing by it. `./dev demo` runs this."""

import argparse
import json
import sys
from pathlib import Path

from story import ending
from story.errors import StoryError
from story.plot import play
from story.screen import Screen
from story.stage import Stage


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__)
    parser.add_argument(
        "--json", metavar="FILE", type=Path, help="write what was measured and checked to this file too"
    )
    arguments = parser.parse_args()
    screen = Screen(sys.stdout)
    try:
        told = play(Stage.from_environment(), screen)
    except StoryError as error:
        screen.close_table()
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted", file=sys.stderr)
        return 130
    ending.show(told, screen)
    if arguments.json:
        arguments.json.write_text(json.dumps(ending.to_json(told), indent=2) + "\n")
    if not told.held:
        failed = [check.name for check in told.checks if not check.holds]
        print(f"demo: does not hold: {'; '.join(failed)}", file=sys.stderr)
        return 1
    screen.say("everything holds", "bold", "green")
    return 0


if __name__ == "__main__":
    sys.exit(main())
