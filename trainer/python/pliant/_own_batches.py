"""Finds what a program takes from its inner loop, which has only the batches of this learner."""

from collections.abc import Callable
from typing import Any

from ._plain_state import fingerprint
from .errors import InvalidProgram


class OwnBatches:
    """Observes the loop over each step."""

    def __init__(self, registered: Callable[[], dict[str, Any]]) -> None:
        """`registered` returns the registered state."""
        self._registered = registered
        # From the first batch that this process computes to the end of its step. Changes in later
        # steps are found when learners compare their states.
        self._before: dict[str, Any] | None = None
        self._seen = False
        self._step = 0
        self._in_step = 0

    def begin_step(self, step: int) -> None:
        self._step, self._in_step = step, 0

    def begin_batch(self) -> None:
        self._in_step += 1
        if not self._seen:
            self._seen = True
            self._before = fingerprint(self._registered())

    def state_changed(self) -> None:
        """The state was loaded, or an evaluation ended: that is no change by the inner loop."""
        self._before = None

    def end(self) -> None:
        """After the batches of a step. Raises InvalidProgram if they changed registered state."""
        before, self._before = self._before, None
        if before is None:
            return
        after = fingerprint(self._registered())
        changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        if changed:
            raise InvalidProgram(
                f"the registered state {changed[0]} was changed by the loop over the step, which "
                "has only this learner's batches: change registered state after step.commit(), "
                "from values that are equal on all learners (step.loss, step.accuracy, "
                "step.number)"
            )

    def explain(self, error: BaseException) -> str:
        """As Guard.explain."""
        if not isinstance(error, NameError) or self._in_step > 0:
            return ""
        return (
            f"this learner had no shard of step {self._step}, as any learner may, so the loop over "
            "the step did not run here: a name that only that loop sets is missing, or left from "
            "an earlier step. Use step.loss and step.accuracy, or set the name before the loop"
        )
