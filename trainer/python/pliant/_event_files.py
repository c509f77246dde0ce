"""TensorBoard's event files, written by their own thread, so that a full or hung volume does not
block the training."""

import contextlib
import queue
import threading
import time
from pathlib import Path
from typing import Any

from ._say import say

# Several minutes of lines. The queue fills only if the volume hangs; the bound limits its memory.
_MAX_LINES_WAITING = 1000
_END_SECONDS = 5.0


class EventFiles:
    """Writes lines of metrics to event files in a folder. A write error is reported once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines: queue.Queue[tuple[dict[str, Any], dict[str, float]] | None] = queue.Queue(
            _MAX_LINES_WAITING
        )
        self._over = False  # nothing more is written
        self._told = False
        # A daemon: a thread that hangs does not keep the process alive.
        self._thread = threading.Thread(target=self._run, name="pliant-events", daemon=True)
        self._thread.start()

    def add(self, line: dict[str, Any], values: dict[str, float]) -> None:
        """Queues the values, by tag. Does not block."""
        if self._over:
            return
        try:
            self._lines.put_nowait((line, values))
        except queue.Full:
            self._tell(f"{self._folder} is too slow; some events are not written")

    def close(self) -> None:
        """Waits up to _END_SECONDS for the lines that are not written yet."""
        until = time.monotonic() + _END_SECONDS
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=_END_SECONDS)
        self._thread.join(max(0.0, until - time.monotonic()))
        if self._thread.is_alive():
            self._over = True  # the thread ends after the line it is writing
            self._tell(f"{self._folder} is too slow; the last events are not written")

    def _tell(self, what: str) -> None:
        if not self._told:
            self._told = True
            say(f"events for TensorBoard: {what}")

    # ---- The thread ----

    def _run(self) -> None:
        try:
            self._write_all()
        except ImportError as error:
            self._tell(f"none are written; run `pip install tensorboard`: {error}")
        except Exception as error:  # OSError, or TensorFlow's own error where it is installed
            self._tell(f"no further events are written: {type(error).__name__}: {error}")
        self._over = True

    def _write_all(self) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        writer: Any = None
        membership: Any = None
        while not self._over and (entry := self._lines.get()) is not None:
            line, values = entry
            step = int(line["step"])
            if writer is None or membership != line.get("membership"):
                # An earlier learner may have written events of later steps, which were lost with
                # it. A new file's start event makes TensorBoard drop events from its step on. A
                # test line follows the training line of the same step, which must stay: step + 1.
                if writer is not None:
                    writer.close()
                writer = EventFileWriter(str(self._folder))
                membership = line.get("membership")
                first = step + 1 if line.get("kind") == "test" else step
                start = SessionLog(status=SessionLog.START)
                writer.add_event(Event(step=first, file_version="brain.Event:2"))
                writer.add_event(Event(step=first, wall_time=time.time(), session_log=start))
            summary = Summary(
                value=[Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
            )
            writer.add_event(
                Event(step=step, wall_time=float(line["unixSeconds"]), summary=summary)
            )
            writer.flush()
        if writer is not None:
            writer.close()
