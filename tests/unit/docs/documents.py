"""The contents of the documents as data: links, fences, field paths, names. No I/O apart from reading files."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

REPO = Path(__file__).resolve().parents[3]
CRD = REPO / "crds" / "pliant.dev_elastictrainingjobs.yaml"
CRDS = sorted((REPO / "crds").glob("*.yaml"))
JOB_KIND = "ElasticTrainingJob"
CELL_MAX = 200  # characters

_FENCE = re.compile(r"^```(\w*)(?: ([\w=./-]+))?\s*$")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$")
_FIELD = re.compile(r"(?<![\w./-])(?:[A-Z]\w+\.)?(?:spec|status)(?:\.[A-Za-z]\w*)+")
# Matches commands about jobs, in which jsonpath and columns begin with a point.
_JOB_COMMAND = re.compile(r"\b(?:etj|elastictrainingjobs?)\b")
_COMMAND_FIELD = re.compile(r"(?<=\.)(?:spec|status)(?:\.[A-Za-z]\w*)+")
_PATCH = re.compile(r"-p '(\{.*?\})'(?:\s|$)")
_METRIC = re.compile(r"\bpliant_[a-z_]+\b(?!\()")
_SERIES_OF_HISTOGRAM = re.compile(r"_(?:bucket|sum|count)$")
_ROW_NAME = re.compile(r"^\| `([^`]+)` \|")
_VALUE = re.compile(r"`([a-z]\w*(?:\.\w+)+)(?:[=:][^`]*)?`")
_PROGRAM_TEXT = {"cpp", "cmake", "dockerfile"}  # in these, pliant_x is a library or a function


@dataclass(frozen=True)
class Fence:
    language: str
    line: int  # line on which it begins
    text: str
    mark: str = ""  # what follows the language


@dataclass(frozen=True)
class Document:
    path: Path
    prose: tuple[tuple[int, str], ...]  # lines outside of fences, with their numbers
    fences: tuple[Fence, ...]

    @property
    def name(self) -> str:
        return str(self.path.relative_to(REPO)) if self.path.is_relative_to(REPO) else str(self.path)


def undescribed(schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Fields, items and values below `schema` without a description that is a sentence."""
    below = {f"{path}.{name}": field for name, field in schema.get("properties", {}).items()}
    for each, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(each), Mapping):
            below[path + mark] = schema[each]
    for name, field in below.items():
        if not field.get("description", "").endswith("."):
            yield name
        yield from undescribed(field, name)


def parse(path: Path, text: str) -> Document:
    prose: list[tuple[int, str]] = []
    fences: list[Fence] = []
    language: str | None = None
    mark = ""
    begin, inside = 0, []
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if not fence and line.lstrip().startswith("```"):
            raise ValueError(f"{path}:{number}: not a fence that this test reads: {line}")
        if language is None and fence:
            language, mark, begin, inside = fence[1], fence[2] or "", number, []
        elif language is None:
            prose.append((number, line))
        elif line.strip() == "```":
            fences.append(Fence(language, begin, "\n".join(inside), mark))
            language = None
        else:
            inside.append(line)
    if language is not None:
        raise ValueError(f"{path}:{begin}: a fence without an end")
    return Document(path, tuple(prose), tuple(fences))


def read(path: Path) -> Document:
    return parse(path, path.read_text())


def anchors(document: Document) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    found: set[str] = set()
    for _, line in document.prose:
        heading = _HEADING.match(line)
        if not heading:
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        number, unique = 0, slug
        while unique in found:
            number += 1
            unique = f"{slug}-{number}"
        found.add(unique)
    return found


def who_runs(document: Document, run_pages: Collection[str]) -> Iterator[str]:
    """Fences of commands that belong to no page that a test runs, name no test, and do not say that nothing runs them."""
    for fence in document.fences:
        if fence.language not in ("sh", "bash", "shell") or fence.mark == "not-run":
            continue
        runner = REPO / fence.mark.removeprefix("run-by=")
        if not fence.mark and document.name in run_pages:
            continue
        if fence.mark.startswith("run-by=") and runner.is_file() and document.name in runner.read_text():
            continue
        yield f"{document.name}:{fence.line}: mark it not-run, or run-by=FILE where FILE names this document"


def wide_cells(document: Document) -> Iterator[str]:
    """Cells of tables whose text, without marks and targets of links, is too long for a cell."""
    for number, line in document.prose:
        if line.startswith("|"):
            for cell in line.strip("|").split(" | "):
                length = len(re.sub(r"\]\([^)]*\)|[`\[]", "", cell.strip()))
                if length > CELL_MAX:
                    yield f"{document.name}:{number}: a cell of {length} characters"


def broken_links(document: Document) -> Iterator[str]:
    for number, line in document.prose:
        for target in _LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            path = (document.path.parent / file).resolve() if file else document.path
            if not path.exists():
                yield f"{document.name}:{number}: {target}: no such file"
            elif anchor and (path.suffix != ".md" or anchor not in anchors(read(path))):
                yield f"{document.name}:{number}: {target}: no such heading"


def job_schema() -> Mapping[str, Any]:
    return schema_of(yaml.safe_load(CRD.read_text()))


def schema_of(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    (version,) = definition["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]


def schemas() -> Mapping[str, Mapping[str, Any]]:
    """The schemas of all kinds, by kind."""
    definitions = [yaml.safe_load(file.read_text()) for file in CRDS]
    return {each["spec"]["names"]["kind"]: schema_of(each) for each in definitions}


def unknown_field(schema: Mapping[str, Any], path: list[str]) -> str | None:
    """The first part of the path that is not in the schema."""
    for part in path:
        while "items" in schema:
            schema = schema["items"]
        if part not in schema.get("properties", {}):
            return None if schema.get("x-kubernetes-preserve-unknown-fields") else part
        schema = schema["properties"][part]
    return None


def unknown_field_of(schemas: Mapping[str, Mapping[str, Any]], path: str) -> str | None:
    """The same for a path that may begin with a kind: "GpuPool.spec.bounds". Without one it is a job's."""
    first, *rest = path.split(".")
    if first in ("spec", "status"):
        return unknown_field(schemas[JOB_KIND], [first, *rest])
    return unknown_field(schemas[first], rest) if first in schemas else None


def unknown_properties(schema: Mapping[str, Any], value: Any, path: str = "") -> Iterator[str]:
    """Unknown and missing properties of an object."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from unknown_properties(schema.get("items", {}), each, f"{path}[{index}]")
    if not isinstance(value, dict) or "properties" not in schema:
        return
    for name in schema.get("required", []):
        if name not in value:
            yield f"{path}.{name} is missing"
    for name, each in value.items():
        if name in schema["properties"]:
            yield from unknown_properties(schema["properties"][name], each, f"{path}.{name}")
        elif not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{path}.{name} is unknown"


def field_paths(document: Document) -> Iterator[tuple[int, str]]:
    """Paths spec.x.y and status.x.y in the prose, with or without a kind, and in commands about jobs."""
    for number, line in document.prose:
        for field in _FIELD.findall(line):
            yield number, field
    for number, line in _command_lines(document):
        for field in [*_FIELD.findall(line), *_COMMAND_FIELD.findall(line)]:
            if _JOB_COMMAND.search(line):
                yield number, field


def patches(document: Document) -> Iterator[tuple[int, Any]]:
    """The patches that commands merge into jobs."""
    for number, line in _command_lines(document):
        if not _JOB_COMMAND.search(line):
            continue
        for patch in _PATCH.findall(line):
            yield number, yaml.safe_load(patch)


def _command_lines(document: Document) -> Iterator[tuple[int, str]]:
    for fence in document.fences:
        if fence.language == "sh":
            for number, line in enumerate(fence.text.splitlines(), fence.line + 1):
                yield number, line


def yaml_objects(fence: Fence) -> list[Any]:
    return [each for each in yaml.safe_load_all(fence.text) if each is not None]


def metric_names(document: Document) -> Iterator[tuple[int, str]]:
    texts = [*document.prose, *((f.line, f.text) for f in document.fences if f.language not in _PROGRAM_TEXT)]
    for number, text in texts:
        for name in _METRIC.findall(text):
            yield number, name


def documented_metrics() -> set[str]:
    rows = (_ROW_NAME.match(line) for _, line in read(REPO / "docs" / "metrics.md").prose)
    return {row[1] for row in rows if row}


def is_documented(name: str, documented: set[str]) -> bool:
    return name in documented or _SERIES_OF_HISTOGRAM.sub("", name) in documented


def reasons(document: Document) -> Iterator[tuple[int, str]]:
    """The contents of columns with the heading `reason`."""
    column: int | None = None
    for number, line in document.prose:
        cells = [cell.strip() for cell in line.split("|")[1:-1]] if line.startswith("|") else []
        if not cells:
            column = None
        elif "reason" in cells:
            column = cells.index("reason")
        elif column is not None:
            for name in re.findall(r"`([A-Z][A-Za-z]+)`", cells[column]):
                yield number, name


def chart_values(document: Document) -> Iterator[tuple[int, str]]:
    """`a.b`, `a.b=x` and `a.b: x`: everything that may be a value of the chart."""
    for number, line in document.prose:
        for name in _VALUE.findall(line):
            yield number, name


def has_value(values: Any, name: str) -> bool:
    for part in name.split("."):
        if not isinstance(values, dict) or part not in values:
            return False
        values = values[part]
    return True


def literals(folder: Path) -> set[str]:
    """C++ string literals that look like a reason."""
    return {
        literal
        for file in folder.rglob("*.cc")
        for literal in re.findall(r'"([A-Z][A-Za-z]+)"', file.read_text())
    }  # fmt: skip


def table_rows(document: Document, heading: str) -> list[list[str]]:
    """The cells of the table in a section, without its header. Code marks around a whole cell are removed."""
    rows: list[list[str]] = []
    inside = False
    for _, line in document.prose:
        if line.startswith("## "):
            inside = line == f"## {heading}"
        elif inside and line.startswith("| "):
            cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
            rows.append([re.sub(r"^`([^`]*)`$", r"\1", cell) for cell in cells])
    return rows[1:]  # without the line of dashes
