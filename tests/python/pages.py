"""The scripts with which pages of docs/ begin."""

import pathlib
import re

DOCS = pathlib.Path(__file__).parents[2] / "docs"


def script_of(page):
    return re.search("```python\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.DOTALL)[1]
