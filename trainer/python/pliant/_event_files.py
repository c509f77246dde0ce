"""TensorBoard's event files, written by their own thread, so that a full or hung volume does not
block the training."""

import time
from pathlib import Path
from typing import Any

from ._background import Background
from ._say import say


class EventFiles:
    """Writes lines of metrics to event files in a folder. A write error is reported once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: Any = None
        self._membership: Any = None
        self._thread = Background(
            "pliant-events",
            take=lambda entry: self._write(*entry),
            finish=self._end,
            failure=_explain,
            tell=lambda what: say(f"events for TensorBoard in {folder}: {what}"),
        )

    def add(self, line: dict[str, Any], values: dict[str, float]) -> None:
        """Queues the values, by tag. Does not block."""
        if not self._thread.add((line, values)):
            self._thread.tell("it is too slow; some events are not written")

    def close(self) -> None:
        self._thread.close()

    # ---- The thread ----

    def _write(self, line: dict[str, Any], values: dict[str, float]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        step = int(line["step"])
        if self._writer is None or self._membership != line.get("membership"):
            self._membership = line.get("membership")
            self._begin(step + 1 if line.get("kind") == "test" else step)
        summary = Summary(
            value=[Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        )
        self._writer.add_event(
            Event(step=step, wall_time=float(line["unixSeconds"]), summary=summary)
        )
        self._writer.flush()

    def _begin(self, first: int) -> None:
        """Begins a file whose start event makes TensorBoard drop events from step `first` on: an
        earlier learner may have written some of later steps, which were lost with it. A test line
        follows the training line of the same step, which must stay: its `first` is step + 1."""
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._end()
        self._writer = EventFileWriter(str(self._folder))
        start = SessionLog(status=SessionLog.START)
        self._writer.add_event(Event(step=first, file_version="brain.Event:2"))
        self._writer.add_event(Event(step=first, wall_time=time.time(), session_log=start))

    def _end(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _explain(error: Exception) -> str:
    if isinstance(error, ImportError):
        return f"none are written; run `pip install tensorboard`: {error}"
    # OSError, or TensorFlow's own error where it is installed
    return f"no further events are written: {type(error).__name__}: {error}"
