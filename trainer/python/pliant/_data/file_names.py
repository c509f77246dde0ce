"""Names of files, written out or with braces: `{000..127}` for numbers, `{a,b}` for words."""

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ..errors import InvalidProgram

_MAX_FILES = 1_000_000
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d{1,9})\.\.(\d{1,9})")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_EXAMPLE = '"folder/{000..127}.tar"'


def names_of(files: Any) -> list[str]:
    """The names of the files that a program gives: a name, with braces perhaps, or a list of them.
    Raises InvalidProgram with the remedy for anything else."""
    patterns = [files] if isinstance(files, str | bytes | os.PathLike) else _listed(files)
    names: list[str] = []
    for pattern in patterns:
        for name in _expanded(_checked(pattern)):
            names.append(name)
            if len(names) > _MAX_FILES:
                raise InvalidProgram(f"files is {files!r}: at most {_MAX_FILES} names are accepted")
    if not names:
        raise InvalidProgram(f"files is empty: give names of tar files, for example {_EXAMPLE}")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidProgram(f"files has {name!r} twice: give each file once")
        seen.add(name)
    return names


def _listed(files: Any) -> Iterable[Any]:
    kind = type(files)
    if "resampled" in kind.__name__.lower() or getattr(files, "resampled", False) is True:
        raise InvalidProgram(
            f"files is a {kind.__name__}, which draws files again and again: it has no epoch, in "
            f"which each sample is used once. Give the names of its files, for example {_EXAMPLE}"
        )
    if not isinstance(files, list | tuple):
        raise InvalidProgram(
            f"files is a {kind.__module__}.{kind.__name__}: it must be a name or a list of names, "
            f"for example {_EXAMPLE}"
        )
    return files


def _checked(name: Any) -> str:
    if not isinstance(name, str | os.PathLike):
        raise InvalidProgram(
            f"files has {name!r}: it must be the name of a tar file, for example {_EXAMPLE}"
        )
    text = os.fsdecode(name)
    if not text or "\0" in text:
        raise InvalidProgram(f"files has {text!r}: it must be the name of a tar file")
    if text == "-" or "::" in text or _ELSEWHERE.match(text):
        raise InvalidProgram(
            f"files has {text!r}: samples are read by their place in a local file. Copy the files "
            "to a volume, or mount the bucket, and give their names there"
        )
    return text


def _expanded(pattern: str) -> Iterator[str]:
    """Expands the first braces, then the rest: the last number changes first."""
    found = _BRACES.search(pattern)
    if found is None:
        yield pattern
        return
    for choice in _choices(found[1], pattern):
        for rest in _expanded(pattern[found.end() :]):
            yield pattern[: found.start()] + choice + rest


def _choices(inside: str, pattern: str) -> Iterator[str]:
    numbers = _RANGE.fullmatch(inside)
    if numbers is not None:
        first, last = int(numbers[1]), int(numbers[2])
        if first > last:
            raise InvalidProgram(f"files has {pattern!r}: {{{inside}}} counts down: exchange them")
        width = len(numbers[1]) if numbers[1].startswith("0") else 0
        yield from (f"{number:0{width}}" for number in range(first, last + 1))
    elif "," in inside:
        yield from inside.split(",")
    else:
        raise InvalidProgram(
            f"files has {pattern!r}: {{{inside}}} must be {{first..last}} or {{one,other}}"
        )
