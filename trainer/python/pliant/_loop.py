"""The loop of an elastic training, for any framework: call `attach`, iterate the steps and their
batches, and commit."""

import abc
import contextlib
import math
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from ._checks import or_none, whole
from ._evaluation import Evaluation
from ._framework_part import FrameworkPart
from ._learner import Commit, Ending, Evaluated, Learner, Loaded, Shard
from ._nonfinite import takes_step
from ._notices import Notices
from ._numbers import one_number
from ._own_batches import OwnBatches
from ._settings import Settings
from ._shard_report import ShardReport
from ._states import Counters, Stateful
from ._watcher import Watcher
from .errors import InvalidProgram, PliantError, TrainingFailed
from .process import Guard

_LEARNERS_MAX = 1 << 16


class Step:
    """One optimizer step. Iterate it to get the batches that this learner computes: one for each of
    its shards, and more if other learners leave during the step. Then call `commit`. A learner that
    must leave before the step is complete ends its process here, as in Elastic.steps."""

    def __init__(self, elastic: "Elastic[Any]", first: Shard | Commit) -> None:
        self._elastic = elastic
        # An Ending, or a Loaded: others have completed the step without this learner.
        self._work: Shard | Commit | Ending | Loaded = first
        self._taken = False
        self._ended = False
        elastic._position(first)  # remembered here, because an Ending has no position
        self._last = first.last
        if isinstance(first, Commit):
            elastic._enter_commit(first)

    @property
    def epoch(self) -> int:
        """Number of the epoch, from 0."""
        return self._elastic._position(self._work)[0]

    @property
    def number(self) -> int:
        """Optimizer steps committed before this one."""
        return self._elastic._position(self._work)[1]

    @property
    def last_of_epoch(self) -> bool:
        """Whether this is the epoch's last step: step a per-epoch schedule after its commit."""
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
        `loss` is; 0 if other learners completed the step."""
        commit = self._result()
        return commit.totals.weight if commit else 0.0

    @property
    def sums(self) -> Mapping[str, float]:
        """The named sums over the global batch (`log`), equal on all learners. Available when
        `loss` is; empty if other learners completed the step."""
        commit = self._result()
        return commit.totals.named if commit else {}

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
        elif isinstance(self._work, Ending) and self._work.reason != "Completed":
            self._elastic._end(self._work)  # ends the process: the step has no result

    def commit(self, max_norm: float | None = None) -> bool:
        """Takes one step of the optimizer with the reduced gradient, its norm clipped to
        `max_norm`. Returns False if the step was skipped (see `on_nonfinite` of `attach`). State
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
        self._taken = self._elastic._commit(commit, max_norm)
        return self._taken

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
        self._elastic._finish_commit(self._taken)
        return None


StepT = TypeVar("StepT", bound=Step)


class Elastic(FrameworkPart, Generic[StepT]):
    """A training that learners may join and leave. Created by `attach`.

    job: the job, as the environment describes it.
    plan: the batch size, its logical shards, and the number of steps.
    epochs: passes over the training data.
    evaluates: whether there are test data.
    ending: how the training ended; None until then.
    on_metrics: a list of functions, called with each line of metrics.jsonl, on one learner at a
        time. The line also has the learning rate and the seconds per step.
    on_evaluation: a list of functions, called with the Evaluation of each epoch, on every learner.
        Their decisions and changes must depend only on the Evaluation and on registered state.
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
    ) -> None:
        self._learner = learner
        self._guard = guard
        self._settings = settings
        self._own_batches = OwnBatches(self._registered)
        guard.explain = self._own_batches.explain
        self.job = learner.job()
        self.plan = learner.describe(
            train_samples=train_samples,
            test_samples=test_samples,
            epochs=settings.epochs,
            global_batch_size=settings.batch_size,
            logical_shards=settings.logical_shards,
            seed=settings.seed,
            drop_last=settings.drop_last,
            in_order=in_order,
        )
        self._notices = Notices(
            self.job, self.plan, names_shards=settings.logical_shards is not None
        )
        self.epochs = settings.epochs
        self.evaluates = test_samples > 0
        self._loss_is_mean = loss_is_mean
        self._counters = Counters()
        self._started = False
        self._steps_taken = 0  # in total, as far as this process has seen them
        self._step = 0
        self._epoch = 0
        self._doublings = 0  # of the batch, in the last commit
        self._report = ShardReport()  # of the current shard
        self._weighs: bool | None = None  # whether batches have weights; None: not known yet
        self._first = self.job.alone
        self.ending: Ending | None = None
        self.on_metrics: list[Callable[[dict[str, Any]], None]] = []
        self.on_evaluation: list[Callable[[Evaluation], None]] = []
        self._watchers: list[Watcher] = []

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
        """Optimizer steps in all epochs. If the batch grows, there are fewer."""
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

    def register(self, name: str, what: Stateful) -> None:
        """Adds state to the training's, which joining learners and checkpoints receive: a schedule,
        a counter, an average of the parameters. `what` has `state_dict` and `load_state_dict`, with
        numbers, texts, tensors, arrays, lists and dicts. Change it only between a step's `commit`
        and the next step, from values that are equal on all learners: learners compare it. A
        PyTorch optimizer's only schedule needs no call. Call this before the first step."""
        if self._started:
            raise InvalidProgram(
                f"register({name!r}, ...) comes too late: register state before the first step"
            )
        self._add_state(name, what)

    def watch(self, watcher: Watcher) -> None:
        """Adds a watcher: ProgressBar, TensorBoard, EarlyStopping or your own. Call this before the
        first step."""
        if self._started:
            raise InvalidProgram("watch(...) comes too late: call it before the first step")
        watcher.begin(self)
        self._watchers.append(watcher)
        self.on_metrics.append(watcher.on_metrics)

    def stop(self) -> None:
        """Completes the training with the committed step, even before its last epoch. All learners
        must call it at the same step: call it between a step's `commit` and the next step, or in
        `on_evaluation`, and decide it only from values that are equal on all learners."""
        self._counters.stopped = True

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called: no further step follows."""
        return self._counters.stopped

    def request_learners(self, learners: int | None) -> None:
        """Application-driven elasticity: requests this number of learners from now on (None: as
        many as available). The job gets what its limits and its fair share allow; its size may stay
        unchanged. All learners must call it with the same number at the same step: call it between
        a step's `commit` and the next step."""
        check = or_none(whole(1, _LEARNERS_MAX))
        self._counters.learners_asked = check("request_learners: learners", learners) or 0
        self._learner.request_learners(self._counters.learners_asked)

    def steps(self) -> Iterator[StepT]:
        """Iterates the remaining steps in order. Ends when the training is complete. A learner that
        must leave ends its process here (SystemExit). Raises TrainingFailed if the learner
        fails."""
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
            self._prepare()
            self._learner.start()
            while True:
                work = self._next_of_step()
                if isinstance(work, Ending):
                    return self._end(work)
                self._notices.where_it_goes_on(work.step)
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
        watchers, self._watchers = self._watchers, []
        if Elastic.present is self:
            Elastic.present = None
        with contextlib.ExitStack() as last:  # runs in reverse order, all of it, even if one raises
            last.callback(self._guard.close)
            for watcher in reversed(watchers):
                last.callback(watcher.end)

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
        weighs = report.weight is not None
        if self._weighs not in (None, weighs):
            raise InvalidProgram(
                "some batches have a weight and others have none: give each batch a weight, or none"
            )
        self._weighs = weighs
        self._answer(shard, report)

    def _answer(self, shard: Shard, report: ShardReport) -> None:
        samples = len(shard.samples)
        loss = report.loss_sum(samples, is_mean=self._loss_is_mean)
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
        for listener in self.on_evaluation:
            listener(evaluation)
        self._own_batches.state_changed()
        self._save()
        self._stop_if_asked()
        self._learner.evaluated()
        self._after_commit()

    def _stop_if_asked(self) -> None:
        if self._counters.stopped:
            self._learner.stop()

    def _finish_commit(self, taken: bool) -> None:
        self._save()
        self._stop_if_asked()
        self._learner.committed(taken=taken)
        self._after_commit()
        self._steps_taken = self._step + 1

    # ---- The end ----

    def _pass_on_metrics(self) -> None:
        for line in self._learner.metrics():
            if self.on_metrics and line.get("kind") == "train":
                rate = self._learning_rate()
                if rate is not None:
                    line["learningRate"] = rate
                if line.get("samplesPerSecond"):
                    line["stepSeconds"] = line["batchSize"] / line["samplesPerSecond"]
            for listener in self.on_metrics:
                listener(line)

    def _end(self, ending: Ending) -> None:
        if not self._learner.closed:  # it is closed if the program caught the step's exception
            self._let_go(ending)
        if ending.reason == "Failed":
            raise TrainingFailed(ending.message, ending.exit_code)
        if ending.reason == "Interrupted":
            self._notices.interrupted()
            raise KeyboardInterrupt
        if ending.reason == "Drained":
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
