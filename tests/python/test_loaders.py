"""A DataLoader in place of a data set, the size of micro-batches, and a loop that returns when its learner leaves."""

import pathlib
import tempfile
import unittest
from unittest import mock

import torch
from pliant._learner import Ending, Job
from pliant._micro_batches import logical_shards
from pliant._settings import Settings
from pliant.errors import InvalidProgram
from torch import nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

import pliant

from small_data import data


def doubled(samples):
    inputs, labels = zip(*samples, strict=True)
    return 2 * torch.stack(inputs), torch.stack(labels)


class Loaders(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-loaders-")
        self.addCleanup(scratch.cleanup)
        self.folders = (pathlib.Path(scratch.name) / str(i) for i in range(100))

    def make(self, train, **settings):
        torch.manual_seed(2)
        self.model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.elastic = pliant.attach(
            self.model, optimizer, train, checkpoint_dir=next(self.folders), **{"epochs": 1, **settings}
        )
        self.addCleanup(self.elastic.close)
        return self.elastic

    def loss(self, batch):
        return nn.functional.cross_entropy(self.model(batch[0]), batch[1])

    def train(self, **how):
        for step in self.elastic.steps(**how):
            for batch in step:
                step.backward(self.loss(batch))
            step.commit()
        return self.elastic.ending.parameters_sha256


class DataLoaderTest(Loaders):
    def test_it_says_what_settings_say(self):
        self.make(
            data(), batch_size=16, collate_fn=doubled, drop_last=True, num_workers=1, seed=7,
            test_data=data(20), evaluate=self.loss,
        )  # fmt: skip
        expected = self.train()
        loader = DataLoader(
            data(), 16, shuffle=True, collate_fn=doubled, drop_last=True, num_workers=1,
            generator=torch.Generator().manual_seed(7),
        )  # fmt: skip
        self.make(loader, test_data=DataLoader(data(20), 5, collate_fn=doubled), evaluate=self.loss)
        self.assertEqual(self.elastic.plan.global_batch_size, 16)
        self.assertEqual(self.elastic.steps_per_epoch, 3)
        self.assertEqual(self.train(), expected)

    def test_without_shuffle_it_reads_in_order(self):
        self.make(DataLoader(data(), 8))
        seen = []
        for step in self.elastic.steps():
            for batch in step:
                seen += step.shard.samples
                step.backward(self.loss(batch))
            step.commit()
        self.assertEqual(seen, list(range(56)))

    def test_its_batches_are_micro_batches_of_a_larger_one(self):
        self.make(DataLoader(data(64), 8, shuffle=True), batch_size=32)
        plan = self.elastic.plan
        self.assertEqual((plan.global_batch_size, plan.logical_shards), (32, 4))

    def test_each_loader_has_its_own_collate_fn(self):
        seen = []

        def evaluate(batch):
            seen.append(batch)
            return 0.0

        self.make(data(), batch_size=56, test_data=DataLoader(data(4), collate_fn=len), evaluate=evaluate)
        self.train()
        self.assertEqual(seen, [4])

    def test_a_distributed_sampler_is_that_of_all(self):
        for shuffle in (True, False):
            sampler = DistributedSampler(data(), num_replicas=2, rank=1, shuffle=shuffle)
            loader = DataLoader(sampler.dataset, 8, sampler=sampler)
            self.make(loader, test_data=loader, evaluate=self.loss)
            self.train()
            self.assertEqual(self.elastic.ending.step, 7)

    def test_a_setting_counts_more_than_its_loader(self):
        seen = []
        self.make(
            DataLoader(data(), 8, collate_fn=len), collate_fn=doubled, batch_size=8, evaluate=lambda batch: seen.append(batch) or 0.0,
            test_data=DataLoader(data(3), 8, collate_fn=len), test_collate_fn=lambda samples: "mine",
        )  # fmt: skip
        self.train()
        self.assertEqual(seen, ["mine"])

    def test_a_size_that_fits_nothing_is_refused(self):
        for settings, said in (
            ({"batch_size": 256, "logical_shards": 4}, "have 32 samples: .* batch_size of 256 nor that of a micro-batch, 64"),
            ({"batch_size": 256, "micro_batch_size": 16}, "nor that of a micro-batch, 16"),
        ):
            with self.assertRaisesRegex(InvalidProgram, said):
                self.make(DataLoader(data(64), 32), **settings)
        for settings in ({"logical_shards": 8}, {"micro_batch_size": 32}, {}):
            self.make(DataLoader(data(64), 32), batch_size=256, **settings)
            self.assertEqual(self.elastic.plan.logical_shards, 8)

    def test_samplers_that_learners_cannot_share_are_refused(self):
        samples = data()
        for sampler in (SubsetRandomSampler(range(9)), SequentialSampler(range(9)), RandomSampler(range(9))):
            for given in ({"train": True}, {"test": True}):
                loader = DataLoader(samples, 8, sampler=sampler)
                with self.assertRaisesRegex(InvalidProgram, f"has a {type(sampler).__name__}: it draws"):
                    self.make(loader if "train" in given else samples, test_data=loader, evaluate=self.loss)
        cases = {
            "a WeightedRandomSampler: it draws": {"sampler": WeightedRandomSampler([1] * 56, 56), "batch_size": 8},
            "a SubsetRandomSampler": {"sampler": SubsetRandomSampler(range(9)), "batch_size": 8},
            "a RandomSampler: ": {"sampler": RandomSampler(samples, replacement=True), "batch_size": 8},
            "a Batches: it draws": {"batch_sampler": type("Batches", (BatchSampler,), {})(SequentialSampler(samples), 8, False)},
            "makes no batches": {"batch_size": None},
        }  # fmt: skip
        for said, given in cases.items():
            with self.subTest(said), self.assertRaisesRegex(InvalidProgram, said):
                self.make(DataLoader(samples, **given))


class MicroBatchTest(unittest.TestCase):
    def job(self, **values):
        known = dict.fromkeys(("logical_shards", "global_batch_size", "seed"))
        rest = {"alone": True, "bitwise": True, "max_learners": 1, "name": "", "learner": "", "checkpoint_dir": ""}
        return Job(**known | rest | values)

    def test_shards_follow_from_the_batch(self):
        cases = [
            ({}, {}, None),
            ({"logical_shards": 4}, {}, 4),
            ({"micro_batch_size": 64}, {}, 4),  # of the default batch, 256
            ({"micro_batch_size": 8, "batch_size": 32}, {}, 4),
            ({"micro_batch_size": 32, "batch_size": 32}, {}, 1),
            ({"micro_batch_size": 8}, {"global_batch_size": 128}, 16),
            ({"micro_batch_size": 8, "logical_shards": 4, "batch_size": 32}, {"logical_shards": 4}, 4),
            ({"micro_batch_size": 12, "batch_size": 480}, {}, "computed in a power of two of micro-batches: 15 is possible"),
            ({"micro_batch_size": 12, "batch_size": 32}, {}, "micro_batch_size is 12, .* 8 or 16 is possible"),
            ({"micro_batch_size": 64, "batch_size": 32}, {}, "of 32 samples .*: 32 is possible"),
            ({"micro_batch_size": 1, "batch_size": 7}, {}, "7 is possible"),
            ({"micro_batch_size": 8, "logical_shards": 8, "batch_size": 32}, {}, "4 logical shards, but logical_shards of pliant.attach is 8"),
            ({"micro_batch_size": 8, "batch_size": 32}, {"logical_shards": 8}, "spec.training.logicalShards of the job is 8"),
        ]  # fmt: skip
        for given, of_job, expected in cases:
            settings = Settings(epochs=1, **given)
            with self.subTest(given=given, job=of_job):
                if isinstance(expected, str):
                    with self.assertRaisesRegex(InvalidProgram, expected):
                        logical_shards(settings, self.job(**of_job))
                else:
                    self.assertEqual(logical_shards(settings, self.job(**of_job)), expected)


class LeavingTest(Loaders):
    def leave(self, after, **how):
        """The learner must leave in the second step, after this number of pieces of work. Returns the steps taken."""
        self.make(data(), batch_size=16, logical_shards=4)
        take, given, taken = self.elastic._learner.next, [], []

        def next_work():
            given.append(work := Ending("Drained", 0, 1, "", "") if len(given) == after else take())
            return work

        with mock.patch.object(self.elastic._learner, "next", next_work):
            for step in self.elastic.steps(**how):
                for batch in step:
                    step.backward(self.loss(batch))
                taken.append(step.commit())
        return taken

    def test_the_iteration_ends_if_the_program_wants_that(self):
        for after, taken in ((5, [True]), (7, [True, False])):
            with self.assertRaises(SystemExit):
                self.leave(after)
            self.assertEqual(self.leave(after, on_leave="return"), taken)
            self.assertEqual(self.elastic.ending.reason, "Drained")
            self.assertTrue(self.elastic._learner.closed)

    def test_another_way_to_leave_is_refused(self):
        self.make(data())
        with self.assertRaisesRegex(ValueError, "on_leave is 'stay': it must be 'exit' or 'return'"):
            self.elastic.steps(on_leave="stay")


if __name__ == "__main__":
    unittest.main(verbosity=2)
