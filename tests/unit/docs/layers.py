"""Which folder may include which, by the table of folders in docs/architecture.md. No I/O."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

_ROW = re.compile(r"^\| `(?P<folder>[a-z0-9_/]+)` \|.*\| (?P<uses>[^|]+) \|$")
_NAME = re.compile(r"`([a-z0-9_/]+)`")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Arrow:
    file: str
    included: str


def table(document: str) -> dict[str, frozenset[str]]:
    """The folders of the table, each with those in its column `uses`. Every row is below the rows that it names."""
    found: dict[str, frozenset[str]] = {}
    for line in document.splitlines():
        if row := _ROW.match(line):
            uses = frozenset(_NAME.findall(row["uses"]))
            if missing := uses - found.keys():
                raise ValueError(f"{row['folder']} uses {', '.join(sorted(missing))}, which no row above it has")
            found[row["folder"]] = uses
    return found


def allowed(uses: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """The folders that each folder may include: itself, and those that it uses directly or indirectly."""
    reach: dict[str, frozenset[str]] = {}
    for folder, direct in uses.items():  # in the table's order, so entries of used folders exist already
        reach[folder] = frozenset({folder}).union(*(reach[each] for each in direct))
    return reach


def folder_of(file: str, folders: Iterable[str]) -> str | None:
    """The innermost folder of the table that holds the file."""
    holding = [each for each in folders if file.startswith(f"{each}/")]
    return max(holding, key=len, default=None)


def arrows(files: Mapping[str, str], uses: Mapping[str, frozenset[str]]) -> set[tuple[str | None, str | None]]:
    """Pairs of folders: of each file, and of each file that it includes."""
    return {
        (folder_of(file, uses), folder_of(included, uses))
        for file, text in files.items()
        for included in _INCLUDE.findall(text)
    }


def forbidden(files: Mapping[str, str], uses: Mapping[str, frozenset[str]]) -> list[Arrow]:
    """Includes that the table does not allow. `files`: the texts, by path from the root."""
    reach = allowed(uses)
    found = []
    for file, text in sorted(files.items()):
        for included in _INCLUDE.findall(text):
            if folder_of(included, uses) not in reach.get(folder_of(file, uses) or "", ()):
                found.append(Arrow(file, included))
    return found


def unlisted(files: Iterable[str], uses: Mapping[str, frozenset[str]]) -> list[str]:
    """Files whose folder has no row of its own."""
    return sorted(file for file in files if str(PurePosixPath(file).parent) not in uses)
