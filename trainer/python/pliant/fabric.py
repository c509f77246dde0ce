"""FabricModel: a loop that is ours, for models that need no loop of their own.

Scripts written for Watson Machine Learning Accelerator's elastic distributed training use the same
class, by way of `fabric_model` and `callbacks`: see docs/python.md.
"""

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from ._torch.batches import to_device
from ._torch.elastic import TorchElastic, TorchStep, attach

# What arguments of the old product did there; here something else decides, or nothing is needed.
_NOT_USED = {
    "checkpoint_freq": "epochs between two checkpoints: spec.checkpoint of the job decides",
    "driver_memory": "memory of its driver process: there is none here",
    "enable_onnx": "the final model as ONNX: it is written as safetensors",
    "validation_freq": "epochs between two evaluations: there is one after each",
    "worker_memory": "memory of a worker: the job's template decides",
}


class FabricModel:
    """A model in elastic training.

    get_datasets: returns the training and the test set, map-style; the latter may be None.
    loss_function: of (output, target), the mean over the batch.
    driver_logger: gets the metrics, on one learner (see callbacks.LoggerCallback).
    user_callback: one or several callbacks.Callback, called on every learner.
    fn_step_train: instead of forward and backward of a batch: f(model, batch, eva, train_loader,
        fn_args) returns (accuracy, loss), and calls backward itself. eva(output, target) is the
        accuracy in per cent. model.get_optimizer() and model.get_loss_function() are there for it.
    fn_test: instead of the forward of a batch of the test set: f(model, test_iter, fn_args) returns
        the loss.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        get_datasets: Callable[[], tuple[Any, Any]],
        loss_function: Callable[[Any, Any], torch.Tensor],
        optimizer: torch.optim.Optimizer,
        driver_logger: Any = None,
        user_callback: Any = None,
        fn_step_train: Callable[..., tuple[Any, Any]] | None = None,
        fn_test: Callable[..., Any] | None = None,
        fn_args: Any = None,
        batch_collate_function: Callable[[list[Any]], Any] | None = None,
        **others: Any,
    ) -> None:
        _warn_of(others)
        if torch.cuda.is_available():
            model.cuda()
        self._model = model
        self._get_datasets = get_datasets
        self._loss_function = loss_function
        self._optimizer = optimizer
        self._logger = driver_logger
        self._callbacks = _as_list(user_callback)
        self._fn_step_train = fn_step_train
        self._fn_test = fn_test
        self._fn_args = fn_args
        self._collate = batch_collate_function
        # As custom functions find them.
        model.get_optimizer = lambda: optimizer
        model.get_loss_function = lambda: loss_function

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
        """Trains, and leaves the trained model in place and, where RESULT_DIR is set, below it.

        batch_size: of one device's batch, which is a logical shard: the global batch is that times
            the job's logical shards. So the result does not depend on how many devices there are.
        engines_number, engines: the most devices that it may use. In a cluster the job's
            maxLearners decides; alone it is the number of logical shards, to the next power of two.
        num_dataloader_threads: processes that load data ahead.
        """
        _warn_of(others)
        shards = _logical_shards(engines or engines_number or 1)
        train_data, test_data = self._get_datasets()
        elastic = attach(
            self._model,
            self._optimizer,
            train_data,
            epochs=epochs,
            batch_size=batch_size * shards,
            logical_shards=shards,
            test_data=test_data,
            evaluate=None if test_data is None else self._evaluate,
            collate=self._collate,
            seed=seed,
            num_workers=num_dataloader_threads,
            checkpoint_dir=checkpoint_dir,
        )
        if self._logger is not None:
            elastic.on_metrics.append(_LoggerAdapter(self._logger).pass_on)
        self._run(elastic)

    def download(self, out_dir: str | os.PathLike[str] | None = None) -> str:
        """Writes the model's state dict to `out_dir` (else RESULT_DIR/model). The file's path."""
        results = os.environ.get("RESULT_DIR", ".")
        folder = Path(out_dir) if out_dir is not None else Path(results, "model")
        folder.mkdir(parents=True, exist_ok=True)
        # Every learner of the job may do it at once, all with the same content.
        path = folder / "model.pt"
        scratch = folder / f".model.pt.{os.uname().nodename}.{os.getpid()}"
        torch.save(self._model.state_dict(), scratch)
        scratch.replace(path)
        return str(path)

    def _run(self, elastic: TorchElastic) -> None:
        self._model.train()
        for callback in self._callbacks:
            callback.set_params(
                {"optimizer": self._optimizer, "model": self._model, "epochs": elastic.epochs}
            )
        self._call("on_train_begin")
        self._call("on_epoch_begin", 0)
        for step in elastic.steps():
            for batch in step:
                self._train_batch(step, to_device(batch, self._device()))
            step.commit()
            # Before the next step is asked for: what callbacks change (the learning rate) belongs
            # to the step, and so reaches learners that join.
            if elastic.ending is None and step.last_of_epoch:
                self._call("on_epoch_end", step.epoch)
                if step.epoch + 1 < elastic.epochs:
                    self._call("on_epoch_begin", step.epoch + 1)
        self._call("on_train_end")
        if self._logger is not None and hasattr(self._logger, "on_train_end"):
            self._logger.on_train_end()
        if "RESULT_DIR" in os.environ:
            self.download()

    def _device(self) -> torch.device:
        return next(self._model.parameters()).device

    def _call(self, name: str, *arguments: Any) -> None:
        for callback in self._callbacks:
            getattr(callback, name)(*arguments)

    def _train_batch(self, step: TorchStep, batch: Any) -> None:
        if self._fn_step_train is not None:
            counted = _Counted()
            _, loss = self._fn_step_train(
                self._model, batch, counted.accuracy, [batch], self._fn_args
            )
            step.report(loss, correct=counted.correct)
            return
        inputs, targets = batch
        outputs = self._model(inputs)
        step.backward(self._loss_function(outputs, targets), correct=_correct(outputs, targets))

    def _evaluate(self, batch: Any) -> tuple[Any, Any]:
        batch = to_device(batch, self._device())
        if self._fn_test is not None:
            return self._fn_test(self._model, [batch], self._fn_args), 0
        inputs, targets = batch
        outputs = self._model(inputs)
        return self._loss_function(outputs, targets), _correct(outputs, targets)


class _Counted:
    """What a custom function's `eva` was asked."""

    def __init__(self) -> None:
        self.correct = 0.0

    def accuracy(self, outputs: torch.Tensor, targets: torch.Tensor) -> float:
        correct = _correct(outputs, targets)
        self.correct += correct
        return 100.0 * correct / max(1, int(targets.shape[0]))


class _LoggerAdapter:
    """Lines of metrics for a logger, in the words of its age: (loss, acc, completed_batch, worker),
    with the accuracy in per cent, or (metrics, iteration, epoch, workers)."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._begun = False

    def pass_on(self, line: dict[str, Any]) -> None:
        if not self._begun:
            self._begun = True
            if hasattr(self._logger, "on_train_begin"):
                self._logger.on_train_begin()
        loss, accuracy = line.get("loss") or 0.0, line.get("accuracy") or 0.0
        training = line.get("kind") == "train"
        log = self._logger.log_train_metrics if training else self._logger.log_test_metrics
        if "metrics" in inspect.signature(log).parameters:
            metrics = {"loss": loss, "accuracy": accuracy}
            workers = (line.get("learners", 1),) if training else ()
            log(metrics, line["step"], line["epoch"], *workers)
        else:
            log(loss, 100.0 * accuracy, line["step"], 0)


def _correct(outputs: Any, targets: Any) -> float:
    """How many samples are right, where outputs are scores of classes and targets are classes."""
    if not isinstance(outputs, torch.Tensor) or not isinstance(targets, torch.Tensor):
        return 0.0
    classes = outputs.dim() == 2 and targets.dim() == 1 and not targets.is_floating_point()
    return float((outputs.detach().argmax(1) == targets).sum()) if classes else 0.0


def _logical_shards(engines: int) -> int:
    named = os.environ.get("PLIANT_LOGICAL_SHARDS")
    return int(named) if named else 1 << (max(1, engines) - 1).bit_length()


def _as_list(callbacks: Any) -> list[Any]:
    if callbacks is None:
        return []
    return list(callbacks) if isinstance(callbacks, Sequence) else [callbacks]


def _warn_of(arguments: dict[str, Any]) -> None:
    for name in arguments:
        what = _NOT_USED.get(name, "not known here")
        print(f"pliant: the argument {name} is not used ({what})", file=sys.stderr)
