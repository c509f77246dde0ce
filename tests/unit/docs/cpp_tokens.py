"""Splits C++ into tokens, without comments and preprocessor lines. No I/O."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<nothing>
        ^[ \t]*\#(?:\\\n|[^\n])*                # of the preprocessor
      | //(?:\\\n|[^\n])*
      | /\*.*?\*/
      | [ \t\r\f\v]+
      | \n
    )
  | (?P<text>
        (?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
      | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
      | (?:u8|[uUL])?'(?:\\.|[^'\\\n])+'
    )
  | (?P<other>
        \.?\d(?:[eEpP][+-]|'?[\w.])*            # 1'000, 0x1p-3
      | [A-Za-z_]\w*
      | ::|->|<=>|<<|<=|>=|[=!]=|&&|\|\||\.\.\.
      | .
    )
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Code:
    tokens: Sequence[str]
    partner: Sequence[int]  # for a bracket the position of its partner, for other tokens 0


def matches(text: str) -> Iterator[re.Match[str]]:
    """All of the text, including comments. `lastgroup` is "text" for strings and "nothing" for comments and white
    space."""
    return _TOKEN.finditer(text)


def tokens_of(text: str) -> list[str]:
    """The tokens; every string and character is `""`."""
    return [
        '""' if match.lastgroup == "text" else match[0]
        for match in matches(text)
        if match.lastgroup != "nothing"
    ]


def read(text: str) -> Code:
    tokens = tokens_of(text)
    partner = [0] * len(tokens)
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token in _CLOSING:
            opened.append(at)
        elif token in (")", "]", "}"):
            if not opened or _CLOSING[tokens[opened[-1]]] != token:
                raise ValueError(f"{token} closes nothing after {' '.join(tokens[max(0, at - 8) : at])}")
            partner[at] = opened.pop()
            partner[partner[at]] = at
    if opened:
        begin = opened[-1]
        raise ValueError(f"nothing closes {' '.join(tokens[max(0, begin - 8) : begin + 1])}")
    return Code(tokens, partner)


def is_name(token: str) -> bool:
    return token[0].isalpha() or token[0] == "_"


def past_angles(tokens: Sequence[str], at: int) -> int | None:
    """The position after the `>` that belongs to the `<` at `at`; None if the `<` is a comparison."""
    angles = brackets = 0
    for position in range(at, len(tokens)):
        token = tokens[position]
        if token in _CLOSING:
            brackets += 1
        elif token in (")", "]", "}"):
            brackets -= 1
            if brackets < 0:
                return None
        elif brackets == 0 and token in ("<", ">", ";"):
            angles += {"<": 1, ">": -1}.get(token, 0)
            if token == ";":
                return None
            if angles == 0:
                return position + 1
    return None
