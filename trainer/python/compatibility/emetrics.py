"""Writes the metrics files of Watson Machine Learning Accelerator's scripts. A script that brings
its own module of this name uses that one."""

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from pliant._accelerator import settle_environment
from pliant._say import say

__all__ = ["EMetrics"]

settle_environment()

_told: set[Path] = set()


class EMetrics:
    """Appends records to evaluation-metrics.txt in LOG_DIR, as JSON lines. With a `subId`, which
    names one of several trials, the file is in a folder of that name. `close` then also writes the
    records of the test group to val_dict_list.json in RESULT_DIR."""

    TEST_GROUP = "test"
    TRAIN_GROUP = "train"

    def __init__(self, subId: Any = None) -> None:
        self._sub_id = None if subId is None else str(subId)
        self._records = 0
        self._of_tests: list[dict[str, Any]] = []

    @staticmethod
    def open(subId: Any = None) -> "EMetrics":
        return EMetrics(subId)

    def __enter__(self) -> "EMetrics":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def record(self, group: str, iteration: Any, values: Mapping[str, Any]) -> None:
        plain = {str(name): _plain(value) for name, value in values.items()}
        iteration, now = _plain(iteration), time.time()
        self._records += 1
        meta: dict[str, Any] = {
            "training_id": os.environ.get("TRAINING_ID") or os.environ.get("PLIANT_JOB_UID", ""),
            "time": int(now * 1000),
            "rindex": self._records,
        }
        if self._sub_id is not None:
            meta["subid"] = self._sub_id
            if group == self.TEST_GROUP:
                self._of_tests.append({"steps": iteration, **plain})
        stamp = (
            time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03}"
        )
        line = {
            "meta": meta,
            "grouplabel": group,
            "etimes": {"iteration": _typed(iteration), "time_stamp": _typed(stamp)},
            "values": {name: _typed(value) for name, value in plain.items()},
        }
        text = json.dumps(line) + "\n"
        folder = _log_folder(self._sub_id)
        _write(folder, lambda there: _append(there / "evaluation-metrics.txt", text))

    def close(self) -> None:
        records, self._of_tests = self._of_tests, []
        if not records:
            return
        text = json.dumps(records, default=str)

        def replace(folder: Path) -> None:
            # Atomic, because several learners may write it at once.
            scratch = folder / f".{os.uname().nodename}.{os.getpid()}.val_dict_list.json"
            scratch.write_text(text)
            scratch.replace(folder / "val_dict_list.json")

        _write(Path(os.environ.get("RESULT_DIR") or tempfile.gettempdir()), replace)


def _log_folder(sub_id: str | None) -> Path:
    state = os.environ.get("JOB_STATE_DIR")
    folder = Path(
        os.environ.get("LOG_DIR") or (Path(state, "logs") if state else tempfile.gettempdir())
    )
    return folder if sub_id is None else folder / sub_id


def _write(folder: Path, write: Callable[[Path], object]) -> None:
    """Calls `write` with the folder, which is created if needed. An error of the file system loses
    the metrics but does not end the training. It is reported once per folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write(folder)
    except OSError as error:
        if folder not in _told:
            _told.add(folder)
            say(f"metrics are not written to {folder}: {error}")


def _append(path: Path, line: str) -> None:
    """Appends the line in one write, so that lines of several processes do not mix."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def _plain(value: Any) -> Any:
    """A number of numpy or torch as a Python number."""
    if hasattr(value, "item"):
        with contextlib.suppress(TypeError, ValueError, RuntimeError):  # it has several elements
            return value.item()
    return value


def _typed(value: Any) -> dict[str, Any]:
    kinds = {int: 2, float: 3}
    kind = {"type": kinds[type(value)]} if type(value) in kinds else {}
    return {**kind, "value": str(value)}
