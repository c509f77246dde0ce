"""Members of a tar file by their headers, without their contents: ustar, pax and GNU long names.

Python's tarfile is not used: it reads an extended header of any size into memory, and keeps all
members. Here memory is bounded, whatever the file contains.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

BLOCK = 512  # bytes; headers and contents begin at multiples
_MAX_EXTENDED = 1 << 20  # bytes of a long name or of pax records
_LOOKED_AT = 1 << 16  # bytes behind the end; tar fills up to 10 KiB with zeros

_REGULAR = (b"0", b"\0", b"7")
_WITHOUT_CONTENT = (b"1", b"2", b"3", b"4", b"5", b"6")  # links, devices, folders, pipes
_PAX, _PAX_OF_SOLARIS, _PAX_GLOBAL = b"x", b"X", b"g"
_LONG_NAME, _LONG_LINK, _SPARSE = b"L", b"K", b"S"

# Returns bytes of the file: read(offset, length). Fewer bytes: the file ends there.
Read = Callable[[int, int], bytes]


class BadTar(ValueError):
    """The bytes are not a tar file that can be read here. The message says where and why."""


@dataclass(frozen=True)
class Member:
    name: str
    begin: int  # offset of its first header
    content: int  # offset of its content
    size: int  # bytes of the content
    regular: bool  # a file, not a folder or a link

    @property
    def end(self) -> int:
        return self.content + _padded(self.size)


def members(read: Read, begin: int, end: int, *, whole: bool) -> Iterator[Member]:
    """The members between two offsets. `whole`: the range is a complete tar file, which must have
    the block of zeros that ends it."""
    at = begin
    while at < end:
        member = _member(read, at, end)
        if member is None:
            if any(read(at, min(end - at, _LOOKED_AT))):
                raise BadTar(
                    f"it ends at byte {at}, and other bytes follow, as in files that are joined: "
                    "write one from all of them"
                )
            return
        yield member
        at = member.end
    if whole:
        raise BadTar(f"it ends at byte {end} without the blocks of zeros of a complete tar file")


def _member(read: Read, begin: int, end: int) -> Member | None:
    """The member whose headers begin here. None: the block of zeros is here."""
    name: str | None = None
    size: int | None = None
    at = begin
    while True:
        header = _exactly(read, at, BLOCK, end)
        if at == begin and not any(header):
            return None
        _check_sum(header, at)
        kind, written = header[156:157], _number(header[124:136], at)
        at += BLOCK
        if kind in (_LONG_NAME, _LONG_LINK, _PAX, _PAX_OF_SOLARIS, _PAX_GLOBAL):
            if written > _MAX_EXTENDED:
                raise BadTar(f"the extended header at byte {at - BLOCK} has {written} bytes")
            extended = _exactly(read, at, written, end)
            at += _padded(written)
            if kind == _LONG_NAME:
                name = _text(extended)
            elif kind in (_PAX, _PAX_OF_SOLARIS):
                name, size = _pax(extended, name, size, at)
            continue
        if kind == _SPARSE:
            raise BadTar(f"the file at byte {begin} is stored as sparse: write it without --sparse")
        named = _name(header) if name is None else name
        regular = kind in _REGULAR and not (kind == b"\0" and named.endswith("/"))
        length = written if size is None else size
        member = Member(named, begin, at, 0 if kind in _WITHOUT_CONTENT else length, regular)
        if member.content + member.size > end:
            raise BadTar(
                f"{named[:200]!r} at byte {begin} has {member.size} bytes, and the file ends at "
                f"byte {end}"
            )
        return member


def _exactly(read: Read, at: int, length: int, end: int) -> bytes:
    data = read(at, length) if at + length <= end else b""
    if len(data) != length:
        raise BadTar(f"it ends at byte {end}, in the header at byte {at}")
    return data


def _check_sum(header: bytes, at: int) -> None:
    field, rest = header[148:156], header[:148] + header[156:]
    found = _number(field, at)
    expected = sum(rest) + len(field) * ord(" ")  # the field itself counts as spaces
    # Old programs summed signed bytes.
    if found != expected and found != expected - 256 * sum(byte >= 128 for byte in rest):
        raise BadTar(f"there is no header at byte {at}")


def _number(field: bytes, at: int) -> int:
    """Octal digits or, for large numbers, binary after a first byte of 0x80."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.split(b"\0")[0].strip()
    if not digits:
        return 0
    try:
        if not digits.isdigit():  # int() takes signs and underscores
            raise ValueError
        return int(digits, 8)
    except ValueError:
        raise BadTar(f"there is no header at byte {at}") from None


def _pax(data: bytes, name: str | None, size: int | None, at: int) -> tuple[str | None, int | None]:
    """Name and size in records of the form `<length of the record> <key>=<value>\\n`."""
    while data:
        digits, space, _ = data.partition(b" ")
        length = int(digits) if digits.isdigit() and len(digits) < 9 else 0
        record = data[len(digits) + 1 : length]
        if not space or length > len(data) or not record.endswith(b"\n") or b"=" not in record:
            raise BadTar(f"the extended header before byte {at} is damaged")
        key, _, value = record[:-1].partition(b"=")
        if key == b"path":
            name = _text(value)
        elif key == b"size":
            if not value.isdigit() or len(value) > 19:
                raise BadTar(f"the size before byte {at} is no number")
            size = int(value)
        elif key.startswith(b"GNU.sparse."):
            raise BadTar(f"the file at byte {at} is stored as sparse: write it without --sparse")
        data = data[length:]
    return name, size


def _name(header: bytes) -> str:
    name = _text(header[:100])
    prefix = _text(header[345:500]) if header[257:263] == b"ustar\0" else ""
    return f"{prefix}/{name}" if prefix else name


def _text(field: bytes) -> str:
    return field.split(b"\0")[0].decode("utf-8", "surrogateescape")


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK
