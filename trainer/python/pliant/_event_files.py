"""TensorBoard's event files, written by a thread of their own: a volume that is full or hangs holds
up nobody else."""

import contextlib
import queue
import threading
import time
from pathlib import Path
from typing import Any

from ._say import say

# Minutes of them: what waits longer waits for a volume that hangs, and has a bound.
_MAX_LINES_WAITING = 1000
_END_SECONDS = 5.0


class EventFiles:
    """Lines of metrics on their way to files in a folder. What cannot be written is told once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines: queue.Queue[tuple[dict[str, Any], dict[str, float]] | None] = queue.Queue(
            _MAX_LINES_WAITING
        )
        self._over = False  # nothing more is written
        self._told = False
        # A daemon: one that hangs does not keep the process.
        self._thread = threading.Thread(target=self._run, name="pliant-events", daemon=True)
        self._thread.start()

    def add(self, line: dict[str, Any], values: dict[str, float]) -> None:
        """`values` by tag. Does not wait."""
        if self._over:
            return
        try:
            self._lines.put_nowait((line, values))
        except queue.Full:
            self._tell(f"{self._folder} is too slow, some are left out")

    def close(self) -> None:
        """Waits for what is not written yet, but not for long."""
        until = time.monotonic() + _END_SECONDS
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=_END_SECONDS)
        self._thread.join(max(0.0, until - time.monotonic()))
        if self._thread.is_alive():
            self._over = True  # after the line that it writes
            self._tell(f"{self._folder} is too slow, the last are left out")

    def _tell(self, what: str) -> None:
        if not self._told:
            self._told = True
            say(f"events for TensorBoard: {what}")

    # ---- The thread ----

    def _run(self) -> None:
        try:
            self._write_all()
        except ImportError as error:
            self._tell(f"there are none, `pip install tensorboard`: {error}")
        except Exception as error:  # OSError or, where TensorFlow is installed, what it makes of it
            self._tell(f"no more of them: {type(error).__name__}: {error}")
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
                # Another learner may have written before, and what it wrote of later steps was lost
                # with it: a new file says from which step on it counts. A test line comes after the
                # training of its step, which stays.
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
