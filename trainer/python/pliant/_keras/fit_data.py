"""The data of pliant.keras.fit, as Keras takes its arguments apart."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from ..errors import InvalidProgram


def data_of(
    x: Any,
    y: Any,
    sample_weight: Any,
    class_weight: Mapping[int, float] | None,
    validation_split: float,
    validation_data: Any,
) -> tuple[Any, Any]:
    """The training data and the validation data; None: there are none."""
    if y is None:
        for name, given in (
            ("sample_weight", sample_weight is not None),
            ("class_weight", class_weight is not None),
            ("validation_split", validation_split != 0),
        ):
            if given:
                raise InvalidProgram(f"{name} needs arrays: give x and y")
        return x, _validation(validation_data)
    if sample_weight is not None and class_weight is not None:
        raise InvalidProgram("sample_weight and class_weight are given: give one of them")
    parts = _arrays((x, y) if sample_weight is None else (x, y, sample_weight))
    if class_weight is not None:
        parts = (*parts, _weights_of_classes(parts[1], class_weight))
    if not 0 <= validation_split < 1:
        raise InvalidProgram(f"validation_split is {validation_split}: it must be from 0 to below 1")
    if validation_split == 0 or validation_data is not None:
        return parts, _validation(validation_data)
    # As model.fit does: the last samples, before they are ordered.
    size = len(keras.tree.flatten(parts)[0])
    kept = int(size * (1 - validation_split))
    return _rows(parts, slice(None, kept)), _rows(parts, slice(kept, None))


def _validation(data: Any) -> Any:
    if isinstance(data, tuple | list):
        if len(data) not in (2, 3):
            raise InvalidProgram("validation_data must be (x, y) or (x, y, sample_weight)")
        return _arrays(tuple(data))
    return data


def _arrays(parts: Any) -> Any:
    """Arrays of other libraries, in host memory, become arrays of numpy."""
    return keras.tree.map_structure(np.asarray, parts)


def _rows(parts: Any, rows: slice) -> Any:
    return keras.tree.map_structure(lambda array: array[rows], parts)


def _weights_of_classes(truth: Any, weights: Mapping[int, float]) -> Any:
    """The weight of each sample, by its class."""
    if not hasattr(truth, "shape") or truth.ndim > 2:
        raise InvalidProgram("class_weight needs one output of classes: give sample_weight")
    one_hot = truth.ndim == 2 and truth.shape[1] > 1
    classes = truth.argmax(axis=1) if one_hot else truth.reshape(-1).round().astype(int)
    return np.array([weights.get(int(each), 1.0) for each in classes], dtype="float32")
