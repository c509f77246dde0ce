"""Processes that load batches ahead of the training.

They are asked for the shards that the learner expects next. A forecast may be wrong, after a change
of the membership: what it missed is loaded in place, what nobody wants is thrown away. What a
sample draws does not depend on who loads it, so neither changes a result.
"""

import multiprocessing.process
import os
import queue
import signal
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ._learner import Shard
from .errors import PliantError
from .process import last_line

_BATCHES_PER_WORKER = 2
_BYTES_AHEAD_MOST = 1 << 30
# So long a worker, or who waits for one, may not notice that the other is gone.
_WATCH_SECONDS = 2.0

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
        self._batch_bytes = 0
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
        depth = _BATCHES_PER_WORKER * self._count
        return max(1, min(depth, _BYTES_AHEAD_MOST // max(1, self._batch_bytes)))

    def _take_result(self) -> None:
        try:
            key, batch, error = self._results.get(timeout=_WATCH_SECONDS)
        except queue.Empty:
            for process in self._processes:
                if not process.is_alive():
                    raise DataWorkerError(
                        f"{process.name} ended with {process.exitcode}"
                        + (
                            ": was there too little memory?"
                            if process.exitcode == -signal.SIGKILL
                            else ""
                        )
                    ) from None
            return
        if error:
            raise DataWorkerError(f"loading data failed: {error}")
        self._batch_bytes = _bytes_of(batch)
        self._ready[key] = batch


def _key(shard: Shard) -> Key:
    return (shard.training, shard.epoch, shard.samples)


def _bytes_of(batch: Any) -> int:
    if hasattr(batch, "nbytes"):  # a tensor or an array
        return int(batch.nbytes)
    if isinstance(batch, dict):
        return sum(_bytes_of(value) for value in batch.values())
    if isinstance(batch, list | tuple):
        return sum(_bytes_of(value) for value in batch)
    return 0


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
        training, epoch, samples = key
        batches = train if training else test
        assert batches is not None
        try:
            results.put((key, batches.load(samples, epoch), ""))
        except Exception as error:  # of the user's dataset: whatever it is, the parent tells it
            traceback.print_exc()
            results.put((key, None, last_line(error)))
