"""The final model of a job as tensors of PyTorch."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch

from .. import _final_files
from ..errors import PliantError

_DTYPES = {
    "F32": torch.float32, "F64": torch.float64, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
    "BOOL": torch.bool, "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2,
}  # fmt: skip


def _tensor(data: bytes, dtype: str, shape: Any) -> torch.Tensor:
    kind = _DTYPES[dtype]
    if not data:
        return torch.empty(shape, dtype=kind)
    return torch.frombuffer(bytearray(data), dtype=kind).reshape(shape)


def read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    return _final_files.read_safetensors(path, _tensor)


def load_final_model(
    tensors: Mapping[str, torch.Tensor],
    names: Mapping[str, str] | None,
    home: Collection[str],
    checkpoint_dir: str,
) -> None:
    """Loads the final model into these tensors. `names`: those in the files, by name of a tensor;
    None: they are the same. `home`: the tensors that may be missing there, as this process has
    them."""
    ours = {theirs: name for name, theirs in (names or {}).items()}
    missing = set(tensors)
    for file, values in _final_files.read_final(checkpoint_dir, _tensor):
        for theirs, value in values.items():
            own = names is None or file == _final_files.FURTHER
            name = theirs if own else ours.get(theirs, "")
            if name not in tensors or tensors[name].shape != value.shape:
                raise PliantError(f"{file} in {checkpoint_dir} is of another model: it has {theirs}")
            with torch.no_grad():
                tensors[name].copy_(value)
            missing.discard(name)
    if names is not None:
        missing -= set(home)
    if missing:
        raise PliantError(
            f"the final model in {checkpoint_dir} is of another model: it lacks "
            f"{', '.join(sorted(missing)[:10])}"
        )
