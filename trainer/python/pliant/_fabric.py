"""The interface that FabricModel needs from a framework."""

import abc
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Script:
    """The arguments of FabricModel that the framework needs, under FabricModel's names."""

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
    def settings(self, test_data: Any) -> dict[str, Any]:
        """Settings of pliant.attach that follow from the script."""

    def set_training(self) -> None:
        """Switches the model to training mode."""

    @abc.abstractmethod
    def train_batch(self, step: Any, batch: Any) -> None: ...

    @abc.abstractmethod
    def save(self, folder: Path) -> Path:
        """Writes the model in the framework's format and returns the path of the file."""


def write_file(folder: Path, name: str, write: Callable[[Path], None]) -> Path:
    """Writes a file atomically: every learner of the job may write it at once, with equal
    content."""
    path = folder / name
    scratch = folder / f".{os.uname().nodename}.{os.getpid()}.{name}"
    write(scratch)
    scratch.replace(path)
    return path
