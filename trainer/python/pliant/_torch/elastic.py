"""Elastic training with a PyTorch loop."""

import contextlib
import math
import time
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.multiprocessing

from .. import _native
from .._checks import clip_limit
from .._learner import Commit, Learner, Shard
from .._loop import Elastic
from .._numbers import one_number
from .._seeds import mix
from .._settings import TorchSettings
from .._shard_report import ShardReport, evaluated
from .._states import Stateful
from .._step import Step
from .._streams import is_stream
from .._threads import threads_from_environment
from .._workers import Workers
from ..errors import InvalidProgram
from ..process import Guard
from .batches import Batches, size_of
from .final_layout import layout_of
from .final_model import load_final_model
from .frozen_base import is_at_home
from .gradients import Gradients
from .libraries import plain
from .loaders import take_apart
from .mirror import is_readable
from .numerics import describe, gpu_problem, products_problem, seed_all, settle
from .optimizer_steps import OptimizerSteps
from .optimizers import take_steps
from .training_state import TrainingState


class TorchStep(Step):
    """After the loop over the step, `grad` of each parameter is the mean gradient over the global
    batch, equal on all learners."""

    _elastic: "TorchElastic"

    def backward(
        self, loss: torch.Tensor, correct: Any = None, *, weight: Any = None, **sums: Any
    ) -> None:
        """Calls `loss.backward()`, reports the loss, and takes the gradient: the parameters' `grad`
        is None afterwards. `loss`: a tensor with one element. `correct`: the number of correct
        samples in the batch, reported as accuracy.

        `weight`: the tokens (or other units) that the loss is the mean of. The step then divides by
        all tokens of the global batch, and so do the loss and the accuracy. A batch of weight 0
        takes no backward pass. Give each batch a weight, or none. A tensor of a GPU is possible,
        but the call then waits for the GPU.

        Further numbers are named sums: see `log`."""
        self._elastic._backward(loss, correct, weight)
        self.log(**sums)

    def clip(self, max_norm: float) -> float:
        """After the loop over the step: scales the gradient of the global batch so that its norm is
        at most `max_norm`. Returns its norm before that, which has the same bits on all learners.
        In place of `commit(max_norm=...)`, for a program that looks at the norm."""
        limit = clip_limit("max_norm", max_norm)
        return math.nan if self._result_of("clip") is None else self._elastic._clip(limit)

    def clip_value(self, limit: float) -> None:
        """After the loop over the step: clips each element of the gradient to [-limit, limit]."""
        limit = clip_limit("limit", limit)
        if self._result_of("clip_value") is not None:
            self._elastic._clip_value(limit)

    def report(self, loss: Any, correct: Any = None, *, weight: Any = None, **sums: Any) -> None:
        """Reports the loss, for a program that calls `loss.backward()` itself. `loss`: a number or
        a tensor with one element. The others are as in `backward`."""
        self._elastic._weigh(weight)
        self._elastic._report.add(loss, correct, self._elastic._number)
        self.log(**sums)


class TorchElastic(Elastic[TorchStep]):
    _settings: TorchSettings

    def __init__(
        self,
        learner: Learner,
        guard: Guard,
        model: torch.nn.Module,
        optimizers: Any,
        train_data: Any,
        settings: TorchSettings,
    ) -> None:
        train_data, in_order, settings = take_apart(train_data, settings)
        test_data, scaler = settings.test_data, settings.scaler
        train_size = size_of(train_data, "training")
        test_size = 0 if test_data is None else size_of(test_data, "test")
        model = plain(model)
        self._state = TrainingState(
            model, optimizers, frozen_at_home=is_at_home(model, settings.frozen)
        )
        super().__init__(
            learner,
            guard,
            settings,
            train_samples=train_size,
            test_samples=test_size,
            in_order=in_order or is_stream(train_data),
            loss_is_mean=settings.loss_reduction == "mean",
            base=self._state.home.base(),
        )
        self._model = model
        self._layout = layout_of(model, self._state.saved, settings.frozen)
        self._optimizers = self._state.optimizers
        self._unscaled: set[int] = set()  # optimizers whose gradients are, in this commit
        self._stepped: set[int] | None = None  # parameters that this commit changes; None: all
        self._was_finite: bool | None = None  # the gradient, before it was clipped; None: it is not
        self._train = Batches(train_data, train_size, settings.collate_fn, self.plan)
        of_test = settings.test_collate_fn or settings.collate_fn
        self._test = Batches(test_data, test_size, of_test, self.plan) if test_size else None
        self._workers: Workers | None = None
        self._state.add("pliant", self._counters)
        if scaler is not None:
            # The scaler creates its scale at its first call. A learner that joins would call it
            # only after commits of steps that others computed, so it is called here.
            scaler.scale(torch.zeros((), device=self._state.parameters[0].device))
            self._state.add("scaler", scaler)
        self._gradients = Gradients(learner, self._state.parameters, overlap=settings.overlap)
        self._optimizer_steps: OptimizerSteps | None = None

    def _add_state(self, name: str, what: Stateful | dict[str, Any]) -> None:
        self._state.add(name, what)

    def _registered(self) -> dict[str, Any]:
        return self._state.registered()

    def _prepare(self) -> None:
        self._state.register(self._learner, self._layout)
        self._learner.register(
            "local.passes",
            role=_native.STATE,
            dtype="uint8",
            shape=(1,),
            address=self._gradients.passes.data_ptr(),
        )
        self._optimizer_steps = OptimizerSteps(self._optimizers, self._model.parameters())
        if self._settings.num_workers > 0:
            # torch's: it passes tensors in shared memory.
            context = torch.multiprocessing.get_context("fork")
            self._workers = Workers(
                self._settings.num_workers,
                self._train,
                self._test,
                context=context,
                prepare=lambda: torch.set_num_threads(1),
            )

    def _make_step(self, work: Shard | Commit) -> TorchStep:
        return TorchStep(self, work)

    def _take_over(self) -> None:
        self._state.loaded()
        self._gradients.loaded()

    def _begin_batch(self, shard: Shard) -> Any:
        batch = self._load(self._train, shard)
        self._state.begin_batch()
        self._gradients.begin(shard, len(shard.samples) if self._loss_is_mean else 1.0)
        seed_all(shard.seed)
        return batch

    def _load(self, batches: Batches, shard: Shard) -> Any:
        def in_place() -> Any:
            return batches.load(shard.samples, shard.epoch)

        began = time.monotonic()
        batch = self._workers.load(shard, in_place) if self._workers else in_place()
        self._learner.data_waited(time.monotonic() - began)
        if self._workers:
            self._workers.ask_ahead(self._learner.forecast)
        return batch

    def _backward(self, loss: torch.Tensor, correct: Any, weight: Any) -> None:
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            raise InvalidProgram("the loss must be a tensor of one number")
        self._weigh(weight)
        scaler = self._settings.scaler
        if self._report.weight != 0:
            self._gradients.backward(scaler.scale(loss) if scaler else loss)
        self._report.add(loss, correct, self._number)

    def _weigh(self, weight: Any) -> None:
        """Comes before the backward pass, during which gradients are sent."""
        self._report.weigh(weight)
        if self._report.weight is not None:
            self._gradients.scale(self._report.weight, loss_is_mean=self._loss_is_mean)

    def _number(self, what: str, value: Any) -> Any:
        # A tensor of a GPU stays there: float() would wait for it.
        if isinstance(value, torch.Tensor) and value.numel() == 1:
            value = value.detach()
            if value.is_cuda and is_readable(value):
                return value.reshape(()).double()
        return one_number(what, value)

    def _shard_done(self, samples: int, loss: Any, report: ShardReport) -> None:
        names = sorted(report.sums)
        numbers = [loss, report.correct, *(report.sums[name] for name in names)]
        on_gpu = [each for each in numbers if isinstance(each, torch.Tensor)]
        if not on_gpu:
            return super()._shard_done(samples, loss, report)
        self._learner.report_sums(report.weight, names)
        sums = torch.stack([_like(each, on_gpu[0]) for each in numbers])
        self._learner.shard_done_on_gpu(samples=samples, sums=sums.data_ptr())

    def _end_batch(self, shard: Shard) -> None:
        if not self._gradients.hand_in():
            raise InvalidProgram(
                "no parameter has a gradient after a batch: call step.backward(loss) for each, "
                "with a loss of the attached model. If the loop calls loss.backward() itself, do "
                "not call zero_grad after it"
            )
        self._state.end_batch(keeps_buffers=shard.index == 0)

    def _evaluate_batch(self, shard: Shard) -> ShardReport:
        assert self._test is not None and self._settings.evaluate is not None
        self._state.restore_buffers()
        batch = self._load(self._test, shard)
        seed_all(shard.seed)
        with torch.no_grad(), self._state.modes.evaluating():
            said = self._settings.evaluate(batch)
        self._state.end_evaluation()
        return evaluated(said, self._number)

    def _enter_commit(self, commit: Commit) -> None:
        self._position(commit)
        self._unscaled.clear()
        self._was_finite = None
        self._gradients.set_reduced(commit)
        seed_all(mix(self.plan.seed, commit.step))

    def _commit(self, commit: Commit, optimizer: str | None, max_norm: float | None) -> bool:
        chosen = self._optimizers.chosen(optimizer)
        self._stepped = self._optimizers.parameters_of(chosen)
        scaler = self._settings.scaler
        if not self._judge(commit, scaled=scaler is not None):
            if scaler is not None and self._unscaled:
                scaler.update(scaler.get_scale())  # forgets the step, and keeps its scale
            return False
        self._unscale(chosen)
        if max_norm is not None:
            self._gradients.clip(max_norm, self._stepped)
        assert self._optimizer_steps is not None
        with self._optimizer_steps.allowed():
            take_steps(chosen, scaler)
        return True

    def _unscale(self, optimizers: Iterable[torch.optim.Optimizer]) -> None:
        """Divides their gradients by the scale of the loss, once a commit."""
        scaler = self._settings.scaler
        for optimizer in optimizers:
            if scaler is not None and id(optimizer) not in self._unscaled:
                self._unscaled.add(id(optimizer))
                scaler.unscale_(optimizer)

    def _clip(self, max_norm: float) -> float:
        self._before_clip()
        return self._gradients.clip(max_norm)

    def _clip_value(self, limit: float) -> None:
        self._before_clip()
        self._gradients.clip_value(limit)

    def _before_clip(self) -> None:
        if self._was_finite is None:
            self._was_finite = self._gradients.finite()
        self._unscale(self._optimizers)

    @contextlib.contextmanager
    def standing_in(self, step: int) -> Iterator[Any]:
        """A batch for a program that needs one in a step of which this learner has no shard, after
        the loop over the step. What a forward of it changes is undone."""
        kept = [(buffer, buffer.detach().clone()) for buffer in self._model.buffers()]
        samples = self.plan.global_batch_size // self.plan.logical_shards
        try:
            yield self._train.load(range(samples), epoch=0)
        finally:
            with torch.no_grad():
                for buffer, before in kept:
                    buffer.copy_(before)
            seed_all(mix(self.plan.seed, step))

    def _learning_rate(self) -> float | None:
        rate = next(iter(self._optimizers)).param_groups[0].get("lr")
        return None if rate is None else float(rate)

    def _gradient_is_finite(self) -> bool:
        if self._was_finite is not None:
            return self._was_finite
        return self._gradients.finite(self._stepped)

    def _save(self) -> None:
        if self._epoch_ends:
            self._state.home.check_content()
        self._gradients.save()
        self._state.save()

    def _after_commit(self) -> None:
        self._state.restore_buffers()

    def _load_final(self) -> None:
        state = self._state
        load_final_model(
            state.saved, self._layout.names, state.home.tensors, self.job.checkpoint_dir
        )

    def _release(self) -> None:
        if self._workers is not None:
            self._workers.close()
            self._workers = None
        if self._optimizer_steps is not None:
            self._optimizer_steps.remove()
        self._gradients.remove()
        self._gradients.clear()


def _like(number: Any, other: torch.Tensor) -> torch.Tensor:
    """The number as a tensor on the device of the other one. Filling it there waits for nothing."""
    return number if isinstance(number, torch.Tensor) else torch.full_like(other, number)


def attach(model: Any, optimizer: Any, train_data: Any, **chosen: Any) -> TorchElastic:
    """pliant.attach for a PyTorch model."""
    guard = Guard()
    with guard.beginning():
        settings = TorchSettings(**chosen)
        _check_model(model)
        differing_products = products_problem()
        of_cpu = settings.threads or threads_from_environment()
        learner = Learner(
            name=settings.name or type(model).__name__,
            framework=describe(of_cpu),
            checkpoint_dir=settings.checkpoint_dir,
            gpu_problem=gpu_problem(),
        )
        guard.watch(learner)
        job = learner.job()
        if job.bitwise and not job.alone and differing_products:
            raise InvalidProgram(differing_products)
        settle(of_cpu, bitwise=job.bitwise)
        return TorchElastic(learner, guard, model, optimizer, train_data, settings)


def _check_model(model: Any) -> None:
    if not isinstance(model, torch.nn.Module):
        raise InvalidProgram(
            f"the model is a {type(model).__name__}: it must be a torch.nn.Module or a keras.Model"
        )
