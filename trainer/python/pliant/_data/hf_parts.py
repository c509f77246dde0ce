"""Division of a dataset of the library datasets among logical shards: by the rows of its parts if
they are known, else by the number of samples that the program gives."""

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

from ..errors import InvalidProgram
from .blocks import part_of
from .hf_skip import without_rows


@dataclass(frozen=True)
class Piece:
    """Samples of one part of the dataset, which is read from its front."""

    part: str  # its name
    # Makes an iterable of the part from at most this sample on; also returns its first sample.
    open: Callable[[int], tuple[Any, int]]
    first: int  # number of the first sample in the part
    count: int
    stride: int  # 2: every second sample
    ends: bool  # the part must end with the last sample of the piece
    problem: Callable[[int], str]  # what is wrong if the part has only that many samples, or more


class Division(Protocol):
    samples: int  # in an epoch

    def pieces(self, index: int, count: int) -> list[Piece]:
        """The pieces of one of `count` streams, in order."""

    def note(self, count: int) -> str:
        """What the user should know about a division among `count` streams; "": nothing."""


class ByRows:
    """Each stream has a contiguous part of all rows, which may begin in the middle of a file."""

    def __init__(self, data: Any, rows: Sequence[int], samples: int | None) -> None:
        """`rows`: of each part of the data. `samples`: only the first are used. None: all."""
        self._data = data
        self._rows = rows
        self._ends = list(accumulate(rows))
        all_rows = self._ends[-1] if rows else 0
        if all_rows < (samples or 1):
            raise InvalidProgram(
                f"samples is {samples}, and the files of data have {all_rows} rows: give at most "
                "that many or more files, or leave it out for all rows"
            )
        self.samples = samples or all_rows

    def __str__(self) -> str:
        return f"{self.samples} samples of {len(self._rows)} parts of parquet files"

    def pieces(self, index: int, count: int) -> list[Piece]:
        first, left = part_of(index, count, self.samples)
        part = bisect.bisect_right(self._ends, first)
        pieces = []
        while left > 0:
            begin = first - (self._ends[part] - self._rows[part])
            taken = min(left, self._rows[part] - begin)
            if taken > 0:
                pieces.append(self._piece(part, begin, taken))
            first, left, part = first + taken, left - taken, part + 1
        return pieces

    def note(self, count: int) -> str:
        left_out = self._ends[-1] - self.samples
        return f"{left_out} rows at the end of the data are not used" if left_out else ""

    def _piece(self, part: int, first: int, count: int) -> Piece:
        data, parts, rows = self._data, len(self._rows), self._rows[part]

        def open_part(at: int) -> tuple[Any, int]:
            opened = data.shard(parts, part)
            return opened, without_rows(opened, data, at)

        return Piece(
            part=f"rows-{part}-of-{parts}",
            open=open_part,
            first=first,
            count=count,
            stride=1,
            ends=first + count == rows,
            problem=lambda found: (
                f"data: part {part} of {parts} has {rows} rows in the metadata of its file, and "
                f"yields {found if found <= rows else 'more'} samples. Maps with batched=True must "
                "keep their number, and each file must be sound: otherwise make files of the "
                "result, and train on them"
            ),
        )


class BySamples:
    """Each stream has files of its own, and takes the first samples of them. If there are fewer
    files than streams, each stream reads all files and takes every n-th sample."""

    def __init__(self, data: Any, samples: int) -> None:
        self._data = data
        self._finer: Any = None
        self.samples = samples

    def __str__(self) -> str:
        return f"{self.samples} samples of {self._data.num_shards} files"

    def pieces(self, index: int, count: int) -> list[Piece]:
        data, what = self._source(count)
        _, length = part_of(index, count, self.samples)
        own = data.num_shards >= count

        def problem(found: int) -> str:
            mine, most = (found, found * count) if own else (found // count, found)
            return (
                f"samples is {self.samples}, so logical shard {index} of {count} takes {length}, "
                f"and its {what} have {mine}: give samples={max(1, most)} at most"
            )

        return [
            Piece(
                part=f"{what.replace(' ', '-')}-{index}-of-{count}" if own else "all",
                open=lambda _: (data.shard(count, index) if own else data.shard(1, 0), 0),
                first=0 if own else index,
                count=length,
                stride=1 if own else count,
                ends=False,
                problem=problem,
            )
        ]

    def note(self, count: int) -> str:
        data, what = self._source(count)
        if data.num_shards < count:
            return (
                f"the data have {data.num_shards} {what} for {count} logical shards, so each shard "
                f"reads all of them and takes every {count}th sample: reading costs {count} times "
                f"as much. Write at least {count} files, or parquet files, and leave samples out"
            )
        least, longer = divmod(self.samples, count)
        return (
            f"each of {count} logical shards takes the first {least + (longer > 0)} samples of its "
            f"{what}, and does not use what follows"
        )

    def _source(self, count: int) -> tuple[Any, str]:
        """The data in at least `count` parts, if possible, and the name of a part."""
        if self._data.num_shards < count and hasattr(self._data, "reshard"):
            if self._finer is None:
                self._finer = self._data.reshard()
            if self._finer.num_shards > self._data.num_shards:
                return self._finer, "row groups"
        return self._data, "files"
