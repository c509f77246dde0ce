"""Decides what happens to a step whose loss or gradient is not finite."""

import math
from collections.abc import Callable

from ._learner import Commit
from ._say import say
from ._states import Counters
from .errors import Diverged

# With "skip", a training that skips more steps than this in a row cannot recover.
_SKIPS_IN_A_ROW_MAX = 100
_ADVICE = (
    "the training diverges, or its data are wrong: a lower learning rate, a warm-up or max_norm may help"
)


def takes_step(
    commit: Commit,
    on_nonfinite: str,
    counters: Counters,
    gradient_is_finite: Callable[[], bool],
    *,
    scaled: bool,
) -> bool:
    """Whether to take the step. All learners decide alike, from values that are equal on all.

    `on_nonfinite`: see pliant.attach. `scaled`: a scaler also checks the gradient. If it is not
    finite, the scaler skips the step and lowers its scale, which is how it finds a scale that fits.
    That is an error only when it never ends. No scale makes a loss finite."""
    loss = commit.totals.mean_loss
    weighs_nothing = commit.totals.weight == 0
    if weighs_nothing:
        say(f"step {commit.step} has a gradient of zero: the weights of all its batches are 0")
    what = "" if weighs_nothing or math.isfinite(loss) else f"its loss is {loss}"
    adapts = scaled and not what
    if not what and not gradient_is_finite():
        what = "its gradient is not finite"
    if not what:
        counters.nonfinite_in_a_row = 0
        return True
    in_a_row = counters.nonfinite_in_a_row + 1
    if on_nonfinite == "stop" and not adapts:
        raise Diverged(f"step {commit.step} cannot be taken, {what}: {_ADVICE}")
    if on_nonfinite != "warn" and in_a_row > _SKIPS_IN_A_ROW_MAX:
        raise Diverged(
            f"step {commit.step} cannot be taken, {what}, nor could the {_SKIPS_IN_A_ROW_MAX} before it: {_ADVICE}"
        )
    counters.nonfinite_in_a_row = in_a_row
    if adapts:
        return True  # the scaler skips the step itself
    skip = on_nonfinite == "skip"
    if in_a_row == 1:
        say(f"step {commit.step} is {'skipped because' if skip else 'taken although'} {what}")
    return not skip
