"""A PyTorch loop that trains elastically: `attach`, then iterate steps, their batches, and
commit."""

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Literal, Protocol

import torch

from .._learner import Commit, Ending, Learner, Loaded, Shard
from ..errors import Diverged, InvalidProgram, PliantError, TrainingFailed
from ..process import Guard
from .batches import Batches, Collate, size_of
from .final_model import load_final_model
from .gradients import Gradients
from .numerics import compute_deterministically, describe, mix, seed_all
from .training_state import Stateful, TrainingState
from .workers import Workers

OnNonFinite = Literal["stop", "skip", "warn"]
# With "skip", a training that only skips has gone wrong for good.
_SKIPS_IN_A_ROW_MOST = 100

# Loss (mean over the batch, or its sum: see `attach`) and, where it means something, how many of
# the batch's samples were right.
Evaluate = Callable[[Any], "torch.Tensor | float | tuple[Any, Any]"]


class Scaler(Stateful, Protocol):
    """torch.amp.GradScaler."""

    def scale(self, outputs: torch.Tensor) -> torch.Tensor: ...
    def unscale_(self, optimizer: torch.optim.Optimizer) -> None: ...
    def step(self, optimizer: torch.optim.Optimizer) -> Any: ...
    def update(self) -> None: ...


class Step:
    """One optimizer step. Iterate it for the batches that this learner computes: as many as it has
    shards, and again those that are missing when others left in its midst. Then `commit`.

    When the iteration is over, the parameters' `grad` is the mean gradient over the global batch,
    the same on all learners.
    """

    def __init__(self, elastic: "Elastic", first: Shard | Commit) -> None:
        self._elastic = elastic
        self._work: Shard | Commit | Ending = first
        self._taken = False
        self._ended = False
        if isinstance(first, Commit):
            elastic._enter_commit(first)

    @property
    def epoch(self) -> int:
        return self._elastic._position(self._work)[0]

    @property
    def number(self) -> int:
        """Optimizer steps committed before this one."""
        return self._elastic._position(self._work)[1]

    @property
    def last_of_epoch(self) -> bool:
        return (self.number + 1) % self._elastic.steps_per_epoch == 0

    @property
    def shard(self) -> Shard:
        """The one whose batch is at hand."""
        if not isinstance(self._work, Shard):
            raise PliantError(
                "no shard is at hand: its batch is what the loop over the step yields"
            )
        return self._work

    @property
    def loss(self) -> float:
        """Mean over the samples of the global batch, once all of them are computed."""
        commit = self._commit_at_hand()
        return commit.loss / commit.samples

    @property
    def accuracy(self) -> float:
        """Share of the samples said to be right, once all of them are computed."""
        commit = self._commit_at_hand()
        return commit.correct / commit.samples

    def __iter__(self) -> Iterator[Any]:
        while isinstance(self._work, Shard):
            yield self._elastic._begin_shard(self._work)
            self._elastic._end_shard(self._work)
            self._work = self._elastic._next_of_step()
        if isinstance(self._work, Commit):
            self._elastic._enter_commit(self._work)

    def backward(self, loss: torch.Tensor, correct: Any = None) -> None:
        """`loss.backward()`, with the loss reported. `correct`: how many samples of the batch were
        right, to be reported as accuracy."""
        self._elastic._backward(loss, correct)

    def report(self, loss: Any, correct: Any = None) -> None:
        """For a program that calls `backward` of its loss itself: what the loss was."""
        self._elastic._report(float(loss), correct)

    def commit(self, max_norm: float | None = None) -> bool:
        """One step of the optimizer, with the reduced gradient, its norm clipped to `max_norm`.
        False: it was skipped (see `on_nonfinite` of `attach`). The step is over when the loop asks
        for the next one: a schedule that is stepped before belongs to it."""
        if isinstance(self._work, Ending):
            return False  # all is done, or this learner leaves: the loop ends with this step
        commit = self._commit_at_hand()
        if self._ended:
            raise PliantError("the step is committed already")
        self._ended = True
        self._taken = self._elastic._commit(commit, max_norm)
        return self._taken

    def _commit_at_hand(self) -> Commit:
        if not isinstance(self._work, Commit):
            raise PliantError("the step is not complete: iterate it to its end first")
        return self._work

    def _finish(self) -> Ending | None:
        if isinstance(self._work, Ending):
            return self._work
        if not self._ended:
            raise PliantError("the step was not committed: call step.commit() at its end")
        self._elastic._end_commit(self._taken)
        return None


class Elastic:
    """A training that learners may join and leave. Made by `attach`."""

    def __init__(
        self,
        learner: Learner,
        guard: Guard,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        train: tuple[Any, int],
        test: tuple[Any, int] | None,
        evaluate: Evaluate | None,
        collate: Collate | None,
        epochs: int,
        global_batch_size: int | None,
        logical_shards: int | None,
        seed: int | None,
        drop_last: bool,
        loss_reduction: Literal["mean", "sum"],
        on_nonfinite: OnNonFinite,
        scaler: Scaler | None,
        num_workers: int,
    ) -> None:
        self._learner = learner
        self._guard = guard
        self.job = learner.job()
        self.plan = learner.describe(
            train_samples=train[1],
            test_samples=test[1] if test else 0,
            epochs=epochs,
            global_batch_size=global_batch_size,
            logical_shards=logical_shards,
            seed=seed,
            drop_last=drop_last,
        )
        self.epochs = epochs
        self._model = model
        self._optimizer = optimizer
        self._evaluate = evaluate
        self._train = Batches(train[0], collate, self.plan.seed)
        self._test = Batches(test[0], collate, self.plan.seed) if test else None
        self._num_workers = num_workers
        self._workers: Workers | None = None
        self._means = loss_reduction == "mean"
        self._on_nonfinite = on_nonfinite
        self._scaler = scaler
        self._state = TrainingState(model, optimizer)
        self._counters = _Counters()
        self._state.add("pliant", self._counters)
        if scaler is not None:
            self._state.add("scaler", scaler)
        self._gradients = Gradients(self._state.parameters)
        self._started = False
        self._steps_taken = 0  # in all, as far as this process has seen them
        self._step = 0
        self._epoch = 0
        # Of the shard at hand.
        self._loss = 0.0
        self._correct = 0.0
        self._loss_known = False
        self._told_of_loss = False
        self.ending: Ending | None = None
        # Called with each line of metrics.jsonl, on one learner at a time.
        self.on_metrics: list[Callable[[dict[str, Any]], None]] = []

    @property
    def steps_per_epoch(self) -> int:
        return self.plan.steps_per_epoch

    @property
    def total_steps(self) -> int:
        return self.plan.total_steps

    def register(self, name: str, what: Stateful) -> None:
        """State that goes with the training's, to joining learners and to checkpoints: a schedule,
        a metric. Changed only between a step's `commit` and the next step. Before the first
        step."""
        if self._started:
            raise PliantError("register state before the first step")
        self._state.add(name, what)

    def steps(self) -> Iterator[Step]:
        """The steps that are left, in order. Ends when the training is complete. A learner that is
        told to leave ends its process here (SystemExit)."""
        if self._started:
            raise PliantError("a training's steps are iterated once")
        self._started = True
        self._state.register(self._learner)
        if self._num_workers > 0:
            self._workers = Workers(self._num_workers, self._train, self._test)
        self._learner.start()
        step: Step | None = None
        try:
            while True:
                work = self._next_of_step()
                if isinstance(work, Ending):
                    return self._end(work)
                step = Step(self, work)
                yield step
                ending, step = step._finish(), None
                if ending:
                    return self._end(ending)
        except GeneratorExit:
            if step is not None and step._ended and not self._learner.closed:
                step._finish()
            raise
        except PliantError as error:
            self._guard.fail(error)
            raise

    # ---- For Step ----

    def _position(self, work: Shard | Commit | Ending) -> tuple[int, int]:
        if not isinstance(work, Ending):
            self._epoch, self._step = work.epoch, work.step
        return self._epoch, self._step

    def _next_of_step(self) -> Shard | Commit | Ending:
        """The next training shard or commit. Everything else is done here."""
        while True:
            work = self._learner.next()
            self._pass_on_metrics()
            if isinstance(work, Loaded):
                self._state.loaded()
                self._learner.loaded()
            elif isinstance(work, Shard) and not work.training:
                self._evaluate_shard(work)
            else:
                return work

    def _begin_shard(self, shard: Shard) -> Any:
        self._state.restore_buffers()
        batch = self._load(self._train, shard)
        self._gradients.begin(shard.gradient, len(shard.samples) if self._means else 1.0)
        self._loss, self._correct, self._loss_known = 0.0, 0.0, False
        seed_all(shard.seed)
        return batch

    def _load(self, batches: Batches, shard: Shard) -> Any:
        def in_place() -> Any:
            return batches.load(shard.samples, shard.epoch)

        if self._workers is None:
            return in_place()
        batch = self._workers.load(shard, in_place)
        self._workers.ask_ahead(self._learner.forecast)
        return batch

    def _backward(self, loss: torch.Tensor, correct: Any) -> None:
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            raise InvalidProgram("the loss must be a tensor of one number")
        (self._scaler.scale(loss) if self._scaler else loss).backward()
        self._report(float(loss.detach()), correct)

    def _report(self, loss: float, correct: Any) -> None:
        self._loss += loss
        self._correct += 0.0 if correct is None else float(correct)
        self._loss_known = True

    def _end_shard(self, shard: Shard) -> None:
        if not self._gradients.hand_in(self._learner):
            raise InvalidProgram(
                "no parameter has a gradient after a batch: call step.backward(loss) for each, "
                "with a loss that the attached model made"
            )
        if not self._loss_known and not self._told_of_loss:
            self._told_of_loss = True
            print("pliant: no loss is reported: step.backward(loss) does it", file=sys.stderr)
        if shard.index == 0:
            self._state.save_buffers()
        count = len(shard.samples)
        loss = self._loss * (count if self._means else 1)
        self._learner.shard_done(samples=count, loss=loss, correct=self._correct)

    def _evaluate_shard(self, shard: Shard) -> None:
        assert self._test is not None and self._evaluate is not None
        self._state.restore_buffers()
        batch = self._load(self._test, shard)
        seed_all(shard.seed)
        was_training = self._model.training
        self._model.eval()
        with torch.no_grad():
            said = self._evaluate(batch)
        self._model.train(was_training)
        loss, correct = said if isinstance(said, tuple) else (said, 0.0)
        count = len(shard.samples)
        total = float(loss) * (count if self._means else 1)
        self._learner.shard_done(samples=count, loss=total, correct=float(correct))

    def _enter_commit(self, commit: Commit) -> None:
        self._position(commit)
        self._gradients.set_reduced(commit)
        seed_all(mix(self.plan.seed, commit.step))

    def _commit(self, commit: Commit, max_norm: float | None) -> bool:
        # A scaler looks for itself, and lowers its scale.
        if self._scaler is not None:
            self._scaler.unscale_(self._optimizer)
        elif not self._judge(commit):
            return False
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(self._state.parameters, max_norm, foreach=False)
        if self._scaler is not None:
            self._scaler.step(self._optimizer)
            self._scaler.update()
        else:
            self._optimizer.step()
        return True

    def _judge(self, commit: Commit) -> bool:
        """Whether the step is taken: decided on what all learners have in common, so all decide
        alike."""
        loss = commit.loss / commit.samples
        what = "" if loss == loss and abs(loss) != float("inf") else f"its loss is {loss}"
        if not what and not self._gradients.finite():
            what = "its gradient is not finite"
        if not what:
            self._counters.nonfinite_in_a_row = 0
            return True
        in_a_row = self._counters.nonfinite_in_a_row + 1
        advice = (
            "the training diverges, or its data are wrong: a lower learning rate, a warm-up or "
            "max_norm may help"
        )
        if self._on_nonfinite == "stop":
            raise Diverged(f"step {commit.step} cannot be taken, {what}: {advice}")
        if self._on_nonfinite == "skip" and in_a_row > _SKIPS_IN_A_ROW_MOST:
            raise Diverged(
                f"step {commit.step} cannot be taken, {what}, nor could the "
                f"{_SKIPS_IN_A_ROW_MOST} before it: {advice}"
            )
        self._counters.nonfinite_in_a_row = in_a_row
        skip = self._on_nonfinite == "skip"
        if in_a_row == 1:
            done = "skipped" if skip else "taken"
            print(f"pliant: step {commit.step} is {done} although {what}", file=sys.stderr)
        return not skip

    def _end_commit(self, taken: bool) -> None:
        self._gradients.clear()
        self._state.save()
        self._learner.committed(taken=taken)
        self._state.restore_buffers()
        self._steps_taken = self._step + 1

    # ---- The end ----

    def _pass_on_metrics(self) -> None:
        for line in self._learner.metrics():
            for listener in self.on_metrics:
                listener(line)

    def _end(self, ending: Ending) -> None:
        self.ending = ending
        self._pass_on_metrics()
        self.close()
        if ending.reason == "Failed":
            raise TrainingFailed(ending.message, ending.exit_code)
        if ending.reason == "Interrupted":
            raise KeyboardInterrupt
        if ending.reason == "Drained":
            raise SystemExit(0)
        if self._steps_taken < self.total_steps:
            load_final_model(self._model, self.job.checkpoint_dir)

    def close(self) -> None:
        """Gives up what has not ended, and lets go of the model."""
        if self._workers is not None:
            self._workers.close()
            self._workers = None
        self._gradients.remove()
        self._gradients.clear()
        self._guard.close()


class _Counters:
    """What is counted over steps, and is state as the rest."""

    def __init__(self) -> None:
        self.nonfinite_in_a_row = 0

    def state_dict(self) -> dict[str, Any]:
        return {"nonfinite_in_a_row": self.nonfinite_in_a_row}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.nonfinite_in_a_row = state_dict["nonfinite_in_a_row"]


def attach(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    train_data: Any,
    *,
    epochs: int,
    batch_size: int | None = None,
    test_data: Any = None,
    evaluate: Evaluate | None = None,
    collate: Collate | None = None,
    seed: int | None = None,
    logical_shards: int | None = None,
    drop_last: bool = False,
    loss_reduction: Literal["mean", "sum"] = "mean",
    on_nonfinite: OnNonFinite = "stop",
    scaler: Scaler | None = None,
    num_workers: int = 0,
    threads: int | None = None,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    name: str | None = None,
) -> Elastic:
    """Makes a training elastic.

    In a pod of an ElasticTrainingJob the job decides who trains. Elsewhere this process trains
    alone, with the same result, writes checkpoints, and goes on from the newest that it finds.

    train_data, test_data: map-style datasets. `collate` as DataLoader's collate_fn.
    batch_size: of the global batch, over all learners. None: the job's or, alone, 256.
    evaluate: called with a batch of the test data after each epoch; returns the loss, or the loss
        and how many samples were right.
    seed: of the order of the data, and of what a batch draws. None: the job's, else 0. The model's
        first parameters are the program's: seed torch before it is built.
    drop_last: leave out the samples that do not fill an epoch's last batch. Otherwise it is smaller,
        and BatchNorm fails on a shard of one sample.
    loss_reduction: what the loss is over a batch: "mean" or "sum".
    on_nonfinite: what to do with a step whose loss or gradient is not finite.
    scaler: of mixed precision.
    num_workers: processes that load data ahead; 0: they are loaded between two batches.
    threads: of each operation on the CPU. It is part of the result. None: OMP_NUM_THREADS, else 1.
    checkpoint_dir: None: PLIANT_CHECKPOINT_DIR, else ./checkpoints.
    """
    threads = threads or int(os.environ.get("OMP_NUM_THREADS") or 1)
    compute_deterministically(threads)
    guard = Guard()
    learner = Learner(
        name=name or type(model).__name__,
        framework=describe(threads),
        checkpoint_dir=os.fspath(checkpoint_dir) if checkpoint_dir else None,
    )
    guard.watch(learner)
    try:
        if epochs < 1:
            raise InvalidProgram(f"epochs is {epochs}: it must be at least 1")
        if (test_data is None) != (evaluate is None):
            raise InvalidProgram(
                "test_data and evaluate are given together: what is tested, and how"
            )
        return Elastic(
            learner,
            guard,
            model,
            optimizer,
            train=(train_data, size_of(train_data, "training")),
            test=None if test_data is None else (test_data, size_of(test_data, "test")),
            evaluate=evaluate,
            collate=collate,
            epochs=epochs,
            global_batch_size=batch_size,
            logical_shards=logical_shards,
            seed=seed,
            drop_last=drop_last,
            loss_reduction=loss_reduction,
            on_nonfinite=on_nonfinite,
            scaler=scaler,
            num_workers=num_workers,
        )
    except PliantError as error:
        guard.fail(error)
        raise
