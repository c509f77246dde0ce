"""The program kubectl-pliant: from its arguments to an exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from .arguments import connection_of, parser
from .errors import FAILED, INTERRUPTED, CommandError, bug
from .kubectl import Kubectl
from .world import World, clock, look_at_terminal


class _Terminated(BaseException):
    """SIGTERM, as an exception, so that what was started is ended."""


def _on_sigterm(number: int, frame: object) -> None:
    raise _Terminated


def main(arguments: Sequence[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal's encoding lacks is no reason to fail.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    signal.signal(signal.SIGTERM, _on_sigterm)
    try:
        given = parser().parse_args(arguments)
        world = World(
            kubectl=Kubectl(connection_of(given)),
            now=clock(os.environ),
            terminal=look_at_terminal(os.environ),
        )
        given.run(world, given)
        return 0
    except CommandError as error:
        _say(f"error: {error.sentence}")
        return error.code
    except (KeyboardInterrupt, _Terminated):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe, such as head, has seen enough. Python must not flush into it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001
        _say(f"error: {bug(error).sentence}")
        return FAILED


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
