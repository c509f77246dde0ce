"""Dependencies of compiled code: CMake's targets and tests, and the #include lines of the project's
files. Pure: cmake_reply.py reads them."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

CODE = (".cc", ".h", ".c", ".cu", ".cuh")

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Target:
    name: str
    folder: str  # folder of its CMakeLists.txt, relative to the source
    sources: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()  # targets that it links, or that are built before it
    compiled: bool = True  # False: only a name for other targets


@dataclass(frozen=True)
class Test:
    name: str
    set: str
    folder: str
    program: str | None = None  # the target that it runs; None: a script
    long: bool = False


@dataclass(frozen=True)
class Graph:
    targets: Mapping[str, Target] = field(default_factory=dict)
    tests: Mapping[str, Test] = field(default_factory=dict)
    # Headers are included by their path from the root of the repository.
    includes: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def readers(self, file: str) -> frozenset[str]:
        """The file and all files that include it, directly or not."""
        return _reach([file], self._included_by)

    def compiled_from(self, file: str) -> frozenset[str]:
        """The targets with a source that reads the file."""
        readers = self.readers(file)
        return frozenset(each.name for each in self.targets.values() if each.sources & readers)

    def of_folder(self, folder: str) -> frozenset[str]:
        """The targets defined by the CMakeLists.txt of a folder and of the folders in it."""
        return frozenset(each.name for each in self.targets.values() if _lies_in(each, folder))

    def affected(self, targets: Iterable[str]) -> frozenset[str]:
        """The targets and all targets that need them, directly or not."""
        return _reach(targets, self._needed_by)

    def tests_of(self, affected: frozenset[str]) -> frozenset[str]:
        """The tests that run an affected program. The programs that a script starts are unknown:
        possibly any of those built for the scripts of its set."""
        return frozenset(
            each.name
            for each in self.tests.values()
            if ({each.program} if each.program else self.programs_of_scripts(each.set)) & affected
        )

    def tests_in(self, folder: str) -> frozenset[str]:
        return frozenset(each.name for each in self.tests.values() if _lies_in(each, folder))

    def programs_of_scripts(self, set_name: str) -> frozenset[str]:
        of_set = self.targets.get(f"{set_name}_tests")
        programs = {each.program for each in self.tests.values()}
        return (
            frozenset(name for name in of_set.needs if name not in programs)
            if of_set
            else frozenset()
        )

    @cached_property
    def _included_by(self) -> Mapping[str, set[str]]:
        return _turned_round(self.includes)

    @cached_property
    def _needed_by(self) -> Mapping[str, set[str]]:
        return _turned_round({each.name: each.needs for each in self.targets.values()})


def includes_of(text: str) -> frozenset[str]:
    return frozenset(_INCLUDE.findall(text))


def _lies_in(each: Target | Test, folder: str) -> bool:
    return not folder or each.folder == folder or each.folder.startswith(f"{folder}/")


def _turned_round(arrows: Mapping[str, Iterable[str]]) -> Mapping[str, set[str]]:
    turned: dict[str, set[str]] = defaultdict(set)
    for begin, ends in arrows.items():
        for end in ends:
            turned[end].add(begin)
    return turned


def _reach(begin: Iterable[str], arrows: Mapping[str, set[str]]) -> frozenset[str]:
    reached: set[str] = set()
    ahead = list(begin)
    while ahead:
        each = ahead.pop()
        if each not in reached:
            reached.add(each)
            ahead += arrows.get(each, ())
    return frozenset(reached)
