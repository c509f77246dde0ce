"""Data that are read sequentially.

Each logical shard has its own stream. The position in it follows from the committed steps, so a
learner that takes over a shard opens its stream where the last committed step left it.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ._learner import Plan
from ._seeds import mix
from .errors import InvalidProgram


@dataclass(frozen=True)
class StreamShard:
    """Argument of a dataset's `stream`: `dataset.stream(shard, start)` yields the samples of this
    part of the epoch from sample number `start` (from 0) on, always in the same order.

    A simple division: shard `index` gets the samples whose number modulo `count` is `index`. Every
    stream is then long enough.
    """

    index: int
    count: int
    epoch: int
    seed: int  # for a random order of this part of this epoch


def is_stream(data: Any) -> bool:
    return callable(getattr(data, "stream", None))


class Streams:
    """Reads samples of streams by their place in the epoch. Each step takes the next `batch` places
    and divides them among its shards, in parts whose sizes differ by at most 1."""

    def __init__(self, data: Any, size: int, plan: Plan, seed_all: Callable[[int], None]) -> None:
        # A larger batch has more shards, so the streams of the present ones would be opened again
        # at each step.
        if os.environ.get("PLIANT_BATCH_MODE") == "FromState":
            raise InvalidProgram(
                f"the data ({type(data).__name__}) are read by stream(shard, start), and the batch "
                "may grow (spec.training.batch.mode or PLIANT_BATCH_MODE is FromState): give data "
                "with __len__ and __getitem__, or use the mode Constant"
            )
        self._data = data
        self._size = size
        self._batch = plan.global_batch_size
        self._shards = plan.logical_shards
        self._seed = plan.seed
        self._seed_all = seed_all
        # By shard: the epoch, the number of samples read, the iterator of the rest.
        self._open: dict[int, tuple[int, int, Iterator[Any]]] = {}
        self._step = (0, 0)  # epoch, and number of the step in it

    def read(self, places: Sequence[int], epoch: int) -> list[Any]:
        samples = []
        if places:
            self._let_go((epoch, places[0] // self._batch))
        for place in places:
            shard, start = self._find(place)
            rest = self._stream(shard, start, epoch)
            self._seed_all(mix(self._seed, epoch, place))
            try:
                samples.append(next(rest))
            except StopIteration:
                raise InvalidProgram(
                    f"stream {shard} of {self._shards} ended after {start} samples in epoch "
                    f"{epoch}: with the {self._size} samples of __len__ it must yield more"
                ) from None
            self._open[shard] = (epoch, start + 1, rest)
        return samples

    def _let_go(self, step: tuple[int, int]) -> None:
        """Drops the streams that were not read in the step before: another learner has these
        shards now, and a stream may hold much memory."""
        if step != self._step:
            self._step = step
            begin = (step[0], step[1] * (self._batch // self._shards))
            self._open = {each: was for each, was in self._open.items() if was[:2] >= begin}

    def _find(self, place: int) -> tuple[int, int]:
        """The shard of the sample at a place of the epoch, and its number in the shard's stream."""
        step, within = divmod(place, self._batch)
        least, longer = divmod(min(self._batch, self._size - step * self._batch), self._shards)
        if within < longer * (least + 1):
            shard, nth = divmod(within, least + 1)
        else:
            shard, nth = divmod(within - longer * (least + 1), least)
            shard += longer
        return shard, step * (self._batch // self._shards) + nth

    def _stream(self, shard: int, start: int, epoch: int) -> Iterator[Any]:
        if shard in self._open:
            epoch_there, start_there, rest = self._open.pop(shard)
            if (epoch_there, start_there) == (epoch, start):
                return rest
        seed = mix(self._seed, epoch, shard, self._shards)
        return iter(self._data.stream(StreamShard(shard, self._shards, epoch, seed), start))
