"""Selects what a change may have broken: the tests and parts that read its files. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import wrap

from . import file_map
from .code_graph import Graph
from .file_map import (
    ALL_TESTS,
    EVERYTHING,
    FROM_IT,
    KERAS,
    OF_ITS_FOLDER,
    PARTS,
    SCRIPTS,
    SET,
)

# Two tests of about a second always run: documents link to any file and quote messages, the length
# of sources is checked, and the tables of files and of faults are compared with all files.
_ALWAYS = frozenset({"documents_test", "dev_parts_test"})
# The Python package in an image runs these. The code below its binding is the same for every
# framework, so a test with one framework is enough.
_PROGRAMS_OF_PACKAGE = {"pliant", "pliant-coordinator"}
_KERAS_OF_PROGRAMS = KERAS[0]


@dataclass(frozen=True)
class Reach:
    tests: frozenset[str] = frozenset()  # tests of ctest
    parts: frozenset[str] = frozenset()  # other parts, from file_map.PARTS
    targets: frozenset[str] = frozenset()  # targets to compile, whether or not a test runs them

    def __or__(self, other: "Reach") -> "Reach":
        return Reach(
            self.tests | other.tests, self.parts | other.parts, self.targets | other.targets
        )


@dataclass(frozen=True)
class Selection:
    by_file: Mapping[str, Reach] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()  # files without a row in file_map

    @property
    def whole(self) -> Reach:
        whole = Reach(tests=_ALWAYS if self.by_file else frozenset())
        for reach in self.by_file.values():
            whole |= reach
        return whole


def select(files: Iterable[str], graph: Graph) -> Selection:
    by_file, unknown = {}, set()
    for file in sorted(files):
        readers = file_map.readers(file)
        if readers is None:
            unknown.add(file)
            readers = (EVERYTHING,)
        reach = Reach()
        for reader in readers:
            reach |= _reach_of(reader, file, graph)
        by_file[file] = reach
    return Selection(by_file, frozenset(unknown))


def sanitized(reach: Reach, sets: Sequence[str], graph: Graph) -> Reach:
    """The part of it that a sanitizer runs: not the parts, which use programs of the release."""
    tests = {name for name in reach.tests if name in graph.tests and graph.tests[name].set in sets}
    return Reach(tests=frozenset(tests), targets=reach.targets)


def without_cluster(reach: Reach) -> Reach:
    return replace(reach, parts=reach.parts - {*file_map.ON_CLUSTER})


def _reach_of(reader: str, file: str, graph: Graph) -> Reach:
    if reader == EVERYTHING:
        return _all_tests(graph) | Reach(parts=frozenset(PARTS))
    if reader == ALL_TESTS:
        return _all_tests(graph)
    if reader == FROM_IT:
        return _from_it(file, graph)
    if reader == OF_ITS_FOLDER:
        return _of_folder(file.rpartition("/")[0], graph)
    if reader in PARTS:
        return Reach(parts=frozenset({reader}))
    if reader.startswith(SET):
        return _of_set(reader.removeprefix(SET), graph)
    if reader.startswith(SCRIPTS):
        of_set = _of_set(reader.removeprefix(SCRIPTS), graph).tests
        return Reach(tests=frozenset(name for name in of_set if not graph.tests[name].program))
    return Reach(tests=frozenset({reader}))


def _all_tests(graph: Graph) -> Reach:
    targets = frozenset(name for name, target in graph.targets.items() if target.compiled)
    return Reach(tests=_short(graph.tests, graph), targets=targets)


def _of_set(name: str, graph: Graph) -> Reach:
    of_set = [test.name for test in graph.tests.values() if test.set == name]
    return Reach(tests=_short(of_set, graph))


def _from_it(file: str, graph: Graph) -> Reach:
    targets = graph.compiled_from(file)
    if not targets:
        # A deleted or new file, which CMake does not know: use its folder.
        return _of_folder(file.rpartition("/")[0], graph)
    return _of_targets(targets, graph)


def _of_folder(folder: str, graph: Graph) -> Reach:
    """The reach of the folder, or of the closest parent folder that CMake knows."""
    while folder and not graph.of_folder(folder) and not graph.tests_in(folder):
        folder = folder.rpartition("/")[0]
    of_targets = _of_targets(graph.of_folder(folder), graph)
    return of_targets | Reach(tests=_short(graph.tests_in(folder), graph))


def _of_targets(targets: Iterable[str], graph: Graph) -> Reach:
    affected = graph.affected(targets)
    parts = frozenset({_KERAS_OF_PROGRAMS} if affected & _PROGRAMS_OF_PACKAGE else ())
    compiled = frozenset(name for name in affected if graph.targets[name].compiled)
    return Reach(_short(graph.tests_of(affected), graph), parts, compiled)


def _short(tests: Iterable[str], graph: Graph) -> frozenset[str]:
    """The tests that are not long. Long ones run if the table names them, and in ./dev test all."""
    return frozenset(name for name in tests if not graph.tests[name].long)


def explain(selection: Selection, graph: Graph, *, width: int = 100) -> list[str]:
    """Lines that show changed files → what is run for them. Files with the same reach are
    grouped."""
    together: dict[Reach, list[str]] = {}
    for file, reach in selection.by_file.items():
        together.setdefault(reach, []).append(file)
    lines = []
    for reach, files in together.items():
        lines += [f"{file}{' (unknown)' * (file in selection.unknown)}" for file in files]
        lines += wrapped(words(reach, graph), width)
    if selection.by_file:
        lines += ["all changes", *wrapped(", ".join(sorted(_ALWAYS)), width)]
    return lines


def words(reach: Reach, graph: Graph) -> str:
    """The reach as text. Tests of sets that run as a whole are not listed by name."""
    found = [part for part in PARTS if part in reach.parts]
    sets: dict[str, list[str]] = {}
    for name in sorted(reach.tests):
        sets.setdefault(graph.tests[name].set if name in graph.tests else "", []).append(name)
    for set_name, names in sets.items():
        whole = _of_set(set_name, graph).tests
        is_whole = len(whole) > 2 and whole <= {*names}
        found += [f"all of {set_name} ({len(whole)})"] if is_whole else []
        found += [name for name in names if not (is_whole and name in whole)]
    return ", ".join(found) or "nothing"


def wrapped(text: str, width: int) -> list[str]:
    # fmt: off
    return wrap(text, width, initial_indent="  → ", subsequent_indent="    ",
                break_long_words=False, break_on_hyphens=False)
    # fmt: on
