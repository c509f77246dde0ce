"""Reads the final model of a job, which is stored next to its checkpoints, in a learner that comes
after the training was complete."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .errors import PliantError

# The tensors of the model that its own library does not read (docs/contracts.md §5).
FURTHER = "further.safetensors"


def read_final(
    checkpoint_dir: str, make: Callable[[bytes, str, Any], Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The files with tensors, each with its tensors by name. `make` makes a tensor of its bytes,
    type and shape. Raises PliantError if there are none, or they cannot be read."""
    folder = Path(checkpoint_dir) / "final"
    try:
        listed = json.loads((folder / "manifest.json").read_text())["files"]
        for name in (file["name"] for file in listed):
            if name.endswith(".safetensors"):
                yield name, read_safetensors(folder / name, make)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise PliantError(f"the final model cannot be loaded from {folder}: {error}") from error


def read_safetensors(path: Path, make: Callable[[bytes, str, Any], Any]) -> dict[str, Any]:
    """All tensors of a safetensors file (a length, a header in JSON, the bytes)."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = make(data[begin:end], entry["dtype"], entry["shape"])
    return tensors
