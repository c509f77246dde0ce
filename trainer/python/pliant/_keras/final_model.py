"""The final model of a job as arrays of numpy."""

from pathlib import Path
from typing import Any

import keras
import ml_dtypes
import numpy as np

from .. import _final_files
from ..errors import PliantError
from .names import names_of_weights

_DTYPES = {
    "F32": np.float32, "F64": np.float64, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8, "U8": np.uint8,
    "BOOL": np.bool_,
}  # fmt: skip


def _array(data: bytes, dtype: str, shape: Any) -> np.ndarray:
    return np.frombuffer(data, _DTYPES[dtype]).reshape(shape)


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    return _final_files.read_safetensors(path, _array)


def load_final_model(model: keras.Model, checkpoint_dir: str) -> None:
    """Loads the final model, in a learner that joined after the training was complete."""
    tensors: dict[str, Any] = {}
    for _, values in _final_files.read_final(checkpoint_dir, _array):
        tensors |= values
    names = names_of_weights(model)
    try:
        for variable in model.weights:
            variable.assign(tensors[names[id(variable)]])
    except (ValueError, KeyError) as error:
        raise PliantError(
            f"the final model in {checkpoint_dir} is of another model: {error}"
        ) from error
