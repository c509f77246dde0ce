"""Data of other libraries that a program gives to `pliant.attach` as they are."""

from typing import Any

_WRAPPERS = {
    "datasets": "pliant.data.HuggingFace(data)",
    "webdataset": 'pliant.data.WebDataset("names of its files")',
}


def remedy_for(data: Any) -> str:
    """What to give instead of data that are read from front to back; "": it is not known."""
    wrapper = _WRAPPERS.get(type(data).__module__.partition(".")[0])
    return f"give {wrapper}" if wrapper else ""
