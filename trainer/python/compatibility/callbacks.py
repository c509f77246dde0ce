"""Base classes of what scripts for Watson Machine Learning Accelerator hand to FabricModel."""

from typing import Any

from pliant._accelerator import settle_environment

settle_environment()


class Callback:
    """Called on every learner. `params` has the optimizer, the model and the number of epochs: what
    is changed in them is the same on all learners, and reaches those that join. params["stop"]()
    ends the training with the step before, wherever it is called alike on all learners. `model` is
    the same as in `params`."""

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
    """Called on one learner at a time. Of the two signatures that there were, either may be
    defined: (loss, acc, completed_batch, worker=0), acc in per cent, or (metrics, iteration, epoch,
    workers)."""

    def log_train_metrics(self, *arguments: Any) -> None: ...
    def log_test_metrics(self, *arguments: Any) -> None: ...
    def on_train_begin(self) -> None: ...
    def on_train_end(self) -> None: ...
