"""FabricModel of a Keras model."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import keras

from .._fabric import Framework, Script, write_file
from ..errors import InvalidProgram
from .elastic import KerasStep


class KerasFramework(Framework):
    def __init__(self, script: Script) -> None:
        # One object: callbacks change what trains.
        super().__init__(replace(script, optimizer=keras.optimizers.get(script.optimizer)))
        if script.fn_step_train is not None or script.fn_test is not None:
            raise InvalidProgram(
                "fn_step_train and fn_test are for PyTorch: a Keras model is trained by its loss"
            )

    def settings(self, test_data: Any) -> dict[str, Any]:
        return {"loss": self.script.loss_function}

    def train_batch(self, step: KerasStep, batch: Any) -> None:
        step.train(batch)

    def save(self, folder: Path) -> Path:
        return write_file(folder, "model.keras", self.script.model.save)
