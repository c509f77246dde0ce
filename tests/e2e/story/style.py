"""Colours, if the output is a terminal that shows them."""

import os
from dataclasses import dataclass
from typing import TextIO

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "cyan": "36", "yellow": "33"}


@dataclass(frozen=True)
class Style:
    colours: bool

    def paint(self, text: str, *names: str) -> str:
        if not self.colours or not names:
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"


def style_of(stream: TextIO) -> Style:
    return Style(colours=stream.isatty() and os.environ.get("TERM", "dumb") != "dumb" and "NO_COLOR" not in os.environ)
