"""Elastic training of a Keras model."""

import multiprocessing
import time
from collections.abc import Callable, Sequence
from typing import Any

import keras

from .._learner import Commit, Learner, Shard
from .._loop import Elastic
from .._numbers import one_number
from .._seeds import mix
from .._settings import KerasSettings
from .._shard_report import ShardReport, evaluated
from .._states import Stateful
from .._step import Step
from .._threads import threads_of
from .._workers import Workers
from ..errors import InvalidProgram
from ..process import Guard
from .batches import Batches, size_of
from .engine import Engine, parts_of
from .engines import engine_of_backend
from .final_model import load_final_model
from .model_state import Gradients, ModelState
from .objective import Objective, objective_of


class KerasStep(Step):
    _elastic: "KerasElastic"

    def train(self, batch: Any) -> float:
        """Computes forward and backward of a batch in one compiled function, with the loss passed
        to `attach`. Returns the loss. Call it once for each batch."""
        return self._elastic._train_batch(batch)

    def backward(
        self,
        loss: Any,
        gradients: Sequence[Any],
        correct: Any = None,
        *,
        weight: Any = None,
        **sums: Any,
    ) -> None:
        """Takes gradients that the program computed itself, instead of `train`: the gradients of
        `loss`, the mean over the batch, one for each of model.trainable_variables (None: it has
        none). `correct`: the number of correct samples in the batch, reported as accuracy.

        `weight`: the tokens (or other units) that the loss is the mean of. The step then divides by
        all tokens of the global batch, and so do the loss and the accuracy. Give each batch a
        weight, or none. Further numbers are named sums: see `log`."""
        self._elastic._take_gradients(loss, gradients, correct, weight)
        self.log(**sums)


class KerasElastic(Elastic[KerasStep]):
    _settings: KerasSettings

    def __init__(
        self,
        learner: Learner,
        guard: Guard,
        engine: Engine,
        settings: KerasSettings,
        train: Batches,
        test: Batches | None,
    ) -> None:
        super().__init__(
            learner,
            guard,
            settings,
            train_samples=train.size,
            test_samples=0 if test is None else test.size,
            in_order=train.in_order,
            loss_is_mean=engine.loss_is_mean,
        )
        self._engine = engine
        self._model = engine.model
        self._optimizer = engine.optimizer
        self._train = train
        self._test = test
        self._workers: Workers | None = None
        self._evaluate = settings.evaluate or self._evaluate_by_objective
        self._state = ModelState(engine, engine.model, engine.optimizer)
        self._state.others.add("pliant", self._counters)
        self._gradients = Gradients(self._state.parameters)
        self._handed_in = False

    @property
    def objective(self) -> Objective:
        return self._engine.objective

    def _add_state(self, name: str, what: Stateful | dict[str, Any]) -> None:
        self._state.others.add(name, what)

    def _registered(self) -> dict[str, Any]:
        return self._state.others.plain()

    def _prepare(self) -> None:
        self._state.register(self._learner)
        self._train.follow(self.plan)
        if self._test is not None:
            self._test.follow(self.plan)
        workers = self._settings.num_workers
        if workers > 0:
            context = multiprocessing.get_context("fork")
            self._workers = Workers(workers, self._train, self._test, context=context)

    def _make_step(self, work: Shard | Commit) -> KerasStep:
        return KerasStep(self, work)

    def _take_over(self) -> None:
        self._state.loaded()

    # ---- A shard ----

    def _begin_batch(self, shard: Shard) -> Any:
        self._shard = shard
        self._handed_in = False
        return self._load(self._train, shard)

    def _load(self, batches: Batches, shard: Shard) -> Any:
        self._state.restore_buffers()

        def in_place() -> Any:
            return batches.load(shard.samples, shard.epoch)

        began = time.monotonic()
        batch = self._workers.load(shard, in_place) if self._workers else in_place()
        self._learner.data_waited(time.monotonic() - began)
        if self._workers:
            self._workers.ask_ahead(self._learner.forecast)
        self._set_seeds(shard.seed)
        return batch

    def _set_seeds(self, seed: int) -> None:
        self._engine.seed(seed)
        self._state.set_seeds(seed)

    def _train_batch(self, batch: Any) -> float:
        loss, counted, gradients = self._engine.gradients(batch)
        sums = self._engine.objective.figures(counted)
        self._hand_in(loss, sums.pop("correct", None), gradients)
        self._report.log(sums, self._number)
        return loss

    def _evaluate_by_objective(self, batch: Any) -> dict[str, float]:
        loss, counted = self._engine.evaluate(batch)
        return {"loss": loss, **self._engine.objective.figures(counted)}

    def _take_gradients(
        self, loss: Any, gradients: Sequence[Any], correct: Any, weight: Any
    ) -> None:
        self._report.weigh(weight)
        arrays = [None if each is None else self._engine.array(each) for each in gradients]
        self._hand_in(one_number("the loss", loss), correct, arrays)

    def _hand_in(self, loss: float, correct: Any, gradients: list[Any]) -> None:
        if self._handed_in:
            raise InvalidProgram(
                "the current batch was trained already: call step.train(batch) or "
                "step.backward(loss, gradients) once for each batch"
            )
        weight = self._report.weight
        if weight == 0:
            self._handed_in = True  # the gradient of a mean over nothing is dropped
        else:
            over = len(self._shard.samples) if weight is None else weight
            self._handed_in = self._gradients.hand_in(
                self._learner,
                self._shard.gradient,
                gradients,
                over if self._loss_is_mean else 1.0,
            )
        self._report.add(loss, correct, self._number)

    def _end_batch(self, shard: Shard) -> None:
        if not self._handed_in:
            raise InvalidProgram(
                "no trainable variable has a gradient after a batch: call step.train(batch) or "
                "step.backward(loss, gradients) for each, with a loss of the attached model"
            )
        if shard.index == 0:
            self._state.save_buffers()

    def _evaluate_batch(self, shard: Shard) -> ShardReport:
        assert self._test is not None
        said = self._evaluate(self._load(self._test, shard))
        return evaluated(said)

    # ---- The commit ----

    def _enter_commit(self, commit: Commit) -> None:
        self._position(commit)
        self._gradients.set_reduced(commit)
        # The model has those of the last shard that was computed here, which may be another one.
        self._state.restore_buffers()
        self._set_seeds(mix(self.plan.seed, commit.step))

    def _commit(self, commit: Commit, optimizer: str | None, max_norm: float | None) -> bool:
        if optimizer is not None:
            raise InvalidProgram(
                f"commit({optimizer!r}): a Keras model has one optimizer, without a name; call "
                "commit()"
            )
        # An optimizer that scales the loss checks the gradient itself, and lowers its scale.
        scales = isinstance(self._optimizer, keras.optimizers.LossScaleOptimizer)
        if not self._judge(commit, scaled=scales):
            return False
        if max_norm is not None:
            if scales:
                raise InvalidProgram(
                    "commit(max_norm=...) would clip a scaled gradient: give global_clipnorm to "
                    "the optimizer inside of the LossScaleOptimizer"
                )
            self._gradients.clip(self._learner, max_norm)
        self._engine.apply(self._gradients.parts())
        return True

    def _learning_rate(self) -> float:
        optimizer = getattr(self._optimizer, "inner_optimizer", self._optimizer)
        return float(self._engine.array(optimizer.learning_rate))

    def _gradient_is_finite(self) -> bool:
        return self._gradients.finite()

    def _save(self) -> None:
        if self._epoch_ends:
            self._state.check_frozen()
        self._state.save()

    def _after_commit(self) -> None:
        self._state.restore_buffers()

    # ---- The end ----

    def _load_final(self) -> None:
        load_final_model(self._model, self.job.checkpoint_dir)

    def _release(self) -> None:
        if self._workers is not None:
            self._workers.close()
            self._workers = None


def attach(model: Any, optimizer: Any, train_data: Any, **chosen: Any) -> KerasElastic:
    """pliant.attach for a Keras model."""
    guard = Guard()
    with guard.beginning():
        settings = KerasSettings(**chosen)
        objective = objective_of(settings.loss)
        return begin(guard, model, optimizer, train_data, settings, lambda _: objective)


def begin(
    guard: Guard,
    model: Any,
    optimizer: Any,
    train_data: Any,
    settings: KerasSettings,
    objective: Callable[[Any], Objective | None],
) -> KerasElastic:
    """The training, with the objective that this function makes of a batch of one sample."""
    engine_type = engine_of_backend()
    of_cpu = threads_of(keras.backend.backend(), settings.threads)
    learner = Learner(
        name=settings.name or model.name,
        framework=f"keras {keras.__version__} {engine_type.describe(of_cpu)}",
        checkpoint_dir=settings.checkpoint_dir,
        gpu_problem=engine_type.gpu_problem(),
    )
    guard.watch(learner)
    engine_type.settle(of_cpu, bitwise=learner.job().bitwise)
    train = _batches_of(train_data, "training", settings)
    test = None
    if settings.test_data is not None:
        test = _batches_of(settings.test_data, "test", settings)
    _build(model, train)
    engine = engine_type(model, _optimizer_of(optimizer), objective(train.one()))
    return KerasElastic(learner, guard, engine, settings, train, test)


def _batches_of(data: Any, what: str, settings: KerasSettings) -> Batches:
    return Batches(data, size_of(data, what), settings.collate_fn)


def _optimizer_of(named: Any) -> keras.optimizers.Optimizer:
    try:
        return keras.optimizers.get(named)
    except (ValueError, TypeError) as error:
        raise InvalidProgram(f"the optimizer: {error}") from None


def _build(model: keras.Model, train: Batches) -> None:
    """Calls the model with one sample if it creates its variables at the first call."""
    if not model.built:
        inputs, _, _ = parts_of(train.one())
        model(keras.tree.map_structure(keras.ops.convert_to_tensor, inputs), training=False)
