"""The global batch of a script, and how it is divided."""

import os
from dataclasses import dataclass
from typing import Any

from .._checks import powers_around
from .._say import say
from ..errors import InvalidProgram


@dataclass(frozen=True)
class Sizes:
    """What a script says: a batch of per_device × accumulation samples, of which per_device are
    computed at a time."""

    per_device: int
    accumulation: int
    name: str = "per_device_train_batch_size"  # of per_device, in the script

    @staticmethod
    def of(args: Any) -> "Sizes":
        return Sizes(args.per_device_train_batch_size, args.gradient_accumulation_steps)

    @property
    def batch(self) -> int:
        return self.per_device * self.accumulation

    def check(self) -> None:
        """Raises InvalidProgram if the batch cannot be divided so, or is not the job's."""
        if self.accumulation & (self.accumulation - 1):
            raise InvalidProgram(
                f"gradient_accumulation_steps is {self.accumulation}: each of them becomes a "
                "logical shard, whose number is a power of two, such as "
                + powers_around(self.accumulation)
            )
        job = _of_job("PLIANT_GLOBAL_BATCH_SIZE")
        if job not in (None, self.batch):
            assert job is not None
            steps, rest = divmod(job, self.per_device)
            raise InvalidProgram(
                f"the script's batch is {self._text()} = {self.batch} samples, but "
                f"spec.training.globalBatchSize of the job is {job}: "
                + (f"set gradient_accumulation_steps={steps}" if not rest else "make them equal")
            )

    def at_a_time(self) -> int:
        """Samples of a logical shard, or of the batch if the job says how many shards it has."""
        shards = _of_job("PLIANT_LOGICAL_SHARDS")
        if not shards:
            return self.per_device
        if shards != self.accumulation:
            say(
                f"spec.training.logicalShards of the job is {shards}: the batch of {self._text()} "
                f"samples is computed {self.batch // shards} at a time"
            )
        return self.batch

    def _text(self) -> str:
        return (
            f"{self.per_device} ({self.name}) × {self.accumulation} "
            "(gradient_accumulation_steps)"
        )


def seed_or_jobs(seed: int) -> int | None:
    """Of the order of the data. None: the job's, which always has one."""
    return None if _of_job("PLIANT_SEED") is not None else seed


def _of_job(name: str) -> int | None:
    """A number that the operator sets for the learner. pliant.attach refuses one that is wrong."""
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else None
