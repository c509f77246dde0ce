"""Pliant: training that grows and shrinks while it runs; the result stays the same.

    import pliant

    elastic = pliant.attach(model, optimizer, train_data, epochs=10, batch_size=256)
    for step in elastic.steps():
        for images, labels in step:
            step.backward(loss_function(model(images), labels))
        step.commit()

`pliant.FabricModel` provides the loop itself. `python -m pliant doctor` checks this machine.
"""

from typing import TYPE_CHECKING, Any

from . import data
from .errors import Diverged, InvalidProgram, PliantError, TrainingFailed

if TYPE_CHECKING:
    from ._attach import attach
    from ._best_model import BestModel
    from ._callback import Callback, LambdaCallback
    from ._evaluation import Evaluation
    from ._loop import Elastic
    from ._requests import request_learners
    from ._step import Step
    from ._streams import StreamShard
    from ._torch.learning_rate import scale_learning_rate
    from ._tracking.mlflow import MLflow
    from ._tracking.wandb import WandB
    from .fabric import FabricModel
    from .callbacks import EarlyStopping, ProgressBar, TensorBoard

__version__ = "0.1.0"

__all__ = [
    "BestModel",
    "Callback",
    "Diverged",
    "EarlyStopping",
    "Elastic",
    "Evaluation",
    "FabricModel",
    "InvalidProgram",
    "LambdaCallback",
    "MLflow",
    "PliantError",
    "ProgressBar",
    "Step",
    "StreamShard",
    "TensorBoard",
    "TrainingFailed",
    "WandB",
    "attach",
    "data",
    "request_learners",
    "scale_learning_rate",
]

# Imported at first use: they import a framework, which takes seconds.
_LAZY = {
    "BestModel": "._best_model",
    "Callback": "._callback",
    "EarlyStopping": ".callbacks",
    "Elastic": "._loop",
    "Evaluation": "._evaluation",
    "FabricModel": ".fabric",
    "LambdaCallback": "._callback",
    "MLflow": "._tracking.mlflow",
    "ProgressBar": ".callbacks",
    "Step": "._step",
    "StreamShard": "._streams",
    "TensorBoard": ".callbacks",
    "WandB": "._tracking.wandb",
    "attach": "._attach",
    "request_learners": "._requests",
    "scale_learning_rate": "._torch.learning_rate",
}


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name], __name__), name)
