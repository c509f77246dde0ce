"""The parameters of a training, for scripts for Watson Machine Learning Accelerator. docs/fabric-model.md
explains how a job sets them."""

from typing import Any

from pliant import _parameters
from pliant._accelerator import seed_once, settle_environment

__all__ = [
    "getEpoch",
    "getLearningRate",
    "getLearningRatePolicy",
    "getOptimizer",
    "getTestBatchSize",
    "getTestData",
    "getTrainBatchSize",
    "getTrainData",
    "getValData",
]

settle_environment()
seed_once()


def getTrainData(as_list: bool = True) -> str | list[str]:
    """All files of the training data, sorted, or their folder."""
    return _parameters.data("train", as_list)


def getTestData(as_list: bool = True) -> str | list[str]:
    return _parameters.data("test", as_list)


def getValData(as_list: bool = True) -> str | list[str]:
    return _parameters.data("validation", as_list)


def getEpoch() -> int:
    return _parameters.epochs()


def getTrainBatchSize() -> int:
    """Samples in the batch of one device."""
    return _parameters.train_batch_size()


def getTestBatchSize() -> int:
    return _parameters.test_batch_size()


def getOptimizer(model: Any) -> Any:
    """A torch.optim.Optimizer over the parameters that require a gradient."""
    return _parameters.optimizer(model)


def getLearningRate(optimizer: Any) -> Any:
    """A schedule of torch.optim.lr_scheduler, to be stepped after each epoch; None: a fixed
    rate."""
    return _parameters.learning_rate(optimizer)


def getLearningRatePolicy() -> str:
    return _parameters.learning_rate_policy()


def __getattr__(name: str) -> Any:
    raise AttributeError(f"pth_parameter_mgr has no {name} here: there are {', '.join(__all__)}")
