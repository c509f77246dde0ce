"""kubectl pliant top: who has which GPUs, live."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from . import job_list
from .errors import CommandError, ForbiddenError
from .job_pages import list_jobs
from .queues import documents, read
from .top_frame import Observed, frame
from .world import World, look_at_terminal

_PERIOD_SECONDS = 2.0
# The other screen, so that the user's stays as it was; no cursor.
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


def observe(world: World) -> Observed:
    jobs = tuple(list_jobs(world.kubectl))
    try:
        queues, pools = read(world)
    except ForbiddenError as error:
        return Observed(jobs, (), (), error.sentence)
    return Observed(jobs, tuple(queues), tuple(pools))


def run(world: World, *, once: bool, output: str) -> None:
    seen = observe(world)
    everywhere = world.kubectl.connection.all_namespaces
    if output == "json":
        jobs = [job_list.document(job) for job in seen.jobs]
        world.print_json({"jobs": jobs, **documents(seen.queues, seen.pools)})
    elif once or not world.terminal.is_there:
        world.print(frame(seen, world.now(), world.terminal, with_namespace=everywhere))
    else:
        with _screen():
            _redraw(world, seen)


@contextmanager
def _screen() -> Iterator[None]:
    sys.stdout.write(_ENTER)
    try:
        yield
    finally:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()


def _redraw(world: World, seen: Observed) -> None:
    while True:
        terminal = look_at_terminal(os.environ)  # its size may have changed
        everywhere = world.kubectl.connection.all_namespaces
        lines = frame(seen, world.now(), terminal, with_namespace=everywhere, max_rows=terminal.rows)
        lines = lines[: terminal.rows]
        text = "\r\n".join(f"{line}{_REST_OF_LINE}" for line in lines)
        sys.stdout.write(f"{_HOME}{text}{_REST_OF_SCREEN}")
        sys.stdout.flush()
        time.sleep(_PERIOD_SECONDS)
        try:
            seen = observe(world)
        except CommandError as error:
            seen = Observed(seen.jobs, seen.queues, seen.pools, f"out of date: {error.sentence}")
