"""Base classes of callbacks and loggers that scripts for Watson Machine Learning Accelerator pass
to FabricModel."""

from typing import Any

from pliant._accelerator import settle_environment

settle_environment()


class Callback:
    """Called on every learner. `params` has the optimizer, the model and the number of epochs.
    Changes to them are made on all learners alike, and reach learners that join. params["stop"]()
    ends the training with the last committed step; all learners must call it at the same step.
    `model` is params["model"]."""

    def __init__(self) -> None:
        self.params: dict[str, Any] = {}
        self.model: Any = None

    def set_params(self, params: dict[str, Any]) -> None:
        self.params = params
        self.model = params.get("model")

    def on_train_begin(self) -> None: ...
    def on_train_end(self) -> None: ...
    def on_epoch_begin(self, epoch: int) -> None: ...
    def on_epoch_end(self, epoch: int) -> None: ...


class LoggerCallback:
    """Called on one learner at a time. log_train_metrics and log_test_metrics may have either of
    two signatures: (loss, acc, completed_batch, worker=0), acc in percent, or (metrics, iteration,
    epoch, workers)."""

    def log_train_metrics(self, *arguments: Any) -> None: ...
    def log_test_metrics(self, *arguments: Any) -> None: ...
    def on_train_begin(self) -> None: ...
    def on_train_end(self) -> None: ...
