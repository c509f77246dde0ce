"""Data that are read from front to back.

Each logical shard has a stream of its own, and how far it was read follows from the steps that are
committed: so who takes a shard over opens its stream where the last committed step left it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ._learner import Plan
from ._seeds import mix
from .errors import InvalidProgram


@dataclass(frozen=True)
class StreamShard:
    """The stream that a dataset is asked for: `dataset.stream(shard, start)` yields the samples
    of this part of the epoch from the `start`-th on, in an order that is always the same.

    A dataset that deals its samples like cards gives shard `index` those whose number has the
    remainder `index` when divided by `count`: each stream is then as long as it has to be.
    """

    index: int
    count: int
    epoch: int
    seed: int  # for an order that is drawn: of this part of this epoch


def is_stream(data: Any) -> bool:
    return callable(getattr(data, "stream", None))


class Streams:
    """Samples of a stream by their place in the epoch. Steps take `batch` places after each other,
    and their shards parts of those whose sizes differ by at most one."""

    def __init__(self, data: Any, size: int, plan: Plan, seed_all: Callable[[int], None]) -> None:
        self._data = data
        self._size = size
        self._batch = plan.global_batch_size
        self._shards = plan.logical_shards
        self._seed = plan.seed
        self._seed_all = seed_all
        # By shard: epoch, how many were read, the rest.
        self._open: dict[int, tuple[int, int, Iterator[Any]]] = {}

    def read(self, places: Sequence[int], epoch: int) -> list[Any]:
        samples = []
        for place in places:
            shard, start = self._find(place)
            rest = self._stream(shard, start, epoch)
            self._seed_all(mix(self._seed, epoch, place))
            try:
                samples.append(next(rest))
            except StopIteration:
                raise InvalidProgram(
                    f"stream {shard} of {self._shards} ended after {start} samples in epoch "
                    f"{epoch}: of {self._size} samples, which is what __len__ says, more are its part"
                ) from None
            self._open[shard] = (epoch, start + 1, rest)
        return samples

    def _find(self, place: int) -> tuple[int, int]:
        """Of the sample at a place of the epoch: its shard, and how many the shard had before."""
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
