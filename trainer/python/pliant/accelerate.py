"""accelerate's Accelerator for elastic trainings.

    from pliant.accelerate import Accelerator  # in place of: from accelerate import Accelerator

    accelerator = Accelerator(..., epochs=args.num_train_epochs)
    ...
    global_step = accelerator.step  # before the loop, where the script has: global_step = 0
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import accelerate
import torch
from accelerate.utils import DistributedType, send_to_device
from torch.utils.data import DataLoader, RandomSampler

from ._hugging_face.commits import Commits
from ._hugging_face.sizes import Sizes, seed_or_jobs
from ._hugging_face.steps import StateChanged, Steps
from ._say import Once
from ._torch.batches import size_of
from ._torch.elastic import TorchElastic, TorchStep, attach
from .errors import InvalidProgram
from .process import Guard

__all__ = ["Accelerator"]


class Accelerator(accelerate.Accelerator):  # type: ignore[misc]
    """An Accelerator whose training is elastic. The prepared loader that shuffles gives the shards
    of this learner; `optimizer.step()` takes the step when all shards of the batch are summed.

    epochs, max_steps: the length of the training; give one of them, or both.

    The global batch has batch_size × gradient_accumulation_steps samples. `is_main_process` is true
    on one learner at a time. `save_state` and `load_state` do nothing, because Pliant's checkpoints
    have the state; `register_for_checkpointing` adds to it. Raises InvalidProgram for a training
    over several processes, models or optimizers."""

    def __init__(
        self,
        *args: Any,
        epochs: int | None = None,
        max_steps: int | None = None,
        **kwargs: Any,
    ) -> None:
        self._length = {"epochs": epochs, "max_steps": max_steps}
        self._loader: _Loader | None = None
        self._elastic: TorchElastic | None = None
        self._steps: Steps | None = None
        self._epochs_begun = 0
        self._state_is_later = False  # than the epoch that the script has just ended
        self._batches: Iterator[Any] = iter(())  # of the present step
        self._ahead: Any = None  # the next one of them
        self._handed_in = True  # the present one
        # Undoes the forward of a batch that stands in where this learner has none.
        self._forget: Callable[[], None] | None = None
        self._make_trackers: Callable[[], None] | None = None
        self._say_once = Once()
        super().__init__(*args, **kwargs)
        if self.distributed_type != DistributedType.NO or self.num_processes > 1:
            with Guard().beginning():
                raise InvalidProgram(
                    "the script runs in several processes (accelerate launch, torchrun): start it "
                    "with python; Pliant's learners are the processes"
                )

    @property
    def step(self) -> int:
        """Steps taken. Before the loop it waits until this learner has a state."""
        steps = self._begin()
        if steps.current is not None:
            return steps.current.number + steps.current._ended
        ahead = steps.ahead()
        if ahead is not None:
            return ahead.number
        assert self._elastic is not None and self._elastic.ending is not None
        return self._elastic.ending.step

    @step.setter
    def step(self, batches: int) -> None:
        pass  # accelerate's count of batches is for its own accumulation

    @property
    def epoch(self) -> int:
        """The epoch of the next step, for a script that begins its loop over the epochs there. Before
        the loop it waits until this learner has a state."""
        steps = self._begin()
        ahead = steps.current or steps.ahead()
        if ahead is not None and not self._epochs_begun:
            self._epochs_begun = ahead.epoch
        return self._epochs_begun if ahead is None else ahead.epoch

    @property
    def loss(self) -> float:
        """The mean loss of the global batch, equal on all learners. Available when `sync_gradients`
        is true."""
        return self._present().loss

    # ---- What a script prepares ----

    def prepare(self, *args: Any, **kwargs: Any) -> Any:
        if self._loader is None:
            loaders = [each for each in args if isinstance(each, DataLoader)]
            shuffled = [each for each in loaders if isinstance(each.sampler, RandomSampler)]
            trains = any(isinstance(each, torch.optim.Optimizer) for each in args)
            chosen = (shuffled or (loaders if trains else []))[:1]
            if chosen:
                self._loader = _Loader(self, chosen[0])
                args = tuple(self._loader if each is chosen[0] else each for each in args)
        return super().prepare(*args, **kwargs)

    def _begin(self) -> Steps:
        """Begins the training at the first call."""
        if self._steps is not None:
            return self._steps
        with Guard().beginning():
            loader, sizes = self._training_data()
            model = self._the_only("model", self._models)
            accelerated = self._the_only("optimizer", self._optimizers)
            size_of(loader.dataset, "training")
            sizes.check()
        steps = Steps(loader.dataset, sizes.batch, drop_last=loader.drop_last)
        self._elastic = attach(
            model,
            accelerated.optimizer,
            DataLoader(
                loader.dataset,
                batch_size=sizes.at_a_time(),
                sampler=loader.sampler,
                collate_fn=loader.collate_fn,
                drop_last=loader.drop_last,
                num_workers=loader.num_workers,
            ),
            batch_size=sizes.batch,
            scaler=self.scaler,
            seed=seed_or_jobs(loader.generator.initial_seed()) if loader.generator else None,
            **self._length,
        )
        for place, schedule in enumerate(self._schedulers):
            self._elastic.register(f"schedule.{place}", schedule.scheduler)
        for place, what in enumerate(self._custom_objects):
            self._elastic.register(f"checkpointed.{place}", what)
        if self._save_model_state_pre_hook or self._load_model_state_pre_hook:
            self._say_once(
                "accelerator.register_save_state_pre_hook: these hooks are not called. An average of "
                "the weights that they save is registered by "
                "accelerator.register_for_checkpointing(average)"
            )
        Commits.replace(accelerated, self.scaler, self._commit)
        self._steps = steps
        steps.begin(self._elastic)
        return steps

    def _training_data(self) -> tuple[DataLoader[Any], Sizes]:
        if self._loader is None:
            raise InvalidProgram(
                "no training data are prepared: give accelerator.prepare the DataLoader, with the "
                "optimizer or with shuffle=True"
            )
        loader = self._loader.loader
        if loader.batch_size is None:
            raise InvalidProgram(
                "the DataLoader has a batch sampler: each learner must know its samples by their "
                "numbers. Give it batch_size and shuffle=True"
            )
        accumulation = self.gradient_accumulation_steps
        return loader, Sizes(loader.batch_size, accumulation, name="batch_size of the DataLoader")

    def _the_only(self, what: str, found: list[Any]) -> Any:
        if len(found) == 1:
            return found[0]
        raise InvalidProgram(
            f"{len(found)} {what}s are prepared: an elastic Accelerator trains one {what}. For "
            "several write the loop with pliant.attach, which takes a dict of optimizers"
        )

    # ---- A step ----

    def _epoch(self) -> Iterator[Any]:
        steps = self._begin()
        epoch, self._epochs_begun = self._epochs_begun, self._epochs_begun + 1
        if not steps.begin_epoch(epoch):
            self._state_is_later = True
            return
        if self._state_is_later:
            # The script's code after epochs that are over has changed a state of later.
            assert self._elastic is not None
            self._elastic._take_over()
            self._state_is_later = False
        try:
            for step in steps:
                yield from self._shards(step)
        except StateChanged:
            self._state_is_later = True
            return
        finally:
            self._end_if_last(steps)

    def _shards(self, step: TorchStep) -> Iterator[Any]:
        self._batches = iter(step)
        batch = next(self._batches, None)
        if batch is None:
            yield from self._stand_in(step)
        while batch is not None:
            yield from self._one(batch)
            batch = self._ahead

    def _stand_in(self, step: TorchStep) -> Iterator[Any]:
        """The body of a script's loop takes the step, also where it has no batch of it."""
        assert self._elastic is not None
        forward = contextlib.ExitStack()
        batch = forward.enter_context(self._elastic.standing_in(step.number))
        self._forget = forward.close
        yield from self._one(batch)

    def _one(self, batch: Any) -> Iterator[Any]:
        self._handed_in = False
        self.gradient_state._set_sync_gradients(False)
        yield send_to_device(batch, self.device)
        if not self._handed_in:
            raise InvalidProgram(
                "accelerator.backward(loss) was not called for a batch: call it for each, and give "
                "one that shall not count weight=0"
            )

    def _end_if_last(self, steps: Steps) -> None:
        step = steps.current
        assert self._elastic is not None
        if step is not None and step._ended and step.number + 1 == self._elastic.total_steps:
            steps.ahead()

    def backward(self, loss: torch.Tensor, *, weight: Any = None, **kwargs: Any) -> None:
        """`weight`: as in step.backward."""
        if self._forget is not None:
            self._forget()
            self._forget = self._ahead = None
        else:
            self._present().backward(loss, weight=weight)
            self._ahead = next(self._batches, None)
        self._handed_in = True
        self.gradient_state._set_sync_gradients(self._ahead is None)

    def accumulate(self, *models: torch.nn.Module) -> Any:
        return contextlib.nullcontext()

    def no_sync(self, model: torch.nn.Module) -> Any:
        return contextlib.nullcontext()

    def unscale_gradients(self, optimizer: Any = None) -> None:
        if self.sync_gradients and self._elastic is not None and self._present()._result():
            self._elastic._before_clip()

    def set_trigger(self) -> None:
        raise InvalidProgram(
            "accelerator.set_trigger() would act on this learner alone: decide from accelerator.loss "
            "or an evaluation, which are equal on all learners"
        )

    def clip_grad_norm_(self, parameters: Any, max_norm: float, norm_type: int = 2) -> Any:
        """The norm of the gradient of the global batch; None before all its shards are summed."""
        if norm_type != 2:
            raise InvalidProgram(f"norm_type is {norm_type}: only the norm of type 2 is supported")
        return torch.tensor(self._present().clip(max_norm)) if self.sync_gradients else None

    def clip_grad_value_(self, parameters: Any, clip_value: float) -> None:
        if self.sync_gradients:
            self._present().clip_value(clip_value)

    def _commit(self) -> None:
        self._present().commit()

    def _present(self) -> TorchStep:
        if self._steps is None or self._steps.current is None:
            raise InvalidProgram("call this in the loop over the prepared training data")
        return self._steps.current

    # ---- The end, and what one learner does for all ----

    def end_training(self) -> None:
        """Completes the training with the present step, if it has steps left, on all learners."""
        if self._steps is not None and self._elastic is not None and not self._elastic.ending:
            self._elastic.stop()
            if self._steps.current is None and self._steps.ahead() is not None:
                raise InvalidProgram(
                    "the loop of the script has ended before the training: begin the loop over the "
                    "epochs at 0 or at accelerator.epoch"
                )
            self._steps.ahead()
        super().end_training()

    @property
    def is_main_process(self) -> bool:
        return bool(super().is_main_process) if self._elastic is None else self._elastic.first

    @property
    def is_local_main_process(self) -> bool:
        return self.is_main_process

    def on_main_process(self, function: Any = None) -> Any:
        @functools.wraps(function)
        def on_one(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs) if self.is_main_process else None

        return on_one

    def on_local_main_process(self, function: Any = None) -> Any:
        return self.on_main_process(function)

    def print(self, *args: Any, **kwargs: Any) -> None:
        if self.is_main_process:
            print(*args, **kwargs)

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.is_main_process:
            super().save(*args, **kwargs)

    def save_model(self, *args: Any, **kwargs: Any) -> None:
        if self.is_main_process:
            super().save_model(*args, **kwargs)

    def save_state(self, *args: Any, **kwargs: Any) -> None:
        self._say_once("accelerator.save_state does nothing: the training's checkpoints have the state")

    def load_state(self, *args: Any, **kwargs: Any) -> None:
        self._say_once("accelerator.load_state does nothing: the training resumes from its newest checkpoint")

    def skip_first_batches(self, dataloader: Any, num_batches: int = 0) -> Any:
        if isinstance(dataloader, _Loader):
            return dataloader  # which begins where the training is
        return super().skip_first_batches(dataloader, num_batches)

    def init_trackers(self, *args: Any, **kwargs: Any) -> None:
        """The trackers are made with the first line that this learner logs."""
        self._make_trackers = functools.partial(super().init_trackers, *args, **kwargs)

    def log(self, *args: Any, **kwargs: Any) -> None:
        if not self.is_main_process:
            return
        if self._make_trackers is not None:
            self._make_trackers()
            self._make_trackers = None
        super().log(*args, **kwargs)


class _Loader:
    """The prepared training data: each iteration gives the shards of this learner in one epoch."""

    def __init__(self, accelerator: Accelerator, loader: DataLoader[Any]) -> None:
        self.loader = loader
        self._accelerator = accelerator

    def __len__(self) -> int:
        """Of one learner alone, as scripts work out the number of steps from it."""
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        return self._accelerator._epoch()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)
