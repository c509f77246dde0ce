#!/usr/bin/env python3
"""Which wordings that slow a reader down stand in comments, messages, documents and names, and how often.

`words.py` prints the counts, `words.py WORDING` each place. test_words.py holds the counts to the limits below.
docs/style.md has the rules.
"""

import argparse
import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import cpp_tokens

ROOT = Path(__file__).resolve().parents[3]
_TOPS = ("base", "crds", "docs", "examples", "helm", "manifests", "operator", "tests", "trainer")
_CPP = (".cc", ".h", ".c", ".cu", ".cuh")
_SUFFIXES = (*_CPP, ".py", ".md", ".yaml")
# They name what is not to be used.
_EXEMPT = frozenset({"docs/style.md", "docs/old-names.md", "tests/unit/docs/words.py", "tests/unit/docs/test_words.py"})
_RELEASED = "tests/unit/api/released/"  # schemas as they were published

COMMENT, PROSE, NAME = "comment", "prose", "name"


@dataclass(frozen=True)
class Passage:
    """A whole comment, another text for people, or a name."""

    kind: str
    line: int
    text: str


@dataclass(frozen=True)
class Wording:
    pattern: re.Pattern[str]
    kinds: tuple[str, ...]
    instead: str
    limit: int  # So often it stands there now. It may become rarer only: then the number is lowered.


def _words(pattern: str, instead: str, limit: int) -> Wording:
    return Wording(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), (COMMENT, PROSE), instead, limit)


WORDINGS = {
    "no-subject": Wording(re.compile(r"\A(?:Of|Who|Whoever|What|Those)\b"), (COMMENT,), "a subject, then a verb", 556),
    "so-long": _words(r"(?:for|after|waits?) so (?:long|many)|so (?:many|long|often) (?:at|as) most", "N seconds, at most N", 23),
    "but-for": _words("but for", "except, apart from", 0),
    "anew": _words("anew", "again, from the beginning", 73),
    "mend": _words("mend(?:s|ed|ing)?", "fix, repair", 6),
    "is-told": _words("(?:is|are|was|were|be|being|been) told", "receives, is notified", 153),
    "give-up": _words("(?:gives?|gave|given|giving) (?:it |them |that )?up", "abort, time out, abandon", 79),
    "all-the-same": _words("all the same|for good|of (?:no )?use", "still, permanently, useful", 49),
    "archaic": _words("nought|borne|whither|thereof|hence", "0, tolerated, so", 1),
    "most-least": Wording(re.compile(r"(?:[a-z0-9]_(?:most|least)_?|k[A-Z]\w*(?:Most|Least))\Z"), (NAME,), "max, min", 0),
}  # fmt: skip


def passages(file: str, text: str) -> Iterator[Passage]:
    if file.endswith(_CPP):
        yield from _of_cpp(text)
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


def _of_python(text: str) -> Iterator[Passage]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield Passage(COMMENT, token.start[0], token.string.lstrip("# "))
    # Not tokens: those of an f-string depend on the version of Python.
    for node in ast.walk(ast.parse(text)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Passage(PROSE, line, node.value)
        for field in ("id", "arg", "attr", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield Passage(NAME, line, name)


def places(wording: Wording, files: Mapping[str, str]) -> list[str]:
    return [
        f"{file}:{each.line}: {each.text}"
        for file, text in sorted(files.items())
        for each in passages(file, text)
        if each.kind in wording.kinds and wording.pattern.search(each.text)
    ]


def complaints(counts: Mapping[str, int], wordings: Mapping[str, Wording]) -> Iterator[str]:
    for name, count in counts.items():
        limit = wordings[name].limit
        if count > limit:
            yield f"{name}: {count} places, and {limit} at most: write {wordings[name].instead}; words.py {name} lists them"
        elif count < limit:
            yield f"{name}: {count} places: lower its limit, {limit}"


def tree() -> dict[str, str]:
    found: Iterable[Path] = (path for top in _TOPS for path in (ROOT / top).rglob("*") if path.suffix in _SUFFIXES)
    files = {str(path.relative_to(ROOT)): path for path in [*found, *ROOT.glob("*.md")]}
    return {
        file: path.read_text()
        for file, path in files.items()
        if file not in _EXEMPT and "/build/" not in file and not file.startswith(_RELEASED)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Wordings that slow a reader down.")
    parser.add_argument("wording", nargs="?", choices=sorted(WORDINGS), help="list its places")
    name = parser.parse_args().wording
    files = tree()
    if name:
        print(*places(WORDINGS[name], files), sep="\n")
        return
    for each, wording in WORDINGS.items():
        print(f"{len(places(wording, files)):5}  {each:14} instead: {wording.instead}")


if __name__ == "__main__":
    main()
