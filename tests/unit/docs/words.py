#!/usr/bin/env python3
"""Wordings that slow a reader down, in comments, messages, documents and names.

None may stand in C++, Python, Markdown or YAML. Names of tests are read as their words.

`words.py` prints each place and what to write instead; test_words.py fails on any. docs/style.md has the rules.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cpp_tokens

ROOT = Path(__file__).resolve().parents[3]
_TOPS = ("base", "cli", "crds", "docs", "examples", "helm", "manifests", "operator", "simulator", "tests", "trainer")
_CPP = (".cc", ".h", ".c", ".cu", ".cuh")
_SUFFIXES = (*_CPP, ".py", ".md", ".yaml")
# They name what is not to be used.
_EXEMPT = frozenset({"docs/style.md", "tests/unit/docs/words.py", "tests/unit/docs/test_words.py"})

COMMENT, PROSE, NAME, TEST = "comment", "prose", "name", "test"


@dataclass(frozen=True)
class Passage:
    """A whole comment, another text for people, a name, or the words of a test's name."""

    kind: str
    line: int
    text: str


@dataclass(frozen=True)
class Wording:
    pattern: re.Pattern[str]
    kinds: tuple[str, ...]
    instead: str


def _words(pattern: str, instead: str) -> Wording:
    return Wording(re.compile(rf"(?i:\b(?:{pattern})\b)"), (COMMENT, PROSE, TEST), instead)


_CONSTANT = r"k[A-Z]\w*(?:Most|Least|Max|Min)|k(?:Most|Least)(?:[A-Z]\w*)?"
_VARIABLE = r"[a-z]\w*_(?:most|least|max|min)_?"
_OF_LIBRARIES = "rlim_max|denorm_min|read_message_max"
WORDINGS = {
    "no-subject": Wording(re.compile(r"\A(?:Of|Who|Whoever|What|Those)\b"), (COMMENT,), "a subject, then a verb"),
    "test-no-subject": Wording(
        re.compile(r"(?i:\A(?:of|who|whoever|whom|whose|what|whatever|that|those|which|whichever|whether|how|why)\b)"),
        (TEST,),
        "the name as a sentence: a subject, which in C++ may be the suite, then a verb",
    ),
    "so-long": _words(
        r"(?:for|after|waits?) so (?:long|many)|so (?:many|long|often) (?:at|as) most", "N seconds, at most N"
    ),
    "but-for": _words("but for", "except, apart from"),
    "anew": _words("anew", "again, from the beginning"),
    "mend": _words("mend(?:s|ed|ing)?", "fix, repair"),
    "is-told": _words("(?:is|are|was|were|be|being|been) told", "receives, is notified"),
    "give-up": _words("(?:gives?|gave|given|giving) (?:it |them |that )?up", "abort, time out, abandon"),
    "go-on": _words("(?:go|goes|going|went) on", "continue"),
    "any-more": _words("any more", "no longer"),
    "beside": _words("beside", "next to, besides, in addition to"),
    "all-the-same": _words("all the same|for good|(?<!direction )of (?:no )?use", "still, permanently, useful"),
    "archaic": _words("nought|borne|whither|thereof|hence", "0, tolerated, so"),
    "limit-last": Wording(
        re.compile(rf"\A(?!(?:{_OF_LIBRARIES})\Z)(?:{_CONSTANT}|{_VARIABLE})\Z"), (NAME,), "max_x, min_x, kMaxX, kMinX"
    ),
}  # fmt: skip
_ANY_OF_KIND = {
    kind: re.compile("|".join(each.pattern.pattern for each in WORDINGS.values() if kind in each.kinds))
    for kind in (COMMENT, PROSE, NAME, TEST)
}
_TEST = re.compile(r"^[ \t]*(?:[A-Z]+_)*(?:TEST|PROP)(?:_[FP])?\(\s*\w+\s*,\s*(\w+)", re.MULTILINE)
_BETWEEN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])")


def passages(file: str, text: str) -> Iterator[Passage]:
    if file.endswith(_CPP):
        yield from _of_cpp(text)
        yield from _test_names(text)
    elif file.endswith(".py"):
        yield from _of_python(text)
    else:
        for number, line in enumerate(text.splitlines(), 1):
            yield Passage(PROSE, number, line)


def _of_cpp(text: str) -> Iterator[Passage]:
    """Lines of // that follow one another are one comment, unless the first stands behind code."""
    line, begin, block, code_before = 1, 0, "", False
    for token in cpp_tokens.matches(text):
        found = token[0]
        if found.startswith("//") and not code_before:
            begin = begin if block else line
            block = f"{block} {found.strip('/ ')}".strip()
        elif found.startswith(("//", "/*")):
            yield Passage(COMMENT, line, found.strip("/* \n"))
        elif found.strip():
            if block:
                yield Passage(COMMENT, begin, block)
                block = ""
            if token.lastgroup == "text":
                yield Passage(PROSE, line, found)
            elif found.isidentifier():
                yield Passage(NAME, line, found)
        code_before = "\n" not in found and (code_before or bool(found.strip()))
        line += found.count("\n")
    if block:
        yield Passage(COMMENT, begin, block)


def _test_names(text: str) -> Iterator[Passage]:
    for test in _TEST.finditer(text):
        yield Passage(TEST, text.count("\n", 0, test.start(1)) + 1, _BETWEEN_WORDS.sub(" ", test[1]))


def _of_python(text: str) -> Iterator[Passage]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield Passage(COMMENT, token.start[0], token.string.lstrip("# "))
    # Not tokens: those of an f-string depend on the version of Python.
    for node in ast.walk(ast.parse(text)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Passage(PROSE, line, node.value)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield Passage(TEST, line, node.name.removeprefix("test_").replace("_", " "))
        for field in ("id", "arg", "attr", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield Passage(NAME, line, name)


@cache
def _rules_broken(kind: str, text: str) -> tuple[str, ...]:
    """One search answers for all rules, because few passages break any; names repeat."""
    if not _ANY_OF_KIND[kind].search(text):
        return ()
    return tuple(name for name, each in WORDINGS.items() if kind in each.kinds and each.pattern.search(text))


def places(files: Mapping[str, str]) -> dict[str, list[str]]:
    """For each rule of WORDINGS the places that break it."""
    found: dict[str, list[str]] = {name: [] for name in WORDINGS}
    for file, text in sorted(files.items()):
        for each in passages(file, text):
            for name in _rules_broken(each.kind, " ".join(each.text.split())):
                found[name].append(f"{file}:{each.line}: {each.text}")
    return found


def tree() -> dict[str, str]:
    found: Iterable[Path] = (path for top in _TOPS for path in (ROOT / top).rglob("*") if path.suffix in _SUFFIXES)
    files = {str(path.relative_to(ROOT)): path for path in [*found, *ROOT.glob("*.md")]}
    return {
        file: path.read_text()
        for file, path in files.items()
        if file not in _EXEMPT and "/build/" not in file
    }


def complaints(files: Mapping[str, str]) -> Iterator[str]:
    for name, found in places(files).items():
        yield from (f"{name}: write {WORDINGS[name].instead}: {place}" for place in found)


def main() -> int:
    found = list(complaints(tree()))
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
