"""Reads the final model of a job, which is stored next to its checkpoints."""

import json
from pathlib import Path

import torch

from ..errors import PliantError

_DTYPES = {
    "F32": torch.float32, "F64": torch.float64, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "U8": torch.uint8, "BOOL": torch.bool,
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


def load_final_model(model: torch.nn.Module, checkpoint_dir: str) -> None:
    """Loads the final model, in a learner that joined after the training was complete."""
    path = Path(checkpoint_dir) / "final" / "model.safetensors"
    try:
        missing, unexpected = model.load_state_dict(read_safetensors(path), strict=False)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise PliantError(f"the final model cannot be loaded from {path}: {error}") from error
    # Tied parameters are written under one name only, so their other names may be missing.
    present = {name for name, _ in model.named_parameters()} | {
        name for name, _ in model.named_buffers()
    }
    persistent = set(model.state_dict())
    if unexpected or (set(missing) & present & persistent):
        raise PliantError(f"{path} is of another model: {sorted([*missing, *unexpected])}")
