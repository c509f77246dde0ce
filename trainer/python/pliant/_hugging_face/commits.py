"""The optimizer of a script with accelerate: its step commits the elastic step."""

from collections.abc import Callable
from typing import Any


class Commits:
    """Stands in accelerate's AcceleratedOptimizer for the optimizer inside."""

    def __init__(self, accelerated: Any, scaler: Any, commit: Callable[[], object]) -> None:
        self.optimizer = accelerated.optimizer
        self._accelerated = accelerated
        self._scaler = scaler
        self._commit = commit

    @staticmethod
    def replace(accelerated: Any, scaler: Any, commit: Callable[[], object]) -> None:
        """`scaler`: of the loss, or None. The commit uses it in place of the AcceleratedOptimizer."""
        accelerated.optimizer = Commits(accelerated, scaler, commit)
        accelerated.scaler = None

    @staticmethod
    def put_back(accelerated: Any) -> None:
        inner = getattr(accelerated, "optimizer", None)
        if isinstance(inner, Commits):
            accelerated.optimizer, accelerated.scaler = inner.optimizer, inner._scaler

    def __getattr__(self, name: str) -> Any:
        return getattr(self.optimizer, name)

    def step(self, closure: Any = None) -> None:
        scale = self._scaler.get_scale() if self._scaler else 0.0
        self._commit()
        # The scaler lowers its scale when it skips a step.
        skipped = self._scaler is not None and self._scaler.get_scale() < scale
        self._accelerated._is_overflow = skipped
