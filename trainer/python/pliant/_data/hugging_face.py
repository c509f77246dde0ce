"""HuggingFace: datasets that the library datasets reads sequentially."""

import os
from collections.abc import Iterator
from itertools import islice
from typing import Any

from .. import _checks
from .._say import Once
from .._streams import StreamShard
from ..errors import InvalidProgram
from . import hf_pipeline, kept_files
from .blocks import block_size, order_of
from .draws import Draws
from .hf_identity import identity_of
from .hf_parts import ByRows, BySamples
from .hf_reading import read
from .hf_rows import are_local, with_rows
from .positions import Positions
from .refusals import reported

_is_shuffle = _checks.whole(0, 1 << 53)
_is_samples = _checks.or_none(_checks.whole(1, 1 << 53))


class HuggingFace:
    """A streaming dataset of the library datasets (Hugging Face), for `pliant.attach`.

    data: a datasets.IterableDataset, as `load_dataset(..., streaming=True)` returns it, with maps
        and filters, but without `.shuffle`.
    samples: the samples of an epoch. None: all rows of parquet files, by their metadata. Of files
        that are not parquet, or not on this machine, each logical shard takes the first samples of
        its own files, so these should be equally long.
    shuffle: samples change places within blocks of that many, over all logical shards. All learners
        together hold one block in memory. 0: the order of the files.
    cache: a folder for positions in data that are not parquet files, by which another learner
        continues without reading from the front. None: the job's volume or, alone, no positions.

    Random numbers that a map draws depend on the job's seed, the epoch and the sample.
    """

    # Slots, because changes of a dataset's attributes are sent to the processes that load data.
    __slots__ = ("_division", "_has_batches", "_positions", "_say_once", "_shuffle")

    def __init__(
        self,
        data: Any,
        *,
        samples: int | None = None,
        shuffle: int = 0,
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        with reported():
            version = _check_data(data)
            self._shuffle = _is_shuffle("shuffle", shuffle)
            self._division = _division_of(data, _is_samples("samples", samples))
            folder = kept_files.named(cache, "positions") or kept_files.of_job("positions")
            # Rows are skipped in the files themselves.
            needed = isinstance(self._division, BySamples)
            if folder is not None and needed and hf_pipeline.has_exact_states(data, version):
                self._positions = Positions(folder / identity_of(data, version))
            else:
                self._positions = Positions(None)
            self._has_batches = hf_pipeline.has_batches(data)
            self._say_once = Once()

    def __len__(self) -> int:
        return self._division.samples

    def __repr__(self) -> str:
        return f"pliant.data.HuggingFace({self._division}, shuffle={self._shuffle})"

    def stream(self, shard: StreamShard, start: int) -> Iterator[Any]:
        """The samples of one logical shard from number `start` on. See StreamShard."""
        note = self._division.note(shard.count) if shard.index == 0 else ""
        if note:
            self._say_once(note)
        pieces = self._division.pieces(shard.index, shard.count)
        length = sum(piece.count for piece in pieces)
        size = block_size(self._shuffle, shard.count)
        first = start // size * size
        draws = Draws(shard.seed, notices=self._positions.are_kept and self._has_batches)
        rest = read(pieces, first, self._positions, draws)
        while first < length:
            samples = list(islice(rest, min(size, length - first)))
            order = order_of(first // size, len(samples), shard.seed)
            for place in range(max(start, first), first + len(samples)):
                draws.settle(place)
                yield samples[order[place - first]]
            first += len(samples)
            samples.clear()  # the next block takes its memory


def _check_data(data: Any) -> str:
    """Raises InvalidProgram if these are no data of the library. Returns the library's version."""
    try:
        import datasets
    except ModuleNotFoundError as error:
        raise InvalidProgram(
            f"pliant.data.HuggingFace needs the package {error.name}: pip install datasets"
        ) from None
    if isinstance(data, dict):
        raise InvalidProgram(
            f"data is a {type(data).__name__} with {', '.join(map(repr, data))}: give one of them, "
            f"for example load_dataset(..., split={next(iter(data), 'train')!r}, streaming=True)"
        )
    if isinstance(data, datasets.Dataset):
        raise InvalidProgram(
            "data is a datasets.Dataset, whose samples have an index: give it to pliant.attach "
            "itself, or load it with streaming=True"
        )
    if not isinstance(data, datasets.IterableDataset):
        raise InvalidProgram(
            f"data is a {type(data).__name__}: it must be a datasets.IterableDataset, for example "
            'load_dataset("parquet", data_files=..., split="train", streaming=True)'
        )
    hf_pipeline.check(data)
    return str(datasets.__version__)


def _division_of(data: Any, samples: int | None) -> ByRows | BySamples:
    if samples is not None and not are_local(data):
        return BySamples(data, samples)
    found = with_rows(data)
    if found is not None:
        return ByRows(*found, samples)
    if samples is not None:
        return BySamples(data, samples)
    raise InvalidProgram(
        "samples is missing: only parquet files without filters have the number of their rows. "
        "Give samples=N, the samples of an epoch"
    )
