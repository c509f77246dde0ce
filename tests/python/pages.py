"""The scripts in pages of docs/."""

import pathlib
import re

DOCS = pathlib.Path(__file__).parents[2] / "docs"


def script_of(page, number=0):
    """The first one, or one of the others."""
    return re.findall("```python\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.DOTALL)[number]
