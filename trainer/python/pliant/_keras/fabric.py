"""FabricModel of a Keras model."""

from pathlib import Path
from typing import Any

import keras

from ..errors import InvalidProgram
from ..fabric import FabricModel, write_file
from .elastic import KerasElastic, KerasStep, attach


class KerasFabricModel(FabricModel):
    def __init__(
        self,
        model: keras.Model,
        get_datasets: Any,
        loss_function: Any,
        optimizer: Any,
        *arguments: Any,
        **others: Any,
    ) -> None:
        # One object: callbacks change what trains.
        optimizer = keras.optimizers.get(optimizer)
        super().__init__(model, get_datasets, loss_function, optimizer, *arguments, **others)
        if self._fn_step_train is not None or self._fn_test is not None:
            raise InvalidProgram(
                "fn_step_train and fn_test are for PyTorch: a Keras model is trained by its loss"
            )

    def _attach(self, train_data: Any, test_data: Any, **settings: Any) -> KerasElastic:
        return attach(
            self._model,
            self._optimizer,
            train_data,
            test_data=test_data,
            loss=self._loss_function,
            **settings,
        )

    def _train_batch(self, step: KerasStep, batch: Any) -> None:
        step.train(batch)

    def _save(self, folder: Path) -> Path:
        return write_file(folder, "model.keras", self._model.save)
