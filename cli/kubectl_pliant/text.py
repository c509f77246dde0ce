"""Texts from elsewhere, made harmless for a terminal and fitted to its width. No I/O."""

from __future__ import annotations

import unicodedata

# Categories that move the cursor, reverse the order of reading or do not show. Cn and Co may be anything.
_HARMFUL = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_WITHOUT_WIDTH = frozenset({"Mn", "Me"})
CUT = "…"


def harmless(text: str, max_chars: int = 1024) -> str:
    """The text on one line, without characters that a terminal acts on."""
    shown = text[:max_chars]
    if not (shown.isascii() and shown.isprintable()):
        shown = "".join(_escaped(each) for each in shown)
    return shown + CUT if len(text) > max_chars else shown


def _escaped(character: str) -> str:
    if unicodedata.category(character) not in _HARMFUL:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}"


def width(text: str) -> int:
    """Columns of a terminal that a harmless text takes."""
    return len(text) if text.isascii() else sum(_width_of(each) for each in text)


def _width_of(character: str) -> int:
    if unicodedata.category(character) in _WITHOUT_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, columns: int | None) -> str:
    """The text in at most `columns` columns; None: whole."""
    if columns is None or width(text) <= columns:
        return text
    kept, used = "", width(CUT)
    for each in text:
        used += _width_of(each)
        if used > columns:
            break
        kept += each
    return kept + CUT


def pad(text: str, columns: int, right: bool = False) -> str:
    space = " " * (columns - width(text))
    return space + text if right else text + space


def wrap(text: str, columns: int | None, indent: str = "") -> list[str]:
    """Lines of at most `columns` columns, broken at spaces; a longer word has a line of its own."""
    if columns is None:
        return [indent + text]
    lines, line = [], indent
    for word in text.split(" "):
        if line != indent and width(line) + 1 + width(word) > columns:
            lines.append(line)
            line = indent
        line += word if line == indent else f" {word}"
    return [*lines, line]


def plural(count: int, noun: str) -> str:
    """For example "1 job" and "2 jobs"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
