"""Reads the final model of a job, which is stored next to its checkpoints."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch

from ..errors import PliantError

_DTYPES = {
    "F32": torch.float32, "F64": torch.float64, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
    "BOOL": torch.bool, "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2,
}  # fmt: skip


def read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    """All tensors of a safetensors file (a length, a header in JSON, the bytes)."""
    data = bytearray(path.read_bytes())
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype, shape = _DTYPES[entry["dtype"]], entry["shape"]
        if begin == end:
            tensors[name] = torch.empty(shape, dtype=dtype)
            continue
        # A copy: the offset in the file may not be aligned for this type.
        part = torch.frombuffer(data[8 + length + begin : 8 + length + end], dtype=dtype)
        tensors[name] = part.reshape(shape)
    return tensors


def load_final_model(
    tensors: Mapping[str, torch.Tensor], names: Mapping[str, str] | None, checkpoint_dir: str
) -> None:
    """Loads the final model into these tensors, in a learner that joined after the training was
    complete. `names`: those in the files, by name of a tensor; None: they are the same, and all
    tensors are there."""
    folder = Path(checkpoint_dir) / "final"
    ours = {name: name for name in tensors} if names is None else {t: o for o, t in names.items()}
    missing = set(ours)
    try:
        listed = json.loads((folder / "manifest.json").read_text())["files"]
        for name in (file["name"] for file in listed):
            if not name.endswith(".safetensors"):
                continue
            for theirs, value in read_safetensors(folder / name).items():
                with torch.no_grad():
                    tensors[ours[theirs]].copy_(value)
                missing.discard(theirs)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise PliantError(f"the final model cannot be loaded from {folder}: {error}") from error
    if missing:
        raise PliantError(f"{folder} is of another model: it lacks {sorted(missing)[:10]}")
