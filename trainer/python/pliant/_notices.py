"""Messages to the user while the loop runs, each printed once."""

import signal
from typing import Any

from ._learner import Job, Plan, Shard
from ._say import say

_SAMPLES_SHOWN_MAX = 16


class Notices:
    def __init__(self, job: Job, plan: Plan, *, names_shards: bool) -> None:
        """`names_shards`: the program chose the number of logical shards."""
        self._job = job
        self._plan = plan
        self._names_shards = names_shards
        self._told_where = False
        self._told_of_loss = False
        self._told_of_nonfinite = False
        self._handler: Any = None  # of SIGTERM, as Python knows it

    def what_a_batch_is(self) -> None:
        """Explains logical shards if the program did not choose their number: some layers and
        losses depend on the samples that they see together."""
        shards, samples = self._plan.logical_shards, self._plan.global_batch_size
        if shards == 1 or self._names_shards:
            return
        say(
            f"a batch of {samples} samples is computed as {shards} logical shards of "
            f"{samples // shards}: BatchNorm, mixup and losses over pairs of samples see "
            f"{samples // shards} at a time (set by logical_shards of pliant.attach, in a job by "
            "spec.training.logicalShards)"
        )

    def where_it_goes_on(self, step: int) -> None:
        if self._told_where:
            return
        self._told_where = True
        if self._job.alone and step > 0:
            say(
                f"resumes from step {step} of {self._plan.total_steps} in "
                f"{self._job.checkpoint_dir}; to start again, delete that folder or set another "
                "checkpoint_dir"
            )

    def no_loss_is_reported(self) -> None:
        if not self._told_of_loss:
            self._told_of_loss = True
            say("no loss is reported: step.backward(loss) reports it")

    def loss_is_not_finite(self, shard: Shard, loss: float) -> None:
        """The sum over the step does not show which of its batches was wrong."""
        if not self._told_of_nonfinite:
            self._told_of_nonfinite = True
            say(
                f"the loss of shard {shard.index} of step {shard.step} is {loss}: its samples are "
                f"{', '.join(map(str, shard.samples[:_SAMPLES_SHOWN_MAX]))}"
                f"{' ...' if len(shard.samples) > _SAMPLES_SHOWN_MAX else ''}"
            )

    def replaces_a_handler(self) -> None:
        """Called before the learner takes the signal."""
        self._handler = signal.getsignal(signal.SIGTERM)
        if callable(self._handler):
            say(
                "the program's handler of SIGTERM is replaced until the training ends: this learner "
                'leaves after the present step. elastic.steps(on_leave="return") returns from the '
                "loop then, and elastic.ending tells why"
            )

    def has_a_late_handler(self) -> None:
        handler = signal.getsignal(signal.SIGTERM)
        if handler is not self._handler:
            self._handler = handler
            say(
                "the program handles SIGTERM since the training began: this learner no longer "
                "leaves when it is asked to, and is killed at the end of its grace period. Remove "
                'the handler: elastic.steps(on_leave="return") returns from the loop instead'
            )

    def it_was_complete(self, step: int) -> None:
        """Printed unless this process took steps."""
        if self._job.alone and not self._told_where:
            say(
                f"already complete: {self._job.checkpoint_dir} has the final state, after step "
                f"{step}. No step was taken, and changed settings have no effect; to train again, "
                "delete that folder or set another checkpoint_dir"
            )

    def interrupted(self) -> None:
        if self._job.alone:
            say(f"interrupted: the next run resumes from {self._job.checkpoint_dir}")

    def the_loop_was_left(self, step: int) -> None:
        if step + 1 < self._plan.total_steps:
            say(
                f"the loop over the steps was left after step {step} of {self._plan.total_steps}: the "
                "training is not complete, and there is no final model. elastic.stop() before the next "
                "step ends it with one"
            )
