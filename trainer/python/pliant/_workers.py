"""Processes that load batches ahead of the training.

They are asked for the shards that the learner expects next. A forecast may be wrong, after a change
of the membership: what it missed is loaded in place, what nobody wants is thrown away. What a
sample draws does not depend on who loads it, so neither changes a result.
"""

import contextlib
import io
import multiprocessing.process
import os
import queue
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any, Protocol

from ._learner import Shard
from .errors import PliantError
from .process import last_line

_BATCHES_PER_WORKER = 2
_MAX_BYTES_AHEAD = 1 << 30
# So long a worker, or who waits for one, may not notice that the other is gone.
_WATCH_SECONDS = 2.0

_HINTS = {
    -signal.SIGKILL: ": was there too little memory?",
    -signal.SIGBUS: ": was there too little room in /dev/shm?",
}

# All that a batch depends on: whether it is for training, the epoch, the samples. A step and a shard
# are no name for it: after a resize they may have other samples than a forecast said.
Key = tuple[bool, int, tuple[int, ...]]


class DataWorkerError(PliantError):
    """A process that loads data failed. Its traceback is in the log."""


class Batches(Protocol):
    @property
    def in_order(self) -> bool:
        """The batches of a shard are loaded one after the other, by the same process."""

    def load(self, samples: Sequence[int], epoch: int) -> Any: ...


class Workers:
    """Started before the learner has threads: they are forked. `prepare` is called in each."""

    def __init__(
        self,
        count: int,
        train: Batches,
        test: Batches | None,
        *,
        context: Any,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        in_order = train.in_order or (test is not None and test.in_order)
        # By process. Where the order does not matter, whoever is free takes the next.
        self._requests: list[Any] = (
            [context.Queue() for _ in range(count)] if in_order else [context.Queue()] * count
        )
        self._results: Any = context.Queue()
        self._ready: dict[Key, Any] = {}
        self._asked: set[Key] = set()
        self._batch_bytes = 0  # of the largest one that came; 0: none did
        self._count = count
        self._processes: list[multiprocessing.process.BaseProcess] = [
            context.Process(
                target=_work,
                args=(requests, self._results, train, test, prepare, os.getpid()),
                name=f"pliant-data-{i}",
                daemon=True,
            )
            for i, requests in enumerate(self._requests)
        ]
        with warnings.catch_warnings():
            # Of JAX, and of Python where there are threads: these processes read data, and call
            # nothing of a framework's that waits for another thread.
            warnings.filterwarnings("ignore", message=".*fork\\(\\)")
            for process in self._processes:
                process.start()

    def load(self, shard: Shard, in_place: Callable[[], Any]) -> Any:
        """The batch of a shard."""
        key = _key(shard)
        if key not in self._asked:
            return in_place()
        while key not in self._ready:
            self._take_result()
        self._asked.discard(key)
        return self._ready.pop(key)

    def ask_ahead(self, forecast: Callable[[int], Shard | None]) -> None:
        """Asks for what is expected next, and forgets what is not expected any more."""
        expected: set[Key] = set()
        for ahead in range(self._depth()):
            shard = forecast(ahead)
            if shard is None:
                break
            key = _key(shard)
            expected.add(key)
            if key not in self._asked:
                self._asked.add(key)
                self._requests[shard.index % self._count].put(key)
        for key in self._asked - expected:
            if key in self._ready:
                del self._ready[key]
                self._asked.discard(key)

    def close(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()
        for each in (*self._requests, self._results):
            each.close()
            each.cancel_join_thread()

    def _depth(self) -> int:
        if self._batch_bytes == 0:
            return 1  # which tells what they weigh
        depth = _BATCHES_PER_WORKER * self._count
        return max(1, min(depth, _MAX_BYTES_AHEAD // self._batch_bytes))

    def _take_result(self) -> None:
        try:
            key, packed, count, error, trace = self._results.get(timeout=_WATCH_SECONDS)
        except queue.Empty:
            for process in self._processes:
                if not process.is_alive():
                    hint = _HINTS.get(process.exitcode or 0, "")
                    raise DataWorkerError(
                        f"{process.name} ended with {process.exitcode}{hint}"
                    ) from None
            return
        if error:
            print(trace, end="", file=sys.stderr)  # here, so that it is kept with the rest
            raise DataWorkerError(error)
        self._batch_bytes = max(self._batch_bytes, count)
        self._ready[key] = ForkingPickler.loads(packed)


def _key(shard: Shard) -> Key:
    return (shard.training, shard.epoch, shard.samples)


class _Packer(ForkingPickler):
    """Counts the bytes of the tensors and arrays that a batch has anywhere: those of a tensor are
    not among what is written, they travel in shared memory."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.bytes = 0

    def reducer_override(self, value: Any) -> Any:
        with contextlib.suppress(Exception):  # a sparse tensor says that it has none
            if isinstance(value.nbytes, int):
                self.bytes += value.nbytes
        return NotImplemented  # as without it


def _pack(batch: Any) -> tuple[bytes, int]:
    """The batch for another process, and how many bytes it takes."""
    file = io.BytesIO()
    packer = _Packer(file)
    packer.dump(batch)
    packed = file.getvalue()
    return packed, max(len(packed), packer.bytes)


def _work(
    requests: Any,
    results: Any,
    train: Batches,
    test: Batches | None,
    prepare: Callable[[], None],
    parent: int,
) -> None:
    # The parent decides when it ends; Ctrl-C at a terminal reaches both.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    prepare()
    results.cancel_join_thread()  # what nobody reads any more does not keep it alive
    while os.getppid() == parent:
        try:
            key = requests.get(timeout=_WATCH_SECONDS)
        except queue.Empty:
            continue
        batches = train if key[0] else test
        assert batches is not None
        results.put(_result(batches, key))


def _result(batches: Batches, key: Key) -> tuple[Key, bytes, int, str, str]:
    """The batch, packed, with its size; or what went wrong, with the traceback."""
    _, epoch, samples = key
    what = "loading data failed"
    try:
        batch = batches.load(samples, epoch)
        what = f"the batch of the samples {_some(samples)} cannot leave the process that loads it"
        # Not by the queue, whose thread drops what it cannot send: the learner would wait for it.
        return key, *_pack(batch), "", ""
    except Exception as error:  # of the user's data: whatever it is, the parent tells it
        return key, b"", 0, f"{what}: {last_line(error)}", traceback.format_exc()


def _some(samples: Sequence[int]) -> str:
    shown = ", ".join(str(sample) for sample in samples[:3])
    return shown if len(samples) <= 3 else f"{shown}, ..."
