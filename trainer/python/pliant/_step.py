"""One optimizer step, as a program sees it."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ._checks import clip_limit
from ._learner import Commit, Ending, Loaded, Shard
from .errors import InvalidProgram

class Step:
    """One optimizer step. Iterate it to get the batches that this learner computes: one for each of
    its shards, and more if other learners leave during the step. Then call `commit`. A learner that
    must leave before the step is complete ends its process here, as in Elastic.steps."""

    def __init__(self, elastic: Any, first: Shard | Commit) -> None:
        self._elastic = elastic
        # An Ending, or a Loaded: others have completed the step without this learner.
        self._work: Shard | Commit | Ending | Loaded = first
        self._taken = False
        self._ended = False
        elastic._position(first)  # remembered here, because an Ending has no position
        self._last = first.last
        if isinstance(first, Commit):
            elastic._enter_commit(first)

    def _position(self) -> tuple[int, int]:
        epoch, number = self._elastic._position(self._work)
        return epoch, number

    @property
    def epoch(self) -> int:
        """Number of the epoch, from 0."""
        epoch, _ = self._position()
        return epoch

    @property
    def number(self) -> int:
        """Optimizer steps committed before this one."""
        _, number = self._position()
        return number

    @property
    def last_of_epoch(self) -> bool:
        """Whether this is the epoch's last step: step a per-epoch schedule after its commit. An
        epoch that max_steps end has none."""
        return self._last

    @property
    def shard(self) -> Shard:
        """The shard of the current batch. Raises InvalidProgram outside the loop over the step."""
        if not isinstance(self._work, Shard):
            raise InvalidProgram(
                "there is no current shard: use step.shard only inside the loop over the step"
            )
        return self._work

    @property
    def loss(self) -> float:
        """Mean loss over the samples of the global batch, or by weight. Available after the loop
        over the step. NaN if all weights are 0, or if other learners completed the step and this
        one has no result of it."""
        commit = self._result()
        return commit.totals.mean_loss if commit else math.nan

    @property
    def accuracy(self) -> float:
        """Share of the samples reported as correct, 0 to 1; by weight, if there are weights.
        Available when `loss` is."""
        commit = self._result()
        return commit.totals.accuracy if commit else math.nan

    @property
    def weight(self) -> float:
        """Sum of the weights of the global batch; without weights, its samples. Available when
        `loss` is."""
        commit = self._result()
        return commit.totals.weight if commit else math.nan

    @property
    def sums(self) -> Mapping[str, float]:
        """The named sums over the global batch (`log`), equal on all learners. Available when
        `loss` is; each is NaN if other learners completed the step."""
        commit = self._result()
        return commit.totals.named if commit else defaultdict(lambda: math.nan)

    def log(self, **sums: Any) -> None:
        """Adds these numbers of the current batch to named sums over the global batch: `sums` after
        the loop over the step, and `sums` of a line of metrics.jsonl. A number may be a tensor of
        one element. For a mean, log a sum and a count. At most 32 names."""
        self.shard  # raises outside the loop over the step
        self._elastic._report.log(sums, self._elastic._number)

    def __iter__(self) -> Iterator[Any]:
        while isinstance(self._work, Shard):
            yield self._elastic._begin_shard(self._work)
            self._elastic._end_shard(self._work)
            self._work = self._elastic._next_of_step(in_step=True)
        if isinstance(self._work, Commit):
            self._elastic._own_batches.end()
            self._elastic._enter_commit(self._work)
        elif isinstance(self._work, Ending) and self._elastic._exits(self._work):
            self._elastic._end(self._work)  # the step has no result

    def commit(self, optimizer: str | None = None, *, max_norm: float | None = None) -> bool:
        """Takes one step of the optimizer with the reduced gradient, its norm clipped to
        `max_norm`. Of several optimizers it steps the one of this name, or all in their order.
        Returns False if the step was skipped (see `on_nonfinite` of `attach`). State
        changed before the next step begins, for example by a schedule, still belongs to this
        step."""
        commit = self._result()
        if commit is None:
            return False  # what the loop does after it is undone, or the training is complete
        if self._ended:
            raise InvalidProgram(
                "the step is committed already: call step.commit() once, after the loop over it"
            )
        self._ended = True
        if max_norm is not None:
            max_norm = clip_limit("max_norm", max_norm)
        self._taken = self._elastic._commit(commit, optimizer, max_norm)
        return self._taken

    def _result_of(self, call: str) -> Commit | None:
        """The result, for a call that changes the gradient before it is committed."""
        if self._ended:
            raise InvalidProgram(f"{call}() comes too late: call it before step.commit()")
        return self._result()

    def _result(self) -> Commit | None:
        if isinstance(self._work, Ending | Loaded):
            return None
        if not isinstance(self._work, Commit):
            raise InvalidProgram(
                "the step is not complete: use its loss, its gradient and commit() only after the "
                "loop over the step (for batch in step: ...), and do not leave that loop early"
            )
        return self._work

    def _finish(self) -> Ending | None:
        if isinstance(self._work, Ending):
            return self._work
        if isinstance(self._work, Loaded):
            self._elastic._take_state()
            return None
        if not self._ended:
            raise InvalidProgram(
                "the step was not committed: call step.commit() at its end, in place of "
                "optimizer.step()"
            )
        self._elastic._finish_commit(self, self._taken)
        return None
