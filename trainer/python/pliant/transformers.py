"""A Trainer of transformers, or of a library that builds on it, as an elastic training.

    from pliant.transformers import PliantTrainer

    class Trainer(PliantTrainer, SFTTrainer):
        pass

Then the script makes a `Trainer` where it made an `SFTTrainer`. Where a library makes the trainer,
call `pliant.transformers.elastic(trainer)` before `trainer.train()`.
"""

from typing import Any

import transformers

from ._hugging_face.check import check
from ._hugging_face.seams import Seams
from .errors import InvalidProgram
from .process import Guard

__all__ = ["PliantTrainer", "elastic"]


class PliantTrainer(transformers.Trainer):  # type: ignore[misc]
    """A Trainer whose training is elastic: put it before another Trainer in the bases of a class,
    or use it in place of transformers.Trainer. See `elastic`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        elastic(self)


def elastic(trainer: Any, **settings: Any) -> None:
    """Makes `trainer.train()` an elastic training. Call it once, before `train`.

    trainer: a transformers.Trainer, or one of a class that builds on it, as those of TRL.
    settings: logical_shards, on_nonfinite, threads, checkpoint_dir, checkpoint_every_steps, name,
        frozen and overlap, as in pliant.attach. All others are those of the TrainingArguments:
        the global batch has per_device_train_batch_size × gradient_accumulation_steps samples, in
        as many logical shards as there are accumulation steps.

    Raises InvalidProgram if the trainer does something that an elastic training cannot do.
    """
    with Guard().beginning():
        if Seams.of(trainer) is not None:
            raise InvalidProgram("pliant.transformers.elastic(trainer) is called twice for it")
        check(trainer, settings)
    Seams(trainer, settings)
