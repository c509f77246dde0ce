"""Where a Trainer becomes elastic: a few of its methods, replaced on the instance."""

import contextlib
import math
import os
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader
from transformers import TrainerCallback
from transformers.trainer_callback import ExportableState
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from .._say import say
from .._streams import is_stream
from .._tracking.identity import run_of_job
from .._torch.elastic import TorchElastic, TorchStep, attach
from ..errors import InvalidProgram
from .check import SEAMS, check_job
from .commits import Commits
from .progress import Progress
from .sizes import Sizes, seed_or_jobs
from .steps import StateChanged, Steps
from .trl_metrics import TrlMetrics

_NAME = "_pliant_seams"  # of the attribute of a Trainer
_FLOS, _TOKENS = "flos", "num_input_tokens"  # named sums


class Seams:
    """Stands in these methods of one Trainer. One batch of the Trainer's loop is an elastic step,
    without accumulation: the batches that it would accumulate are the logical shards.

    An attribute of the instance comes before the methods of all its classes, and what it replaces is
    called for each shard, so a subclass may do there what it likes."""

    def __init__(self, trainer: Any, settings: dict[str, Any]) -> None:
        self._trainer = trainer
        self._settings = settings
        self._elastic: TorchElastic | None = None
        self._steps: Steps | None = None
        self._sizes = Sizes.of(trainer.args)
        self._weight: float | None = None  # of the present shard
        self._metrics = TrlMetrics(trainer)
        self._was_first = False
        _name_run()
        self._plain: dict[str, Any] = {name: getattr(trainer, name) for name in SEAMS}
        for name in SEAMS:
            setattr(trainer, name, getattr(self, name))
        setattr(trainer, _NAME, self)

    @staticmethod
    def of(trainer: Any) -> "Seams | None":
        found = getattr(trainer, _NAME, None)
        return found if isinstance(found, Seams) else None

    # ---- The training as a whole ----

    def train(self, resume_from_checkpoint: Any = None, *args: Any, **kwargs: Any) -> Any:
        if args[:1] not in ((), (None,)) or kwargs.get("trial") is not None:
            raise InvalidProgram("a search of hyperparameters cannot be elastic: call train()")
        if self._elastic is not None:
            raise InvalidProgram("train() is called twice: make another Trainer, in another job")
        if resume_from_checkpoint:
            say(
                "resume_from_checkpoint is ignored: the training resumes from its own newest "
                "checkpoint, if there is one"
            )
        with self._changed():
            return self._plain["train"](None, *args, **kwargs)

    @contextlib.contextmanager
    def _changed(self) -> Iterator[None]:
        """What differs in the Trainer while it trains."""
        trainer, args = self._trainer, self._trainer.args
        before = {
            name: getattr(args, name)
            for name in (
                "gradient_accumulation_steps",
                "save_only_model",
                "save_total_limit",
                "eval_on_start",
            )
        }
        backward = trainer.accelerator.backward
        follow = _Follow(self)
        trainer.callback_handler.callbacks.insert(0, follow)
        args.gradient_accumulation_steps = 1
        args.save_only_model = True  # Pliant's checkpoints have the rest
        trainer.accelerator.backward = self._backward
        try:
            yield
        finally:
            trainer.accelerator.backward = backward
            trainer.callback_handler.callbacks.remove(follow)
            for name, value in before.items():
                setattr(args, name, value)
            Commits.put_back(trainer.optimizer)

    def get_train_dataloader(self) -> Steps:
        data, drops = self._trainer.train_dataset, self._trainer.args.dataloader_drop_last
        self._steps = Steps(data, self._sizes.batch, drop_last=drops)
        if self._steps.left_out:
            say(
                f"dataloader_drop_last leaves out the last {self._steps.left_out} samples of an "
                "epoch, which do not fill a global batch"
            )
        return self._steps

    def get_total_train_batch_size(self, args: Any) -> int:
        return self._sizes.batch

    def _prepare_for_training(self, *args: Any, **kwargs: Any) -> Any:
        prepared = self._plain["_prepare_for_training"](*args, **kwargs)
        trainer = self._trainer
        scaler = getattr(trainer.accelerator, "scaler", None)
        accelerated = trainer.optimizer
        data, own = self._data()
        seed, data_seed = trainer.args.seed, trainer.args.data_seed
        self._elastic = attach(
            trainer.model,
            accelerated.optimizer,
            data,
            **own,
            batch_size=self._sizes.batch,
            scaler=scaler,
            seed=seed_or_jobs(seed if data_seed is None else data_seed),
            **self._length(),
            **self._settings,
        )
        check_job(trainer, self._elastic.job)
        self._elastic.register("trainer.schedule", trainer.lr_scheduler)
        self._elastic.register("trainer", Progress(trainer))
        Commits.replace(accelerated, scaler, lambda: self._present().commit())
        return prepared

    def _length(self) -> dict[str, int]:
        args = self._trainer.args
        if args.max_steps > 0:
            return {"max_steps": args.max_steps}
        epochs = math.ceil(args.num_train_epochs)
        if epochs == args.num_train_epochs:
            return {"epochs": epochs}
        assert self._steps is not None
        return {"epochs": epochs, "max_steps": math.ceil(args.num_train_epochs * len(self._steps))}

    def _data(self) -> tuple[Any, dict[str, Any]]:
        """The training data, as Trainer._get_dataloader makes them, and settings of attach for data
        that no loader can have."""
        trainer, args = self._trainer, self._trainer.args
        data, collate = trainer.train_dataset, trainer.data_collator
        if type(data).__module__.startswith("datasets."):
            data = trainer._remove_unused_columns(data, description="Training")
        else:
            collate = trainer._get_collator_with_removed_columns(collate, description="Training")
        shards_are_set = "logical_shards" in self._settings
        size = self._sizes.batch if shards_are_set else self._sizes.at_a_time()
        common = {
            "collate_fn": collate,
            "drop_last": args.dataloader_drop_last,
            "num_workers": args.dataloader_num_workers,
        }
        if is_stream(data):
            return data, common | ({"micro_batch_size": size} if size < self._sizes.batch else {})
        sampler = trainer._get_train_sampler(data)
        return DataLoader(data, batch_size=size, sampler=sampler, **common), {}

    def begin(self) -> None:
        """Called when all is ready for the first step."""
        assert self._elastic is not None and self._steps is not None
        trainer = self._trainer
        self._steps.begin(self._elastic)
        if trainer.state.global_step > 0:
            trainer.args.eval_on_start = False
        # A learner that joins late logs the loss and the speed of the whole training, too.
        trainer._initial_global_step = trainer._initial_num_input_tokens_seen = 0
        self._was_first = self._elastic.first
        self._tell_who_is_first()

    def _run_epoch(self, *, epoch: int, **given: Any) -> None:
        assert self._steps is not None
        while self._steps.begin_epoch(epoch):
            try:
                self._plain["_run_epoch"](epoch=epoch, **given)
                return
            except StateChanged:
                continue
        if self._steps.ahead() is None:
            self._trainer.control.should_training_stop = True

    def _finalize_training(self, *args: Any, **kwargs: Any) -> Any:
        assert self._elastic is not None and self._steps is not None
        step = self._steps.current
        if step is not None and step.number + 1 < self._elastic.total_steps:
            self._elastic.stop()
        if self._steps.ahead() is not None:
            raise InvalidProgram(
                "the Trainer has ended its loop, but the training has steps left: end it with "
                "control.should_training_stop, on all learners alike"
            )
        assert self._elastic.ending is not None
        self._trainer.state.global_step = self._elastic.ending.step
        if not self.is_world_process_zero():
            self._trainer.args.save_total_limit = None  # it deletes folders at the end
        return self._plain["_finalize_training"](*args, **kwargs)

    # ---- A step ----

    def get_batch_samples(self, epoch_iterator: Any, *_: Any) -> tuple[list[TorchStep], None]:
        step = next(epoch_iterator, None)
        return ([] if step is None else [step]), None

    def training_step(
        self, model: torch.nn.Module, step: TorchStep, num_items_in_batch: None = None
    ) -> torch.Tensor:
        trainer = self._trainer
        model.train()
        for batch in step:
            items = trainer._get_num_items_in_batch([batch], torch.device("cpu"))
            self._weight = self._weight_of(items)
            if items is not None:
                items = max(items, torch.ones_like(items)).to(trainer.args.device)
            self._metrics.begin_batch()
            counts = self._counts(batch)
            self._plain["training_step"](model, batch, items)
            step.log(**counts, **self._metrics.end_batch())
        if step._result() is None:
            raise StateChanged
        self._metrics.end_step(step.sums)
        self._tell_who_is_first()
        return torch.tensor(step.loss, device=trainer.args.device)

    def _weight_of(self, items: Any) -> float | None:
        """What the loss of a batch is the mean of, by the rule of Trainer.training_step: the tokens,
        where the loss is divided by them. None: its samples."""
        trainer = self._trainer
        divided = getattr(trainer, "loss_is_scaled_for_ga", None)
        if divided is None:
            by_model = trainer.model_accepts_loss_kwargs and items is not None
            divided = by_model or trainer.compute_loss_func is not None
        if not divided:
            return None
        if items is None:
            raise InvalidProgram(
                "the loss is divided by the items of the batch, but no batch has labels to count: "
                'give the batches "labels", or set loss_is_scaled_for_ga = False in the class of '
                "the Trainer if its loss is a mean over the samples"
            )
        return float(items)

    def _backward(self, loss: torch.Tensor, **_: Any) -> None:
        self._present().backward(loss, weight=self._weight)

    def _counts(self, batch: Any) -> dict[str, float]:
        """What a Trainer counts of each batch, as sums over all learners."""
        state = self._trainer.state
        before = state.num_input_tokens_seen
        self._plain["_track_num_input_tokens"](batch)
        tokens, state.num_input_tokens_seen = state.num_input_tokens_seen - before, before
        flos = float(self._plain["floating_point_ops"](batch))
        return {_FLOS: flos} | ({_TOKENS: tokens} if tokens else {})

    def floating_point_ops(self, step: Any) -> float:
        return self._present().sums.get(_FLOS, 0.0)

    def _track_num_input_tokens(self, step: Any) -> None:
        tokens = self._present().sums.get(_TOKENS, 0.0)
        self._trainer.state.num_input_tokens_seen += int(tokens)

    def _clip_grad_norm(self, model: torch.nn.Module) -> float:
        return self._present().clip(self._trainer.args.max_grad_norm)

    def _get_grad_norm(self, model: torch.nn.Module, grad_norm: float | None = None) -> float:
        return self._present().clip(math.inf) if grad_norm is None else grad_norm

    def correct_counts(self) -> None:
        """The loop counts the steps that this process saw."""
        assert self._elastic is not None and self._steps is not None
        step, state = self._present(), self._trainer.state
        state.global_step = step.number + 1
        steps = state.global_step - step.epoch * self._elastic.steps_per_epoch
        state.epoch = step.epoch + self._steps.part_of_epoch(steps)

    def _present(self) -> TorchStep:
        assert self._steps is not None and self._steps.current is not None
        return self._steps.current

    # ---- What one learner does for all ----

    def is_world_process_zero(self) -> bool:
        if self._elastic is None:
            return bool(self._plain["is_world_process_zero"]())
        return self._elastic.first

    def is_local_process_zero(self) -> bool:
        return self.is_world_process_zero()

    def save_model(self, *args: Any, **kwargs: Any) -> None:
        if self.is_world_process_zero():
            self._plain["save_model"](*args, **kwargs)

    def _save_checkpoint(self, model: torch.nn.Module, trial: Any) -> None:
        state = self._trainer.state
        best = state.best_model_checkpoint
        if self.is_world_process_zero():
            self._plain["_save_checkpoint"](model, trial)
            state.best_model_checkpoint = best
        if state.best_global_step == state.global_step:
            # By the same rule on all learners: a Trainer looks for the folder.
            folder = f"{PREFIX_CHECKPOINT_DIR}-{state.best_global_step}"
            run_folder = self._trainer._get_output_dir(trial=trial)
            state.best_model_checkpoint = os.path.join(run_folder, folder)

    def _load_best_model(self) -> None:
        if self.is_world_process_zero():
            self._plain["_load_best_model"]()

    def _tell_who_is_first(self) -> None:
        """Loggers write on one learner. One that becomes the first later begins there."""
        trainer = self._trainer
        first = self.is_world_process_zero()
        trainer.state.is_world_process_zero = trainer.state.is_local_process_zero = first
        if first and not self._was_first:
            _name_mlflow_run(trainer.callback_handler.callbacks)
            for callback in trainer.callback_handler.callbacks:
                if not isinstance(callback, _Follow | ExportableState):
                    if hasattr(callback, "_initialized"):
                        callback._initialized = False
                    callback.on_train_begin(
                        trainer.args,
                        trainer.state,
                        trainer.control,
                        model=trainer.model,
                        processing_class=trainer.processing_class,
                    )
        self._was_first = first


def _name_run() -> None:
    """All learners of a job log to one run of Weights & Biases, unless the script names another."""
    run = run_of_job()
    if run:
        os.environ.setdefault("WANDB_RUN_ID", run)
        os.environ.setdefault("WANDB_RESUME", "allow")


def _name_mlflow_run(callbacks: list[TrainerCallback]) -> None:
    """The same of MLflow, whose server chooses the ids."""
    if any(type(each).__name__ == "MLflowCallback" for each in callbacks):
        from .._tracking.mlflow import run_id_of_job

        if "MLFLOW_RUN_ID" not in os.environ and (run := run_id_of_job()):
            os.environ["MLFLOW_RUN_ID"] = run


class _Follow(TrainerCallback):  # type: ignore[misc]
    """Called before all other callbacks."""

    def __init__(self, seams: Seams) -> None:
        self._seams = seams

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self._seams.begin()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self._seams.correct_counts()
