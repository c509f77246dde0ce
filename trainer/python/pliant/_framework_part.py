"""The part of a training that each framework implements."""

import abc
from typing import Any

from ._learner import Commit, Shard
from ._shard_report import ShardReport
from ._states import Stateful


class FrameworkPart(abc.ABC):
    """The methods are called in the order of the learner's work."""

    @abc.abstractmethod
    def _add_state(self, name: str, what: Stateful | dict[str, Any]) -> None: ...

    @abc.abstractmethod
    def _registered(self) -> dict[str, Any]: ...

    @abc.abstractmethod
    def _prepare(self) -> None:
        """Before the learner starts: registers the state."""

    @abc.abstractmethod
    def _take_over(self) -> None:
        """Copies the state in registered memory into the model: it was replaced."""

    @abc.abstractmethod
    def _begin_batch(self, shard: Shard) -> Any:
        """Prepares forward and backward of the shard and returns its batch."""

    @abc.abstractmethod
    def _end_batch(self, shard: Shard) -> None:
        """Passes the shard's gradient to the learner."""

    @abc.abstractmethod
    def _evaluate_batch(self, shard: Shard) -> ShardReport:
        """What the program says of a shard of the test set."""

    @abc.abstractmethod
    def _enter_commit(self, commit: Commit) -> None:
        """Takes the reduced gradient."""

    @abc.abstractmethod
    def _commit(self, commit: Commit, optimizer: str | None, max_norm: float | None) -> bool:
        """Takes the step of the optimizer of this name, or of all. False: the step is skipped."""

    @abc.abstractmethod
    def _save(self) -> None:
        """After a commit: writes the whole state to the registered memory."""

    @abc.abstractmethod
    def _after_commit(self) -> None:
        """Called when the learner has been notified of the commit."""

    @abc.abstractmethod
    def _learning_rate(self) -> float | None:
        """None: the optimizer has none."""

    @abc.abstractmethod
    def _gradient_is_finite(self) -> bool: ...

    @abc.abstractmethod
    def _load_final(self) -> None:
        """Loads the final model, in a learner that joined after the training was complete."""

    @abc.abstractmethod
    def _release(self) -> None:
        """Releases the model and the processes that load data."""
