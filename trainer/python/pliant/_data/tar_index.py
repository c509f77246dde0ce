"""Indices of tar files: where each sample begins and ends. Made once by reading all headers, and
kept as JSON."""

import hashlib
import os
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Any

from .._say import say
from ..errors import InvalidProgram
from . import kept_files
from .tar_members import BadTar
from .tar_samples import spans_of

_MAX_INDEX_BYTES = 1 << 28


@dataclass(frozen=True)
class TarIndex:
    path: str
    bytes: int  # size and time of the file when it was indexed
    changed: int  # nanoseconds
    spans: "array[int]"  # tar_samples.spans_of

    @property
    def samples(self) -> int:
        return len(self.spans) // 2


def indices_of(paths: Sequence[str], folder: Path | None) -> list[TarIndex]:
    """The indices of tar files; `folder` keeps them. Raises InvalidProgram, with the file's name,
    if a file is no tar file."""
    found = {path: _kept(path, folder) for path in paths}
    missing = [path for path, index in found.items() if index is None]
    if missing:
        keeps = "" if folder is None else f", which {folder} keeps"
        say(f"reads the headers of {len(missing)} tar files for their index{keeps}")
    for path in missing:
        found[path] = _made(path, folder)
    return [index for index in (found[path] for path in paths) if index is not None]


class OpenTar:
    """A tar file that is read by offset, so that processes may share it after a fork."""

    def __init__(self, path: str) -> None:
        # A pipe would block, and so is opened without waiting for its writer.
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        status = os.fstat(self._descriptor)
        self.regular = S_ISREG(status.st_mode)
        self.bytes, self.changed = status.st_size, status.st_mtime_ns

    def read(self, offset: int, length: int) -> bytes:
        parts = []
        while length > 0:
            part = os.pread(self._descriptor, length, offset)
            if not part:
                break
            parts.append(part)
            offset, length = offset + len(part), length - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> "OpenTar":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def open_tar(path: str) -> OpenTar:
    try:
        opened = OpenTar(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise InvalidProgram(
            f"files: {path!r} cannot be opened ({error.strerror}): check the name, and that the "
            "volume is mounted in every learner"
        ) from None
    if not opened.regular:
        opened.close()
        raise InvalidProgram(f"files: {path!r} is not a file: give the names of tar files")
    return opened


def _made(path: str, folder: Path | None) -> TarIndex:
    with open_tar(path) as opened:
        try:
            spans = spans_of(opened.read, opened.bytes)
        except BadTar as error:
            raise InvalidProgram(
                f"files: {path!r} is not a tar file that can be read: {error}. Copy or write it "
                "again, or leave it out"
            ) from None
        index = TarIndex(path, opened.bytes, opened.changed, spans)
    if folder is not None:
        content = {"file": _identity(index), "spans": index.spans.tolist()}
        kept_files.write(_file(folder, index), content)
    return index


def _kept(path: str, folder: Path | None) -> TarIndex | None:
    if folder is None:
        return None
    with open_tar(path) as opened:
        index = TarIndex(path, opened.bytes, opened.changed, array("q"))
    content = kept_files.read(_file(folder, index), _MAX_INDEX_BYTES)
    if content is None or content.get("file") != _identity(index):
        return None
    try:
        index.spans.extend(_increasing(content["spans"], index.bytes))
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return index if len(index.spans) % 2 == 0 else None


def _increasing(spans: list[int], size: int) -> Iterator[int]:
    before = 0
    for at in spans:
        if not before <= at * 512 <= size + 511:
            raise ValueError
        before = at * 512
        yield at


def _identity(index: TarIndex) -> dict[str, Any]:
    return {"name": os.path.abspath(index.path), "bytes": index.bytes, "changed": index.changed}


def _file(folder: Path, index: TarIndex) -> Path:
    key = hashlib.sha256(repr(sorted(_identity(index).items())).encode("utf-8", "surrogateescape"))
    return folder / f"{key.hexdigest()[:32]}.json"
