"""Reads the final model of a job, which is stored next to its checkpoints."""

import json
from pathlib import Path

import keras
import ml_dtypes
import numpy as np

from ..errors import PliantError
from .names import names_of_weights

_DTYPES = {
    "F32": np.float32, "F64": np.float64, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "I64": np.int64, "I32": np.int32, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """All tensors of a safetensors file (a length, a header in JSON, the bytes)."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            flat = np.frombuffer(data[begin:end], _DTYPES[entry["dtype"]])
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


def load_final_model(model: keras.Model, checkpoint_dir: str) -> None:
    """Loads the final model, in a learner that joined after the training was complete."""
    path = Path(checkpoint_dir) / "final" / "model.safetensors"
    try:
        tensors = read_safetensors(path)
        names = names_of_weights(model)
        for variable in model.weights:
            variable.assign(tensors[names[id(variable)]])
    except (OSError, ValueError, KeyError) as error:
        raise PliantError(f"the final model cannot be loaded from {path}: {error}") from error
