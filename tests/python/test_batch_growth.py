"""A batch that grows with the noise scale: the steps of a program alone, and its learning rate."""

import os
import pathlib
import tempfile
import unittest
from unittest import mock

import torch
from torch import nn
from torch.utils.data import TensorDataset

import pliant
from pliant.errors import InvalidProgram, TrainingFailed

SAMPLES, BATCH, EPOCHS = 2400, 4, 3
WIDTH = 64
RATE = 1e-4  # so small that the noise scale stays about WIDTH


def line():
    """Samples of a linear function. Each epoch measures 38 steps or fewer."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(SAMPLES, WIDTH, generator=generator)
    return TensorDataset(inputs, inputs.sum(1) + torch.randn(SAMPLES, generator=generator))


class Rows:
    def __len__(self):
        return SAMPLES

    def stream(self, shard, start):
        return (line()[i] for i in range(shard.index + start * shard.count, SAMPLES, shard.count))


class BatchGrowthTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-growth-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def attach(self, data=None, **environment):
        settings = mock.patch.dict(os.environ, environment)
        settings.start()
        self.addCleanup(settings.stop)
        torch.manual_seed(2)
        self.model = nn.Linear(WIDTH, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=RATE)
        self.elastic = pliant.attach(
            self.model, self.optimizer, data or line(), epochs=EPOCHS, batch_size=BATCH,
            logical_shards=2, checkpoint_dir=self.folder,
        )  # fmt: skip
        self.addCleanup(self.elastic.close)

    def train(self):
        """By epoch: the steps, samples and batches per step, growths and learning rates."""
        epochs = [{"steps": 0, "samples": 0, "shards": set(), "growth": set(), "rates": set()}
                  for _ in range(EPOCHS)]  # fmt: skip
        used = []
        self.optimizer.register_step_pre_hook(
            lambda optimizer, *_: used.append(optimizer.param_groups[0]["lr"])
        )
        for step in self.elastic.steps():
            epoch = epochs[step.epoch]
            shards = 0
            for inputs, targets in step:
                step.backward(nn.functional.mse_loss(self.model(inputs)[:, 0], targets))
                epoch["samples"] += len(targets)
                shards += 1
            step.commit()
            epoch["steps"] += 1
            epoch["shards"].add(shards)
            epoch["growth"].add(self.elastic.batch_growth)
            epoch["rates"].add(used[-1])
            self.assertEqual(self.optimizer.param_groups[0]["lr"], RATE, "only during the step")
            self.assertEqual(step.last_of_epoch, epoch["samples"] == SAMPLES)
        return epochs

    def test_more_shards_and_fewer_steps(self):
        self.attach(PLIANT_BATCH_MODE="FromState", PLIANT_MAX_BATCH_SIZE="16")
        pliant.scale_learning_rate(self.optimizer, "Linear")
        first, second, third = self.train()
        for epoch, growth in ((first, 1), (second, 2), (third, 4)):
            self.assertEqual(epoch["samples"], SAMPLES, "each sample, once")
            self.assertEqual(epoch["steps"], SAMPLES // (BATCH * growth))
            self.assertEqual(epoch["shards"], {2 * growth})
            self.assertEqual(epoch["growth"], {growth})
            self.assertEqual(epoch["rates"], {RATE * growth})

    def test_a_constant_batch(self):
        self.attach()
        pliant.scale_learning_rate(self.optimizer, "Sqrt")
        for epoch in self.train():
            self.assertEqual(epoch["steps"], SAMPLES // BATCH)
            self.assertEqual(epoch["growth"], {1})
            self.assertEqual(epoch["rates"], {RATE})

    def test_a_batch_that_cannot_grow(self):
        with self.assertRaisesRegex(InvalidProgram, "maxBatchSize: 7 is less than twice"):
            self.attach(PLIANT_BATCH_MODE="FromState", PLIANT_MAX_BATCH_SIZE="7")

    def test_streams_need_a_constant_batch(self):
        with self.assertRaisesRegex(InvalidProgram, "PLIANT_BATCH_MODE is FromState.*__getitem__"):
            self.attach(Rows(), PLIANT_BATCH_MODE="FromState", PLIANT_MAX_BATCH_SIZE="16")
        self.attach(Rows(), PLIANT_BATCH_MODE="Constant", PLIANT_MAX_BATCH_SIZE="")
        self.assertEqual(next(self.elastic.steps()).number, 0)

    def test_a_rule_that_is_none(self):
        self.attach()
        with self.assertRaisesRegex(InvalidProgram, "use Linear or Sqrt"):
            pliant.scale_learning_rate(self.optimizer, "sqrt")

    def test_a_constant_job_refuses_a_checkpoint_of_one_that_grew(self):
        self.attach(PLIANT_BATCH_MODE="FromState", PLIANT_MAX_BATCH_SIZE="8",
                    PLIANT_CHECKPOINT_EVERY_STEPS="650")  # fmt: skip
        for step in self.elastic.steps():
            for inputs, targets in step:
                step.backward(nn.functional.mse_loss(self.model(inputs)[:, 0], targets))
            step.commit()
            if step.number == 680:
                break
        self.elastic.close()
        self.attach(PLIANT_BATCH_MODE="Constant", PLIANT_MAX_BATCH_SIZE="")
        with self.assertRaisesRegex(TrainingFailed, "of a job whose batch grew"):
            next(self.elastic.steps())


if __name__ == "__main__":
    unittest.main()
