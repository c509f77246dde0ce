"""The steps of an elastic training in the place of a loader of training batches."""

from collections.abc import Iterator
from typing import Any

from .._torch.elastic import TorchElastic, TorchStep


class StateChanged(Exception):
    """The state of this learner is no longer that of the loop over the epoch: others have completed
    steps without it. The loop is left, and entered again where the state is."""


class Steps:
    """An iterator over the steps of one epoch after another. A step ends when the next one is asked
    for, so what a Trainer does after its optimizer's step still belongs to that step."""

    def __init__(self, dataset: Any, batch: int, *, drop_last: bool) -> None:
        """`batch`: the samples of a step."""
        self.dataset = dataset  # read by Trainer.num_examples
        self.current: TorchStep | None = None
        self.left_out = len(dataset) % batch if drop_last else 0  # samples of an epoch
        self._batch = batch
        self._samples = len(dataset) - self.left_out
        self._epoch = 0
        self._ahead: TorchStep | None = None
        self._of_training: Iterator[TorchStep] = iter(())

    def __len__(self) -> int:
        return -(-self._samples // self._batch)

    def part_of_epoch(self, steps: int) -> float:
        """Which part of an epoch so many steps are."""
        return min(1.0, steps * self._batch / self._samples)

    def begin(self, elastic: TorchElastic) -> None:
        """Waits until this learner has a state, and a step to take."""
        self._of_training = elastic.steps()
        self.ahead()

    def begin_epoch(self, epoch: int) -> bool:
        """Whether a step of this epoch is to be taken here."""
        self._epoch = epoch
        step = self.ahead()
        return step is not None and step.epoch == epoch

    def ahead(self) -> TorchStep | None:
        """The next step, which ends the current one. None: the training is complete."""
        if self._ahead is None:
            self.current = None
            self._ahead = next(self._of_training, None)
        return self._ahead

    def __iter__(self) -> Iterator[TorchStep]:
        return self

    def __next__(self) -> TorchStep:
        if self.current is not None and self.current.last_of_epoch:
            raise StopIteration  # an evaluation of the epoch still belongs to its last step
        step = self.ahead()
        if step is None or step.epoch != self._epoch:
            raise StateChanged
        self.current, self._ahead = step, None
        return step
