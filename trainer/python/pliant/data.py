"""Data in the formats of other libraries, each sample once an epoch for any history of learners.

stream = load_dataset("parquet", data_files="*.parquet", split="train", streaming=True)
train_data = pliant.data.HuggingFace(stream, shuffle=10_000)
train_data = pliant.data.WebDataset("folder/{000..127}.tar", decode=to_tensors)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._data.hugging_face import HuggingFace
    from ._data.web_dataset import WebDataset

__all__ = ["HuggingFace", "WebDataset"]

# Imported at first use, so that `import pliant` stays quick.
_LAZY = {"HuggingFace": "._data.hugging_face", "WebDataset": "._data.web_dataset"}


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name], __package__), name)
