"""The program kubectl-pliant: from its arguments to an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from .arguments import connection_of, parser
from .completion import complete
from .errors import FAILED, INTERRUPTED, CommandError, bug
from .kubectl import Kubectl
from .processes import raise_on_signals, stop_all
from .world import World, clock, look_at_terminal

COMPLETE = "__complete"  # for the scripts of shells, so it is in no help


def main(arguments: Sequence[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal's encoding lacks is no reason to fail.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    raise_on_signals()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        try:
            _run(words)
        finally:
            stop_all()
        return 0
    except CommandError as error:
        _say(f"error: {error.sentence}")
        return error.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe, such as head, has seen enough. Python must not flush into it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001
        _say(f"error: {bug(error).sentence}")
        return FAILED


def _run(words: Sequence[str]) -> None:
    if words[:1] == [COMPLETE]:
        sys.stdout.write("".join(f"{each}\n" for each in complete(parser(), words[1:])))
        return
    given = parser().parse_args(words)
    world = World(
        kubectl=Kubectl(connection_of(given)),
        now=clock(os.environ),
        terminal=look_at_terminal(os.environ),
    )
    given.run(world, given)


def complete_for_kubectl() -> int:
    """The program kubectl_complete-pliant, which kubectl calls with the words after `kubectl pliant`."""
    code = main([COMPLETE, *sys.argv[1:]])
    sys.stdout.write(":4\n")  # no names of files
    return code


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
