"""FabricModel of a PyTorch module."""

from pathlib import Path
from typing import Any

import torch

from .._fabric import Framework, Script, write_file
from .batches import to_device
from .elastic import TorchStep


class TorchFramework(Framework):
    def __init__(self, script: Script) -> None:
        super().__init__(script)
        if torch.cuda.is_available():
            script.model.cuda()
        # Custom functions (fn_step_train) call these.
        script.model.get_optimizer = lambda: script.optimizer
        script.model.get_loss_function = lambda: script.loss_function

    def settings(self, test_data: Any) -> dict[str, Any]:
        return {"evaluate": None if test_data is None else self._evaluate}

    def set_training(self) -> None:
        self.script.model.train()

    def _device(self) -> torch.device:
        return next(self.script.model.parameters()).device

    def train_batch(self, step: TorchStep, batch: Any) -> None:
        batch = to_device(batch, self._device())
        if self.script.fn_step_train is not None:
            accuracy, loss = self.script.fn_step_train(
                self.script.model, batch, _accuracy, [batch], self.script.fn_args
            )
            step.report(loss, correct=_correct_of(accuracy, len(step.shard.samples)))
            return
        inputs, targets = batch
        outputs = self.script.model(inputs)
        step.backward(self.script.loss_function(outputs, targets), correct=_correct(outputs, targets))

    def _evaluate(self, batch: Any) -> tuple[Any, Any]:
        batch = to_device(batch, self._device())
        if self.script.fn_test is not None:
            return self.script.fn_test(self.script.model, [batch], self.script.fn_args), 0
        inputs, targets = batch
        outputs = self.script.model(inputs)
        return self.script.loss_function(outputs, targets), _correct(outputs, targets)

    def save(self, folder: Path) -> Path:
        return write_file(
            folder, "model.pt", lambda path: torch.save(self.script.model.state_dict(), path)
        )


def _accuracy(outputs: torch.Tensor, targets: torch.Tensor) -> float:
    """The `eva` of a custom function: accuracy in percent."""
    return 100.0 * float(_correct(outputs, targets)) / max(1, int(targets.shape[0]))


def _correct_of(accuracy: Any, samples: int) -> float:
    """The number of correct samples in a batch, from the accuracy (percent) of a custom
    function."""
    return 0.0 if accuracy is None else round(float(accuracy) * samples / 100.0, 6)


def _correct(outputs: Any, targets: Any) -> Any:
    """The number of correct samples if outputs are scores of classes and targets are classes, else
    0. A tensor, where the outputs are."""
    if not isinstance(outputs, torch.Tensor) or not isinstance(targets, torch.Tensor):
        return 0.0
    classes = outputs.dim() == 2 and targets.dim() == 1 and not targets.is_floating_point()
    return (outputs.detach().argmax(1) == targets).sum() if classes else 0.0
