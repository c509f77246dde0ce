"""The loop of an elastic training, for any framework: call `attach`, iterate the steps and their
batches, and commit."""

import abc
import contextlib
import math
import traceback
from collections.abc import Iterator
from typing import Any, ClassVar, Generic, Literal, TypeVar

from ._callback import Callback, Callbacks
from ._checks import one_of, or_none, whole
from ._evaluation import Evaluation
from ._framework_part import FrameworkPart
from ._learner import Commit, Ending, Evaluated, Learner, Loaded, Shard
from ._micro_batches import logical_shards
from ._nonfinite import takes_step
from ._notices import Notices
from ._numbers import one_number
from ._own_batches import OwnBatches
from ._settings import Settings
from ._shard_report import ShardReport
from ._states import Counters, Stateful
from ._step import Step
from .errors import InvalidProgram, PliantError, TrainingFailed
from .process import Guard

_LEARNERS_MAX = 1 << 16
OnLeave = Literal["exit", "return"]
StepT = TypeVar("StepT", bound=Step)


class Elastic(FrameworkPart, Generic[StepT]):
    """A training that learners may join and leave. Created by `attach`.

    job: the job, as the environment describes it.
    plan: the batch size, its logical shards, and the number of steps.
    epochs: passes over the training data that begin, before the batch grows.
    evaluates: whether there are test data.
    ending: how the training ended; None until then.
    """

    # The training whose steps are iterated in this process.
    present: ClassVar["Elastic[Any] | None"] = None

    def __init__(
        self,
        learner: Learner,
        guard: Guard,
        settings: Settings,
        *,
        train_samples: int,
        test_samples: int,
        in_order: bool,
        loss_is_mean: bool,
        base: tuple[str, str] | None = None,
    ) -> None:
        self._learner = learner
        self._guard = guard
        self._settings = settings
        self._own_batches = OwnBatches(self._registered)
        guard.explain = self._own_batches.explain
        self.job = learner.job()
        shards = logical_shards(settings, self.job)
        self.plan = learner.describe(
            train_samples=train_samples,
            test_samples=test_samples,
            epochs=settings.epochs,
            max_steps=settings.max_steps,
            evaluate_every=settings.evaluate_every,
            checkpoint_every_steps=settings.checkpoint_every_steps,
            global_batch_size=settings.batch_size,
            logical_shards=shards,
            seed=settings.seed,
            drop_last=settings.drop_last,
            in_order=in_order,
            base=base,
        )
        self._notices = Notices(self.job, self.plan, names_shards=shards is not None)
        self.epochs = -(-self.plan.total_steps // self.plan.steps_per_epoch)
        self.evaluates = test_samples > 0
        self._loss_is_mean = loss_is_mean
        self._counters = Counters()
        self._started = False
        self._epoch_ends = False  # with the present commit or evaluation, or the training does
        self._checkpoint_asked = False  # of the state after the current step or evaluation
        self._best_note: str | None = None  # of a model after the current evaluation
        self._returns = False  # where it would exit because it must leave
        self._steps_taken = 0  # in total, as far as this process has seen them
        self._step = 0
        self._epoch = 0
        self._doublings = 0  # of the batch, in the last commit
        self._report = ShardReport()  # of the current shard
        self._first = self.job.alone
        self.ending: Ending | None = None
        self._callbacks = Callbacks()

    def __repr__(self) -> str:
        of = "alone" if self.job.alone else f"of the job {self.job.name}"
        plan = self.plan
        return (
            f"<elastic training {of}: step {self._step} of {plan.total_steps}, "
            f"{plan.global_batch_size} samples in {plan.logical_shards} shards each>"
        )

    @property
    def steps_per_epoch(self) -> int:
        """Optimizer steps in one pass over the training data, before the batch grows."""
        return self.plan.steps_per_epoch

    @property
    def total_steps(self) -> int:
        """Optimizer steps of the training. If the batch grows, epochs have fewer."""
        return self.plan.total_steps

    @property
    def batch_growth(self) -> int:
        """The global batch of the last commit, divided by that of the first epoch: 1, 2, 4 ..."""
        return 1 << self._doublings

    @property
    def first(self) -> bool:
        """Whether this learner is the first of those that train now: the one that writes
        metrics.jsonl. As of the last committed step or evaluation; before that only if it trains
        alone. For output only: a decision made from it destroys the training, because learners
        must stay equal."""
        return self._first

    def register(self, name: str, what: Stateful | dict[str, Any]) -> None:
        """Adds state to the training's, which joining learners and checkpoints receive: a schedule,
        a counter, an average of the parameters. `what` has `state_dict` and `load_state_dict`, or
        is a dict whose entries are the state: numbers, texts, tensors, arrays, lists, dicts. Change it only between a step's `commit`
        and the next step, from values that are equal on all learners: learners compare it. A
        PyTorch optimizer's only schedule needs no call. Call this before the first step."""
        if self._started:
            raise InvalidProgram(
                f"register({name!r}, ...) comes too late: register state before the first step"
            )
        self._add_state(name, what)

    def add_callback(self, callback: Callback) -> None:
        """Adds a callback: ProgressBar, TensorBoard, EarlyStopping, BestModel or your own. They are
        called in the order of their addition. Call this before the first step."""
        if self._started:
            raise InvalidProgram("add_callback(...) comes too late: call it before the first step")
        self._callbacks.add(callback, self)

    def stop(self) -> None:
        """Completes the training with the committed step, even before its last epoch. All learners
        must call it at the same step: call it between a step's `commit` and the next step, or in a
        callback's `on_test_end`, and decide it only from values that are equal on all learners."""
        self._counters.stopped = True

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called: no further step follows."""
        return self._counters.stopped

    def save_checkpoint(self) -> None:
        """Writes a checkpoint of the state after this step, besides those of the job and of
        `checkpoint_every_steps`; while another is being written, of the step after that. Call it
        between a step's `commit` and the next step, or in a callback after an evaluation, on all
        learners alike. The first one writes it, and the training continues meanwhile."""
        if not self._started:
            raise InvalidProgram(
                "save_checkpoint() comes too early: call it between a step's commit and the next "
                "step"
            )
        self._checkpoint_asked = True

    def request_learners(self, learners: int | None) -> None:
        """Application-driven elasticity: requests this number of learners from now on (None: as
        many as available). The job gets what its limits and its fair share allow; its size may stay
        unchanged. All learners must call it with the same number at the same step: call it between
        a step's `commit` and the next step."""
        check = or_none(whole(1, _LEARNERS_MAX))
        self._counters.learners_asked = check("request_learners: learners", learners) or 0
        self._learner.request_learners(self._counters.learners_asked)

    def steps(self, on_leave: OnLeave = "exit") -> Iterator[StepT]:
        """Iterates the remaining steps in order. Ends when the training is complete. A learner that
        must leave ends its process here (SystemExit), or, with `on_leave="return"`, the iteration:
        `ending` then has the reason "Drained", and others continue the training. Raises
        TrainingFailed if the learner fails."""
        self._returns = one_of("exit", "return")("on_leave", on_leave) == "return"
        return self._iterate()

    def _iterate(self) -> Iterator[StepT]:
        if self._started:
            raise InvalidProgram(
                "the steps of a training are iterated once: call pliant.attach for another one"
            )
        self._started = True
        Elastic.present = self
        step: StepT | None = None
        try:
            self._notices.what_a_batch_is()
            self._guard.at_close(self._release)
            for callback in self._callbacks:
                callback.on_train_begin()
            self._prepare()
            self._notices.replaces_a_handler()
            self._learner.start()
            while True:
                work = self._next_of_step()
                if isinstance(work, Ending):
                    return self._end(work)
                self._notices.where_it_goes_on(work.step)
                self._notices.has_a_late_handler()
                self._own_batches.begin_step(work.step)
                step = self._make_step(work)
                yield step
                ending, step = step._finish(), None
                if ending:
                    return self._end(ending)
        except GeneratorExit:
            if not self._learner.closed:
                if step is not None and step._ended:
                    step._finish()
                if not self._counters.stopped:
                    self._notices.the_loop_was_left(self._step)
            raise
        except PliantError as error:
            self._guard.fail(error)
            raise

    def close(self) -> None:
        """Ends the training in this process, even if it is not complete, and releases the model."""
        if Elastic.present is self:
            Elastic.present = None
        with contextlib.ExitStack() as last:  # runs in reverse order, all of it, even if one raises
            last.callback(self._guard.close)
            self._callbacks.end(last)

    # ---- For Step ----

    @abc.abstractmethod
    def _make_step(self, work: Shard | Commit) -> StepT: ...

    def _position(self, work: Shard | Commit | Ending | Loaded) -> tuple[int, int]:
        if isinstance(work, Shard | Commit):
            self._epoch, self._step = work.epoch, work.step
        if isinstance(work, Commit):
            self._doublings, self._first = work.doublings, work.first
        return self._epoch, self._step

    def _take_state(self) -> None:
        self._checkpoint_asked = False  # for a step that is undone here
        self._own_batches.state_changed()
        self._take_over()
        self._learner.request_learners(self._counters.learners_asked)
        self._stop_if_asked()
        self._learner.loaded()

    def _next_of_step(self, *, in_step: bool = False) -> Any:
        """The next training shard, commit or ending. Other work is done here, but a state is loaded
        between two steps: what the loop sets before a step must fit the state."""
        while True:
            work = self._learner.next()
            self._pass_on_metrics()
            if isinstance(work, Loaded):
                if in_step:
                    return work
                self._take_state()
            elif isinstance(work, Evaluated):
                self._hear_of(work)
            elif isinstance(work, Shard) and not work.training:
                self._answer(work, self._evaluate_batch(work))
            else:
                if isinstance(work, Ending):
                    self.ending = work
                return work

    def _begin_shard(self, shard: Shard) -> Any:
        self._report = ShardReport()
        self._own_batches.begin_batch()
        return self._begin_batch(shard)

    def _number(self, what: str, value: Any) -> Any:
        """A number that the program reports, in a form that can be added up."""
        return one_number(what, value)

    def _end_shard(self, shard: Shard) -> None:
        self._end_batch(shard)
        report = self._report
        if not report.loss_is_known:
            self._notices.no_loss_is_reported()
        self._answer(shard, report)

    def _answer(self, shard: Shard, report: ShardReport) -> None:
        samples = len(shard.samples)
        loss = report.loss_sum(samples, is_mean=self._loss_is_mean)
        if isinstance(loss, float) and not math.isfinite(loss):  # a GPU's is not waited for
            self._notices.loss_is_not_finite(shard, loss)
        self._shard_done(samples, loss, report)

    def _shard_done(self, samples: int, loss: Any, report: ShardReport) -> None:
        """Answers a shard. `loss`: its sum."""
        self._learner.report_sums(report.weight, report.sums)
        self._learner.shard_done(samples=samples, loss=loss, correct=report.correct)

    def _judge(self, commit: Commit, *, scaled: bool = False) -> bool:
        return takes_step(
            commit,
            self._settings.on_nonfinite,
            self._counters,
            self._gradient_is_finite,
            scaled=scaled,
        )

    def _hear_of(self, evaluated: Evaluated) -> None:
        self._first = evaluated.first
        evaluation = Evaluation.of(evaluated)
        for callback in self._callbacks:
            callback.on_test_end(evaluation)
        self._epoch_ends = True
        self._own_batches.state_changed()
        self._save()
        self._stop_if_asked()
        self._save_checkpoint_if_asked()
        if self._best_note is not None:
            self._learner.export_best(self._best_note)
            self._best_note = None
        self._learner.evaluated()
        self._after_commit()

    def _stop_if_asked(self) -> None:
        if self._counters.stopped:
            self._learner.stop()

    def _export_best(self, note: str) -> None:
        """The model after this evaluation replaces `<job>/best`."""
        self._best_note = note

    def _save_checkpoint_if_asked(self) -> None:
        if self._checkpoint_asked:
            self._checkpoint_asked = False
            self._learner.save_checkpoint()

    def _finish_commit(self, step: Step, taken: bool) -> None:
        for callback in self._callbacks:
            callback.on_train_batch_end(step)
            if step.last_of_epoch:
                callback.on_epoch_end(step.epoch)
        ends = self.stopping or step.number + 1 == self.plan.total_steps
        self._epoch_ends = ends or step.last_of_epoch
        self._save()
        self._stop_if_asked()
        self._save_checkpoint_if_asked()
        self._learner.committed(taken=taken)
        self._after_commit()
        self._steps_taken = self._step + 1

    # ---- The end ----

    def _pass_on_metrics(self) -> None:
        for line in self._learner.metrics():
            if self._callbacks and line.get("kind") == "train":
                rate = self._learning_rate()
                if rate is not None:
                    line["learningRate"] = rate
                if line.get("samplesPerSecond"):
                    line["stepSeconds"] = line["batchSize"] / line["samplesPerSecond"]
            for callback in self._callbacks:
                callback.on_log(line)

    def _exits(self, ending: Ending) -> bool:
        """Whether the program's loop ends with an exception."""
        return ending.reason != "Completed" and not (ending.reason == "Drained" and self._returns)

    def _end(self, ending: Ending) -> None:
        if not self._learner.closed:  # it is closed if the program caught the step's exception
            self._let_go(ending)
        if ending.reason == "Failed":
            raise TrainingFailed(ending.message, ending.exit_code)
        if ending.reason == "Interrupted":
            self._notices.interrupted()
            raise KeyboardInterrupt
        if ending.reason == "Drained":
            if self._returns:
                return
            raise SystemExit(0)
        self._notices.it_was_complete(ending.step)
        if self._steps_taken < ending.step:
            self._load_final()

    def _let_go(self, ending: Ending) -> None:
        self._pass_on_metrics()
        try:
            self.close()
        except Exception:
            if ending.reason == "Completed":
                raise
            traceback.print_exc()  # the caller raises the ending instead, which matters more
