"""WebDataset: samples in tar files, read by an index."""

import bisect
import operator
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

from .. import _checks
from .._streams import StreamShard
from ..errors import InvalidProgram
from . import kept_files
from .blocks import block_size, numbers, part_of
from .file_names import names_of
from .refusals import reported
from .tar_index import OpenTar, TarIndex, indices_of, open_tar
from .tar_members import BLOCK, BadTar
from .tar_samples import sample_in

_MAX_OPEN_FILES = 64
_is_number = _checks.whole(0, 1 << 53)


class WebDataset:
    """Samples in local tar files of the WebDataset format, for `pliant.attach`.

    An index says where each sample is, so a learner reads only its own samples, from any place on.
    Reading all headers makes the index; it is kept, and read by later learners.

    files: the names of the tar files: a list, or a text with braces, "folder/{000..127}.tar".
    decode: makes a sample from a dict: the bytes of each file of the sample by its extension, and
        its name as "__key__". It may draw random numbers. None: the dict is the sample.
    shuffle: 0: each logical shard reads its part of the files in their order. A number: samples
        change places within blocks of that many, over all logical shards. True: the job's random
        order over all samples, for files on a quick disk.
    cache: a folder for the index. None: the job's volume or, alone, ~/.cache/pliant.
    """

    # Slots, because changes of a dataset's attributes are sent to the processes that load data.
    __slots__ = ("_decode", "_ends", "_indices", "_open", "_shuffle")

    def __init__(
        self,
        files: Any,
        *,
        decode: Callable[[dict[str, Any]], Any] | None = None,
        shuffle: int | bool = 0,
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        with reported():
            self._decode = None if decode is None else _checks.function("decode", decode)
            is_flag = isinstance(shuffle, bool)
            self._shuffle = shuffle if is_flag else _is_number("shuffle", shuffle)
            kept = kept_files.named(cache, "index") or kept_files.of_job("index")
            names = names_of(files)
            self._indices = indices_of(names, kept or kept_files.of_user("index"))
            self._ends = list(accumulate(index.samples for index in self._indices))
            self._open = _OpenFiles()
            if len(self) == 0:
                raise InvalidProgram(
                    f"files: {names[0]!r} and {len(names) - 1} others contain no sample, which is "
                    "a file with a name and an extension, such as 0001.jpg: give other files"
                )

    def __len__(self) -> int:
        return self._ends[-1]

    def __repr__(self) -> str:
        return (
            f"pliant.data.WebDataset({len(self)} samples in {len(self._indices)} files from "
            f"{self._indices[0].path!r} on, shuffle={self._shuffle!r})"
        )

    def __getitem__(self, number: int) -> Any:
        number = operator.index(number)
        if not -len(self) <= number < len(self):
            raise IndexError(f"there is no sample {number}: there are {len(self)}")
        number %= len(self)
        file = bisect.bisect_right(self._ends, number)
        index = self._indices[file]
        sample = self._open.sample(index, number - self._ends[file] + index.samples)
        return sample if self._decode is None else self._decode(sample)

    @property
    def stream(self) -> Callable[[StreamShard, int], Iterator[Any]] | None:
        """Reads one logical shard's part of the files. None: the job decides the order."""
        return None if self._shuffle is True else self._stream

    def _stream(self, shard: StreamShard, start: int) -> Iterator[Any]:
        first, length = part_of(shard.index, shard.count, len(self))
        size = block_size(int(self._shuffle), shard.count)
        for number in numbers(start, length, size, shard.seed):
            yield self[first + number]


class _OpenFiles:
    """The tar files that were read last."""

    __slots__ = ("_files",)

    def __init__(self) -> None:
        self._files: OrderedDict[str, OpenTar] = OrderedDict()

    def sample(self, index: TarIndex, number: int) -> dict[str, Any]:
        begin, end = (BLOCK * at for at in index.spans[2 * number : 2 * number + 2])
        data = self._file(index).read(begin, end - begin)
        try:
            sample: dict[str, Any] = {**sample_in(data)}
        except BadTar as error:
            raise InvalidProgram(
                f"files: sample {number} of {index.path!r} cannot be read: {error}. Write the file "
                "again; if it is sound, delete the folder of the index"
            ) from None
        sample["__url__"] = index.path
        return sample

    def _file(self, index: TarIndex) -> OpenTar:
        file = self._files.pop(index.path, None)
        if file is None:
            file = open_tar(index.path)
            if (file.bytes, file.changed) != (index.bytes, index.changed):
                file.close()
                raise InvalidProgram(
                    f"files: {index.path!r} was changed after its index was made: start again, and "
                    "leave the files as they are while a job trains"
                )
        self._files[index.path] = file
        if len(self._files) > _MAX_OPEN_FILES:
            self._files.popitem(last=False)[1].close()
        return file
