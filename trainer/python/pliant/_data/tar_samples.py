"""Samples in a tar file: files next to one another whose names are equal up to the first dot.

That is the rule of the WebDataset format. `a/01.jpg` and `a/01.seg.png` are the parts "jpg" and
"seg.png" of the sample "a/01". Files without such a name belong to no sample.
"""

from array import array
from collections.abc import Iterable, Iterator

from .tar_members import BLOCK, BadTar, Member, Read, members

MAX_SAMPLE_BYTES = 1 << 31  # a sample is read into memory as a whole


def spans_of(read: Read, size: int) -> "array[int]":
    """Where each sample of a tar file of `size` bytes begins and ends, in blocks: begin of the
    first, end of the first, begin of the second, ..."""
    if read(0, 3) in (b"\x1f\x8b\x08", b"BZh", b"\xfd7z"):
        raise BadTar("it is compressed: unpack it, because samples are read by their place")
    spans = array("q")
    present = None
    for member, key, _ in _parts(members(read, 0, size, whole=True)):
        if key == present:
            spans[-1] = member.end // BLOCK
        else:
            spans.extend((member.begin // BLOCK, member.end // BLOCK))
            present = key
        if (spans[-1] - spans[-2]) * BLOCK > MAX_SAMPLE_BYTES:
            raise BadTar(f"the sample {key[:200]!r} has more than {MAX_SAMPLE_BYTES >> 30} GiB")
    return spans


def sample_in(data: bytes) -> dict[str, bytes | str]:
    """The parts of a sample by their extension, and its key as "__key__"."""

    def read(offset: int, length: int) -> bytes:
        return data[offset : offset + length]

    sample: dict[str, bytes | str] = {}
    for member, key, extension in _parts(members(read, 0, len(data), whole=False)):
        if sample.setdefault("__key__", key) != key:
            raise BadTar(f"files of {key[:200]!r} are in the place of another sample")
        if extension in sample:
            raise BadTar(f"the sample {key[:200]!r} has two files {extension[:200]!r}")
        sample[extension] = data[member.content : member.content + member.size]
    if not sample:
        raise BadTar("no sample is in its place")
    return sample


def _parts(listed: Iterable[Member]) -> Iterator[tuple[Member, str, str]]:
    """Those that belong to a sample, with its key and their extension in small letters."""
    for member in listed:
        folder, slash, base = member.name.rpartition("/")
        key, dot, extension = base.partition(".")
        if member.regular and key and dot:
            yield member, folder + slash + key, extension.lower()
