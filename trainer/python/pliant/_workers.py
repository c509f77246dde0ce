"""Processes that load batches ahead of the training.

They load the shards that the learner expects next. After a change of the membership the forecast
may be wrong: a batch that is missing is loaded in place, a batch that is not needed is discarded.
Random numbers of a sample do not depend on the process that loads it, so neither changes a result.
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

from ._data_changes import DataChanges, apply
from ._learner import Shard
from .errors import PliantError
from .process import last_line

_BATCHES_PER_WORKER = 2
_MAX_BYTES_AHEAD = 1 << 30
# A worker, or the process that waits for one, checks at this interval that the other is alive.
_WATCH_SECONDS = 2.0

_HINTS = {
    -signal.SIGKILL: ": was there too little memory?",
    -signal.SIGBUS: ": was there too little room in /dev/shm?",
}

# Everything that a batch depends on: training or not, the epoch, the samples, the version of the
# data (DataChanges). Step and shard do not identify it: after a resize a shard may have other
# samples than the forecast said.
Key = tuple[bool, int, tuple[int, ...], int]


class DataWorkerError(PliantError):
    """A process that loads data failed. Its traceback is in the log."""


class Batches(Protocol):
    @property
    def in_order(self) -> bool:
        """Whether the batches of a shard must be loaded in order, by the same process."""

    @property
    def sources(self) -> dict[str, Any]:
        """What the program gave it to make batches from, by name."""

    def load(self, samples: Sequence[int], epoch: int) -> Any: ...


class Workers:
    """The processes are forked, so they start before the learner has threads. Each calls `prepare`.
    """

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
        # A queue for each process. Where the order does not matter, all share one queue.
        self._requests: list[Any] = (
            [context.Queue() for _ in range(count)] if in_order else [context.Queue()] * count
        )
        self._results: Any = context.Queue()
        self._ready: dict[Key, Any] = {}
        self._asked: set[Key] = set()
        self._changes = DataChanges(_sources(train, test))
        self._batch_bytes = 0  # of the largest batch so far; 0: none has arrived
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
            # JAX, and Python if there are threads, warn about fork. It is safe here: these
            # processes read data, and call nothing of a framework that waits for another thread.
            warnings.filterwarnings("ignore", message=".*fork\\(\\)")
            for process in self._processes:
                process.start()

    def load(self, shard: Shard, in_place: Callable[[], Any]) -> Any:
        """The batch of a shard."""
        self._changes.look()
        key = _key(shard, self._changes.version)
        if key not in self._asked:
            batch = in_place()
            self._changes.absorb()
            return batch
        while key not in self._ready:
            self._take_result()
        self._asked.discard(key)
        return self._ready.pop(key)

    def ask_ahead(self, forecast: Callable[[int], Shard | None]) -> None:
        """Requests the batches that are expected next, and drops those no longer expected."""
        expected: set[Key] = set()
        for ahead in range(self._depth()):
            shard = forecast(ahead)
            if shard is None:
                break
            key = _key(shard, self._changes.version)
            expected.add(key)
            if key not in self._asked:
                self._asked.add(key)
                self._requests[shard.index % self._count].put((key, self._changes.packed))
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
            return 1  # the first batch shows the size of a batch
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
            print(trace, end="", file=sys.stderr)  # in this process, so that the copy has it
            raise DataWorkerError(error)
        self._batch_bytes = max(self._batch_bytes, count)
        self._ready[key] = ForkingPickler.loads(packed)


def _key(shard: Shard, version: int) -> Key:
    return (shard.training, shard.epoch, shard.samples, version)


def _sources(train: Batches, test: Batches | None) -> dict[str, Any]:
    sources = {f"training {name}": source for name, source in train.sources.items()}
    if test is not None:
        sources |= {f"test {name}": source for name, source in test.sources.items()}
    return sources


class _Packer(ForkingPickler):
    """Counts the bytes of all tensors and arrays in a batch. Those of a tensor are not in the
    pickle: they travel in shared memory."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.bytes = 0

    def reducer_override(self, value: Any) -> Any:
        with contextlib.suppress(Exception):  # `nbytes` of a sparse tensor raises
            if isinstance(value.nbytes, int):
                self.bytes += value.nbytes
        return NotImplemented  # pickle it as usual


def _pack(batch: Any) -> tuple[bytes, int]:
    """The batch, pickled for another process, and the number of its bytes."""
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
    # The parent decides when this process ends. Ctrl-C at a terminal signals both.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    prepare()
    results.cancel_join_thread()  # unread results do not keep the process alive
    sources, version = _sources(train, test), 0
    while os.getppid() == parent:
        try:
            key, changes = requests.get(timeout=_WATCH_SECONDS)
        except queue.Empty:
            continue
        if key[3] != version:
            apply(changes, sources)
            version = key[3]
        batches = train if key[0] else test
        assert batches is not None
        results.put(_result(batches, key))


def _result(batches: Batches, key: Key) -> tuple[Key, bytes, int, str, str]:
    """Key, pickled batch, its bytes, the error, its traceback. The last two are "" on success."""
    _, epoch, samples, _ = key
    what = "loading data failed"
    try:
        batch = batches.load(samples, epoch)
        what = f"the batch of the samples {_some(samples)} cannot leave the process that loads it"
        # Pickled here, not by the queue: its thread drops what it cannot pickle, and the learner
        # would wait forever.
        return key, *_pack(batch), "", ""
    except Exception as error:  # any error of the user's data: the parent reports it
        return key, b"", 0, f"{what}: {last_line(error)}", traceback.format_exc()


def _some(samples: Sequence[int]) -> str:
    shown = ", ".join(str(sample) for sample in samples[:3])
    return shown if len(samples) <= 3 else f"{shown}, ..."
