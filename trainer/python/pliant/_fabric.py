"""What FabricModel asks of the framework below it."""

import abc
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._loop import Elastic


@dataclass(frozen=True)
class Script:
    """What a script gives FabricModel to train, in its words."""

    model: Any
    loss_function: Any
    optimizer: Any
    fn_step_train: Callable[..., tuple[Any, Any]] | None
    fn_test: Callable[..., Any] | None
    fn_args: Any


class Framework(abc.ABC):
    def __init__(self, script: Script) -> None:
        self.script = script

    @abc.abstractmethod
    def attach(self, train_data: Any, test_data: Any, **settings: Any) -> Elastic[Any]: ...

    def set_training(self) -> None:
        """The model is set for training."""

    @abc.abstractmethod
    def train_batch(self, step: Any, batch: Any) -> None: ...

    @abc.abstractmethod
    def save(self, folder: Path) -> Path:
        """The model as the framework keeps it."""


def write_file(folder: Path, name: str, write: Callable[[Path], None]) -> Path:
    """Every learner of the job may do it at once, all with the same content."""
    path = folder / name
    scratch = folder / f".{os.uname().nodename}.{os.getpid()}.{name}"
    write(scratch)
    scratch.replace(path)
    return path
