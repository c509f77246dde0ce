"""Everything outside that a command uses: kubectl, the clock, the terminal."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Callable

from .kubectl import Kubectl

# For the tests of this program alone: a fixed time, so that its output does not depend on the clock.
TEST_NOW = "PLIANT_CLI_TEST_NOW"
JSON_VERSION = 1  # of all documents of -o json


@dataclass(frozen=True)
class Terminal:
    """How standard output looks. Piped, lines have no maximum, unless COLUMNS sets one."""

    is_there: bool
    columns: int | None
    rows: int
    colour: bool


def look_at_terminal(environment: Mapping[str, str]) -> Terminal:
    is_there = sys.stdout.isatty()
    given = environment.get("COLUMNS", "")
    size = shutil.get_terminal_size()
    named = given.isdecimal() and 0 < int(given) < 10000
    return Terminal(
        is_there=is_there,
        columns=size.columns if is_there or named else None,
        rows=size.lines,
        colour=is_there and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb",
    )


def clock(environment: Mapping[str, str]) -> Callable[[], float]:
    fixed = environment.get(TEST_NOW)
    return time.time if fixed is None else lambda: float(fixed)


@dataclass(frozen=True)
class World:
    kubectl: Kubectl
    now: Callable[[], float]
    terminal: Terminal

    def print(self, lines: Iterable[str]) -> None:
        for line in lines:
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def print_json(self, document: dict[str, object]) -> None:
        self.print([json.dumps({"version": JSON_VERSION, **document}, indent=2)])

    def note(self, line: str) -> None:
        """A remark on standard error, which does not disturb who reads standard output."""
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
