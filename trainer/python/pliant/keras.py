"""`model.fit` of a Keras model as an elastic training:

    import pliant.keras

    history = pliant.keras.fit(model, images, labels, epochs=10, batch_size=256)

The loss, the metrics and the optimizer are those of `model.compile`.
"""

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import keras

from ._accelerator import seed_once
from ._keras.compiled import CompiledObjective
from ._keras.elastic import begin
from ._keras.fit import Fit
from ._keras.fit_callbacks import FitCallbacks
from ._keras.fit_data import data_of
from ._settings import KerasSettings
from .errors import InvalidProgram
from .process import Guard

__all__ = ["fit"]

# In a job, so that a script that seeds nothing builds the same model on each learner.
if "PLIANT_SEED" in os.environ:
    seed_once()

# Settings of pliant.attach whose place here is taken.
_TAKEN = {
    "loss": "model.compile(loss=...) has it",
    "test_data": "give validation_data",
    "evaluate": "the model's loss and metrics evaluate",
    "max_steps": "give epochs",
    "evaluate_every": "an evaluation follows each epoch",
}
_SETTINGS = (
    "logical_shards", "seed", "num_workers", "checkpoint_dir", "checkpoint_every_steps",
    "on_nonfinite", "threads", "name",
)  # fmt: skip
# Arguments of model.fit that have no counterpart.
_NOT_HERE = {
    "initial_epoch": "the training resumes from its own newest checkpoint",
    "steps_per_epoch": "an epoch is a pass over the data",
    "validation_steps": "an evaluation is a pass over the validation data",
    "validation_batch_size": "an evaluation is computed in batches of a logical shard",
    "validation_freq": "an evaluation follows each epoch",
    "shuffle": "the job's seed orders the samples",
}


def fit(
    model: keras.Model,
    x: Any = None,
    y: Any = None,
    batch_size: int | None = None,
    epochs: int = 1,
    verbose: Any = "auto",
    callbacks: Any = None,
    validation_split: float = 0.0,
    validation_data: Any = None,
    class_weight: Mapping[int, float] | None = None,
    sample_weight: Any = None,
    **settings: Any,
) -> keras.callbacks.History:
    """Trains as `model.fit` does, with the arguments of that, and returns its History. In a pod of
    an ElasticTrainingJob learners join and leave meanwhile; elsewhere this process trains alone.

    x: arrays, nested as the model's inputs are, or a map-style data set of (inputs, truth) and no y.
    batch_size: samples of a global batch. None: those of the job, else 32.
    callbacks: of Keras, and of Pliant, such as pliant.WandB.
    settings: further ones of pliant.attach: logical_shards, seed, num_workers, checkpoint_dir,
        checkpoint_every_steps, on_nonfinite, threads, name.

    Raises InvalidProgram for what cannot be elastic, before the first step.
    """
    guard = Guard()
    with guard.beginning():
        _check(model, settings)
        train, test = data_of(
            x, y, sample_weight, class_weight, validation_split, validation_data
        )
        if batch_size is None and "PLIANT_GLOBAL_BATCH_SIZE" not in os.environ:
            batch_size = 32  # as model.fit
        chosen = KerasSettings(
            **settings, epochs=epochs, batch_size=batch_size, loss=model.loss, test_data=test
        )
        told = FitCallbacks(callbacks, verbose)
        elastic = begin(
            guard,
            model,
            model.optimizer,
            train,
            chosen,
            lambda batch: CompiledObjective(model, batch),
        )
        training = Fit(elastic, model, told)
    return training.run()


def _check(model: Any, settings: Mapping[str, Any]) -> None:
    if not isinstance(model, keras.Model):
        raise InvalidProgram(f"the model is a {type(model).__name__}: it must be a keras.Model")
    if not model.compiled or model.loss is None:
        raise InvalidProgram(
            "the model has no loss: call model.compile(optimizer, loss, metrics=[...]) before"
        )
    known = {each.name for each in fields(KerasSettings)}
    for name in settings:
        if name not in known and name not in _NOT_HERE:
            raise InvalidProgram(
                f"fit has no argument {name}: it has those of model.fit, and {', '.join(_SETTINGS)}"
            )
        if name in _TAKEN:
            raise InvalidProgram(f"fit has no {name}: {_TAKEN[name]}")
        if name in _NOT_HERE:
            raise InvalidProgram(f"{name} has no place in an elastic training: {_NOT_HERE[name]}")
