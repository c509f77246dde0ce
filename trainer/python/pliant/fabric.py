"""FabricModel: a ready-made loop, for models that need no loop of their own.

Scripts written for Watson Machine Learning Accelerator's elastic distributed training use the same
class, through `fabric_model` and `callbacks`: see docs/fabric-model.md.
"""

import inspect
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import _parameters
from ._accelerator import logical_shards, make_folders
from ._callback import Callback, LambdaCallback
from ._attach import attach, is_keras
from ._fabric import Framework, Script
from ._loop import Elastic
from ._say import say

# Arguments of the old product that are ignored: their meaning there, and what replaces them.
_NOT_USED = {
    "checkpoint_freq": "epochs between two checkpoints: spec.checkpoint of the job decides",
    "driver_memory": "memory of its driver process: there is none here",
    "enable_onnx": "the final model as ONNX: it is written as safetensors",
    "validation_freq": "epochs between two evaluations: there is one after each",
    "worker_memory": "memory of a worker: the job's template decides",
}


class FabricModel:
    """A model in elastic training.

    get_datasets: returns the training and the test set, map-style; the test set may be None.
    loss_function: function of (output, target) that returns the mean over the batch.
    driver_logger: receives the metrics, on one learner (see callbacks.LoggerCallback).
    user_callback: one or several callbacks.Callback, called on every learner, or pliant.Callback.
    fn_step_train: replaces forward and backward of a batch: f(model, batch, eva, train_loader,
        fn_args) calls backward itself and returns (accuracy, loss), the accuracy in percent or
        None. eva(output, target) computes that accuracy. model.get_optimizer() and
        model.get_loss_function() return the arguments given here.
    fn_test: replaces the forward of a batch of the test set: f(model, test_iter, fn_args) returns
        the loss.

    With a Keras model loss_function is a loss in any form that Keras accepts, for example a name.
    fn_step_train and fn_test are for PyTorch only.
    """

    def __init__(
        self,
        model: Any,
        get_datasets: Callable[[], tuple[Any, Any]],
        loss_function: Any,
        optimizer: Any,
        driver_logger: Any = None,
        user_callback: Any = None,
        fn_step_train: Callable[..., tuple[Any, Any]] | None = None,
        fn_test: Callable[..., Any] | None = None,
        fn_args: Any = None,
        batch_collate_function: Callable[[list[Any]], Any] | None = None,
        **others: Any,
    ) -> None:
        _warn_of(others)
        script = Script(model, loss_function, optimizer, fn_step_train, fn_test, fn_args)
        self._framework = _framework_of(script)
        self._get_datasets = get_datasets
        self._logger = None if driver_logger is None else _LoggerAdapter(driver_logger)
        callbacks = _as_list(user_callback)
        self._callbacks = [each for each in callbacks if not isinstance(each, Callback)]
        self._own_callbacks = [each for each in callbacks if isinstance(each, Callback)]
        self._collate = batch_collate_function

    def train(
        self,
        epochs: int,
        batch_size: int,
        engines_number: int | None = None,
        *,
        engines: int | None = None,
        num_dataloader_threads: int = 0,
        seed: int | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        **others: Any,
    ) -> None:
        """Trains the model in place. If RESULT_DIR is set, also writes it to RESULT_DIR/model.

        batch_size: samples in one device's batch, which is a logical shard. The global batch is
            batch_size times the number of logical shards, whatever the number of devices.
        engines_number, engines: maximum number of devices. In a job its maxLearners decides
            instead. Alone this number, rounded up to a power of two, is the number of logical
            shards.
        num_dataloader_threads: processes that load data ahead.
        """
        _warn_of(others)
        shards = _logical_shards(engines or engines_number or 1)
        train_data, test_data = self._get_datasets()
        script = self._framework.script
        elastic: Elastic[Any] = attach(
            script.model,
            script.optimizer,
            train_data,
            test_data=test_data,
            epochs=epochs,
            batch_size=batch_size * shards,
            logical_shards=shards,
            collate_fn=self._collate,
            seed=seed,
            num_workers=num_dataloader_threads,
            checkpoint_dir=checkpoint_dir,
            **self._framework.settings(test_data),
        )
        self._register_schedule(elastic)
        for callback in self._own_callbacks:
            elastic.add_callback(callback)
        if self._logger is not None:
            elastic.add_callback(LambdaCallback(on_log=self._logger.pass_on))
        self._run(elastic)

    def download(self, out_dir: str | os.PathLike[str] | None = None) -> str:
        """Writes the model (torch: its state dict) to `out_dir` (else RESULT_DIR/model). Returns
        the file's path."""
        results = os.environ.get("RESULT_DIR", ".")
        folder = Path(out_dir) if out_dir is not None else Path(results, "model")
        folder.mkdir(parents=True, exist_ok=True)
        return str(self._framework.save(folder))

    def _register_schedule(self, elastic: Elastic[Any]) -> None:
        """Registers the learning rate schedule if the script got one from pth_parameter_mgr: it is
        part of the training's state. The script's callbacks step it."""
        optimizer = self._framework.script.optimizer
        _parameters.tell_of_unused_policy(optimizer)
        schedule = _parameters.schedule_of(optimizer)
        if schedule is None:
            return
        elastic.register("learning rate", schedule)
        if _parameters.learning_rate_policy() != "plateau":
            return
        # Stepped here, because callbacks do not receive the result of an evaluation.
        elastic.add_callback(
            LambdaCallback(on_test_end=lambda evaluation: schedule.step(evaluation.loss))
        )
        if not elastic.evaluates:
            say(
                "the learning rate's policy plateau is not used: it needs the loss of evaluations, "
                "and there are no test data"
            )

    def _run(self, elastic: Elastic[Any]) -> None:
        make_folders()  # callbacks and loggers write to them
        self._framework.set_training()
        for callback in self._callbacks:
            callback.set_params(
                {
                    "optimizer": self._framework.script.optimizer,
                    "model": self._framework.script.model,
                    "epochs": elastic.epochs,
                    "stop": elastic.stop,
                }
            )

        def begin_epoch(epoch: int) -> None:
            if epoch < elastic.epochs and not elastic.stopping:
                self._call("on_epoch_begin", epoch)

        # Called last after an evaluation, because an earlier listener may stop the training.
        # Changes made by callbacks there are part of the state, too.
        elastic.add_callback(
            LambdaCallback(on_test_end=lambda evaluation: begin_epoch(evaluation.epoch + 1))
        )
        self._call("on_train_begin")
        self._call("on_epoch_begin", 0)
        for step in elastic.steps():
            for batch in step:
                self._framework.train_batch(step, batch)
            step.commit()
            # Before the next step is requested: changes made by callbacks (the learning rate)
            # belong to this step, and so reach learners that join.
            if elastic.ending is None and step.last_of_epoch:
                self._call("on_epoch_end", step.epoch)
                if not elastic.evaluates:
                    begin_epoch(step.epoch + 1)
        make_folders()  # they may have been removed from the volume meanwhile
        self._call("on_train_end")
        if self._logger is not None:
            self._logger.end()
        if "RESULT_DIR" in os.environ:
            self.download()

    def _call(self, name: str, *arguments: Any) -> None:
        for callback in self._callbacks:
            getattr(callback, name)(*arguments)


def _framework_of(script: Script) -> Framework:
    if is_keras(script.model):
        from ._keras.fabric import KerasFramework

        return KerasFramework(script)
    from ._torch.fabric import TorchFramework

    return TorchFramework(script)


class _LoggerAdapter:
    """Passes lines of metrics to a logger, with the signature that it defines: (loss, acc,
    completed_batch, worker), acc in percent, or (metrics, iteration, epoch, workers)."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._begun = False

    def pass_on(self, line: dict[str, Any]) -> None:
        if not self._begun:
            self._begun = True
            if hasattr(self._logger, "on_train_begin"):
                self._logger.on_train_begin()
        # A loss that is not finite is left out of the line.
        loss, accuracy = line.get("loss", math.nan), line.get("accuracy") or 0.0
        training = line.get("kind") == "train"
        log = self._logger.log_train_metrics if training else self._logger.log_test_metrics
        if "metrics" in inspect.signature(log).parameters:
            metrics = {"loss": loss, "accuracy": accuracy}
            workers = (line.get("learners", 1),) if training else ()
            log(metrics, line["step"], line["epoch"], *workers)
        else:
            log(loss, 100.0 * accuracy, line["step"], 0)

    def end(self) -> None:
        """Ends the logger if it has begun: on most learners of a job it received nothing."""
        if self._begun and hasattr(self._logger, "on_train_end"):
            self._logger.on_train_end()


def _logical_shards(engines: int) -> int:
    return logical_shards() or 1 << (max(1, engines) - 1).bit_length()


def _as_list(callbacks: Any) -> list[Any]:
    if callbacks is None:
        return []
    return list(callbacks) if isinstance(callbacks, Sequence) else [callbacks]


def _warn_of(arguments: dict[str, Any]) -> None:
    for name in arguments:
        what = _NOT_USED.get(name, "not known here")
        say(f"the argument {name} is not used ({what})")
