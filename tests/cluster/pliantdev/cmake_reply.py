"""Reads the graph of targets and tests from a build directory: from CMake's File API, and from
ctest's own files, which also list programs that are not built yet."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import build_image, source_tree
from .code_graph import CODE, Graph, Target, Test, includes_of
from .errors import DevError
from .progress import log_file, phase
from .settings import REPO

_API = Path(".cmake", "api", "v1")
_LONG = "long"

_ADDED = re.compile(r'^add_test\(\[=*\[(.+?)\]=*\] "([^"]+)"', re.MULTILINE)
_LABELS = re.compile(
    r'^set_tests_properties\(\[=*\[(.+?)\]=*\] PROPERTIES .*?\bLABELS "([^"]+)"', re.MULTILINE
)
_SUBFOLDER = re.compile(r'^subdirs\("(.+?)"\)', re.MULTILINE)


def load(preset: str) -> Graph:
    """Configures the preset, and reads CMake's answer."""
    build = build_image.build_directory() / preset
    query = build / _API / "query"
    query.mkdir(parents=True, exist_ok=True)
    (query / "codemodel-v2").touch()
    build_image.stage("build", "about 5 min")
    with phase(f"Configuring ({preset})"):
        build_image.run(
            ["cmake", "--preset", preset],
            log_file(f"configure-{preset}"),
            f"configuring ({preset})",
        )
    return read(build, REPO)


def read(build: Path, source: Path) -> Graph:
    replies = build / _API / "reply"
    indexes = sorted(replies.glob("index-*.json"))
    if not indexes:
        raise DevError(f"CMake has left no answer in {replies}", remedy=f"remove {build}")
    index = json.loads(indexes[-1].read_text())
    model = json.loads((replies / index["reply"]["codemodel-v2"]["jsonFile"]).read_text())
    (configuration,) = model["configurations"]
    details = [
        json.loads((replies / each["jsonFile"]).read_text()) for each in configuration["targets"]
    ]
    names = {each["id"]: each["name"] for each in details}
    targets = {each["name"]: _target(each, names) for each in details}
    programs = {
        artifact["path"]: each["name"] for each in details for artifact in each.get("artifacts", [])
    }
    root = Path(model["paths"]["build"])
    tests = {each.name: each for each in _tests(build, root, "", programs)}
    return Graph(targets, tests, _includes(source))


def _target(detail: dict[str, Any], names: dict[str, str]) -> Target:
    folder = detail["paths"]["source"]
    return Target(
        name=detail["name"],
        folder="" if folder == "." else folder,
        sources=frozenset(each["path"] for each in detail.get("sources", [])),
        needs=frozenset(names[each["id"]] for each in detail.get("dependencies", [])),
        compiled=detail["type"] != "UTILITY",
    )


def _tests(build: Path, root: Path, folder: str, programs: dict[str, str]) -> Iterator[Test]:
    """`root`: the path of `build` inside the build image."""
    text = (build / folder / "CTestTestfile.cmake").read_text()
    labels = {name: value.split(";") for name, value in _LABELS.findall(text)}
    for name, program in _ADDED.findall(text):
        own = [label for label in labels.get(name, []) if label != _LONG]
        yield Test(
            name=name,
            set=own[0] if own else "",
            folder=folder,
            program=programs.get(program.removeprefix(f"{root}/")),
            long=_LONG in labels.get(name, []),
        )
    for each in _SUBFOLDER.findall(text):
        yield from _tests(build, root, str(Path(folder, each)), programs)


def _includes(source: Path) -> dict[str, frozenset[str]]:
    return {
        name: includes_of((source / name).read_text(errors="replace"))
        for name in source_tree.files(source)
        if name.endswith(CODE)
    }
