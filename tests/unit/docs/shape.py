#!/usr/bin/env python3
"""The sizes of the product's C++ classes and files, and their limits.

`shape.py` prints the sizes, with `--json` for programs. test_shape.py checks them against the limits below.
"""

import argparse
import json
import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import cpp_classes

_ROOT = Path(__file__).resolve().parents[3]
_PRODUCT = ("base", "cli", "operator", "simulator", "trainer")
CPP = (".cc", ".h", ".c", ".cu", ".cuh")
_CODE = (*CPP, ".py")
_SHOWN = 10

Figures = Mapping[tuple[str, str], int]  # by name of the class or file, and kind of size

FIELDS, METHODS, CYCLE = "fields", "methods", "methods in one cycle of calls"  # per class
LINES, MEDIAN = "lines", "lines in the median"
PLACES = "branches on where gradients are"  # host memory, or a device
LIMITS = {FIELDS: 32, METHODS: 45, CYCLE: 10, LINES: 500, MEDIAN: 80, PLACES: 15}

# The trainer asks in few places where gradients are: two types of one interface answer everywhere else.
_BRANCH = re.compile(r"\bif\b|\?|&&|\|\|")
_PLACE = re.compile(r"\b(on_device_?|device_gradients_?|gradient_device|keeps_means|device_step)\b")
_PLACE_FOLDERS = tuple(f"trainer/{each}/" for each in ("binding", "collective", "process", "protocol", "runtime"))


@dataclass(frozen=True)
class ClassShape:
    name: str
    file: str
    fields: int
    methods: int
    cycle: tuple[str, ...]  # method names of the largest cycle: overloads count as one


@dataclass(frozen=True)
class Shape:
    classes: tuple[ClassShape, ...]
    lines: Mapping[str, int]  # per file
    places: tuple[str, ...] = ()  # FILE:LINE of each branch on where gradients are

    @property
    def median(self) -> int:
        return math.ceil(statistics.median(self.lines.values())) if self.lines else 0


def largest_cycle(calls: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """The largest set of methods of which each directly or indirectly calls all others. A method that calls only itself
    is none."""
    reach = {name: _reached(calls, name) for name in calls}
    cycles = (sorted(each for each in reach[name] if name in reach.get(each, ())) for name in sorted(calls))
    longest = max(cycles, key=len, default=[])
    return tuple(longest) if len(longest) > 1 else ()


def _reached(calls: Mapping[str, Iterable[str]], begin: str) -> set[str]:
    found: set[str] = set()
    ahead = list(calls.get(begin, ()))
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += calls.get(name, ())
    return found


def measure(files: Mapping[str, str]) -> Shape:
    """`files`: the texts, by path from the root. The bodies of a class's methods may be in any of them."""
    units = [cpp_classes.parse(file, text) for file, text in sorted(files.items()) if file.endswith(CPP)]
    classes = {each.path: each for unit in units for each in unit.classes}
    bodies: dict[cpp_classes.Path, list[cpp_classes.Body]] = {}
    for body in (body for unit in units for body in unit.bodies):
        if path := _class_of(body, classes):
            bodies.setdefault(path, []).append(body)
    return Shape(
        tuple(_shape_of(each, bodies.get(path, ())) for path, each in classes.items()),
        {file: len(text.splitlines()) for file, text in files.items()},
        tuple(place for file, text in sorted(files.items()) for place in _places(file, text)),
    )


def _places(file: str, text: str) -> list[str]:
    if not file.startswith(_PLACE_FOLDERS) or not file.endswith(CPP):
        return []
    code = (line.split("//")[0] for line in text.splitlines())
    return [f"{file}:{at}" for at, line in enumerate(code, 1) if _BRANCH.search(line) and _PLACE.search(line)]


def _class_of(body: cpp_classes.Body, classes: Mapping[cpp_classes.Path, object]) -> cpp_classes.Path | None:
    """Resolves the qualifiers before the function's name, from the innermost scope outwards."""
    outermost = 0 if body.qualifiers else len(body.scope)
    for depth in range(len(body.scope), outermost - 1, -1):
        path = (*body.scope[:depth], *body.qualifiers)
        if path in classes:
            return path
    return None


def _shape_of(of: cpp_classes.Class, bodies: Iterable[cpp_classes.Body]) -> ClassShape:
    called = frozenset(of.methods) - {of.path[-1]}  # using the class's own name makes another object
    calls: dict[str, set[str]] = {}
    for body in bodies:
        calls.setdefault(body.name, set()).update(cpp_classes.calls(body, called))
    name = "::".join(part for part in of.path if part not in ("pliant", of.file))
    return ClassShape(name, of.file, len(of.fields), len(of.methods), largest_cycle(calls))


def figures(shape: Shape) -> dict[tuple[str, str], int]:
    """All sizes that have a limit. If two classes have the same name, the larger size counts."""
    found = {(file, LINES): lines for file, lines in shape.lines.items()}
    found["all files", MEDIAN] = shape.median
    found["the trainer", PLACES] = len(shape.places)
    for each in shape.classes:
        for what, figure in ((FIELDS, each.fields), (METHODS, each.methods), (CYCLE, len(each.cycle))):
            found[each.name, what] = max(figure, found.get((each.name, what), 0))
    return found


def complaints(found: Figures) -> list[str]:
    return [
        f"{name}: {figure} {what}, and {LIMITS[what]} at most are allowed"
        for (name, what), figure in sorted(found.items())
        if figure > LIMITS[what]
    ]


def for_people(shape: Shape) -> str:
    blocks = [
        _block("Fields", FIELDS, shape, lambda each: each.fields),
        _block("Methods", METHODS, shape, lambda each: each.methods),
        _block("Methods in a cycle of calls", CYCLE, shape, lambda each: len(each.cycle)),
        _table("Lines", LINES, [(lines, file, "") for file, lines in shape.lines.items()]),
        "\n".join([f"Branches on where gradients are (at most {LIMITS[PLACES]})", *shape.places]),
        f"{len(shape.lines)} files, {sum(shape.lines.values())} lines, {len(shape.classes)} classes. "
        f"The median file has {shape.median} lines (at most {LIMITS[MEDIAN]}).",
    ]
    return "\n\n".join(blocks)


def _block(title: str, what: str, shape: Shape, figure: Callable[[ClassShape], int]) -> str:
    return _table(title, what, [(figure(each), each.name, each.file) for each in shape.classes])


def _table(title: str, what: str, rows: Iterable[tuple[int, str, str]]) -> str:
    """The largest ones, and all that exceed the limit; the latter have a mark."""
    ordered = sorted(rows, key=lambda row: (-row[0], row[1:]))
    shown = [row for at, row in enumerate(ordered) if row[0] and (at < _SHOWN or row[0] > LIMITS[what])]
    width = max((len(name) for _, name, _ in shown), default=0)
    lines = [
        f"{'!' if figure > LIMITS[what] else ' '}{figure:5}  {name:{width}}  {file}".rstrip()
        for figure, name, file in shown
    ]
    return "\n".join([f"{title} (at most {LIMITS[what]})", *lines])


def for_programs(shape: Shape) -> str:
    classes = [
        {"name": each.name, "file": each.file, "fields": each.fields, "methods": each.methods, "cycle": each.cycle}
        for each in sorted(shape.classes, key=lambda each: (each.name, each.file))
    ]
    whole = {"limits": LIMITS, "median": shape.median, "lines": shape.lines, "places": shape.places, "classes": classes}
    return json.dumps(whole, indent=1, sort_keys=True)


def product(suffixes: tuple[str, ...] = _CODE) -> dict[str, str]:
    files = (path for top in _PRODUCT for path in (_ROOT / top).rglob("*") if path.suffix in suffixes)
    return {str(path.relative_to(_ROOT)): path.read_text() for path in files}


def main() -> None:
    parser = argparse.ArgumentParser(description="How large the product's classes and files are.")
    parser.add_argument("--json", action="store_true", help="for programs")
    shape = measure(product())
    print(for_programs(shape) if parser.parse_args().json else for_people(shape))


if __name__ == "__main__":
    main()
