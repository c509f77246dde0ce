"""The engine of the framework that Keras runs on."""

import keras

from ..errors import InvalidProgram
from .engine import Engine


def engine_of_backend() -> type[Engine]:
    name = keras.backend.backend()
    if name == "tensorflow":
        from .with_tensorflow import TensorFlow

        return TensorFlow
    if name == "jax":
        from .with_jax import Jax

        return Jax
    if name == "torch":
        from .with_torch import Torch

        return Torch
    raise InvalidProgram(
        f"Keras runs on {name} here: set KERAS_BACKEND to tensorflow, jax or torch"
    )
