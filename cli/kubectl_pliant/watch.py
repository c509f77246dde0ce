"""Watches objects by kubectl get --watch. The process may end at any time; a watch that is started again begins with
all objects that there are."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .errors import CommandError, ForbiddenError, NotFoundError, bug
from .kubectl import Kubectl
from .processes import stop
from .server_errors import error_of

_PAUSE_SECONDS = 1.0
_MAX_EVENT_BYTES = 1 << 24


@dataclass(frozen=True)
class Event:
    kind: str  # ADDED, MODIFIED, DELETED, BOOKMARK
    object: object


class EventDecoder:
    """The events in kubectl's output, each of which ends with a line that begins with "}". What is none is left out."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._bytes = 0

    def feed(self, line: bytes) -> Event | None:
        self._lines.append(line)
        self._bytes += len(line)
        is_whole = line.startswith(b"}") or (len(self._lines) == 1 and line.rstrip().endswith(b"}"))
        if not is_whole and self._bytes <= _MAX_EVENT_BYTES:
            return None
        text = b"".join(self._lines)
        self._lines, self._bytes = [], 0
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            return None
        return Event(value["type"], value.get("object"))


class Watch:
    """Calls `on_event` for each event, and `on_end` with the error after which it is useless to watch again. Both are
    called by a thread of the watch."""

    def __init__(
        self,
        kubectl: Kubectl,
        arguments: Sequence[str],
        on_event: Callable[[Event], None],
        on_end: Callable[[CommandError], None],
    ) -> None:
        self._kubectl = kubectl
        self._arguments = ["get", *arguments, "--watch", "--output-watch-events", "--output=json"]
        self._on_event = on_event
        self._on_end = on_end
        self._stopped = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        if self._process is not None:
            stop(self._process)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._once()
            except (ForbiddenError, NotFoundError) as error:
                self._on_end(error)
                return
            except CommandError:
                pass  # the API server is away for a while
            except Exception as error:  # noqa: BLE001
                self._on_end(bug(error))
                return
            time.sleep(_PAUSE_SECONDS)

    def _once(self) -> None:
        self._process = process = self._kubectl.start(self._arguments)
        if self._stopped.is_set():
            stop(process)
            return
        assert process.stdout is not None and process.stderr is not None
        decoder = EventDecoder()
        while line := process.stdout.readline(_MAX_EVENT_BYTES):
            if event := decoder.feed(line):
                self._on_event(event)
        said = process.stderr.read(1 << 16).decode(errors="replace")
        code = process.wait()
        if code != 0 and not self._stopped.is_set():
            raise error_of(said, code)
