"""Trainings that are limited, evaluated and saved by steps, in one process. test_elastic.py has them on several
learners."""

import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import torch
from pliant.errors import InvalidProgram, PliantError, TrainingFailed
from torch import nn
from torch.utils.data import TensorDataset

import pliant


def data(count):
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(count, 6, generator=generator)
    return TensorDataset(inputs, (inputs.sum(1) > 0).long())


class Steps(unittest.TestCase):
    """An epoch has 4 steps."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-steps-")
        self.addCleanup(scratch.cleanup)
        self.folders = (pathlib.Path(scratch.name) / str(i) for i in range(100))

    def make(self, folder=None, **settings):
        self.folder = folder or next(self.folders)
        torch.manual_seed(2)
        self.model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.2), nn.Linear(8, 3))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        given = {"batch_size": 16, "logical_shards": 4, "checkpoint_dir": self.folder, **settings}
        self.elastic = pliant.attach(self.model, self.optimizer, data(56), **given)
        self.addCleanup(self.elastic.close)
        self.evaluated, self.ends_epoch = [], []
        self.elastic.add_callback(
            pliant.LambdaCallback(on_test_end=lambda evaluation: self.evaluated.append(evaluation.step))
        )
        return self.elastic

    def loss(self, batch):
        return nn.functional.cross_entropy(self.model(batch[0]), batch[1])

    def train(self, after=lambda step: None, stop_at=None):
        """The parameters at the end, or None if it stopped earlier."""
        for step in self.elastic.steps():
            for batch in step:
                step.backward(self.loss(batch))
            step.commit()
            if step.last_of_epoch:
                self.ends_epoch.append(step.number + 1)
            after(step)
            if step.number == stop_at:
                self.elastic.close()
                return None
        return [value.clone() for value in self.model.state_dict().values()]

    def assert_same(self, first, second):
        for a, b in zip(first, second, strict=True):
            self.assertTrue(torch.equal(a, b))

    def lines(self):
        metrics = self.folder / "local" / "metrics.jsonl"
        return [json.loads(line) for line in metrics.read_text().splitlines()]

    def saved(self):
        """The steps of its checkpoints."""
        return sorted(int(each.name.split("-")[1]) for each in (self.folder / "local").glob("step-*"))

    def evaluation(self):
        return {"test_data": data(20), "evaluate": self.loss}


class EndTest(Steps):
    def test_it_ends_and_evaluates_where_the_settings_say(self):
        cases = [
            # settings, steps, epochs, evaluated after, last steps of epochs
            ({"epochs": 2}, 8, 2, [4, 8], [4, 8]),
            ({"max_steps": 6}, 6, 2, [4], [4]),
            ({"max_steps": 8}, 8, 2, [4, 8], [4, 8]),
            ({"max_steps": 3}, 3, 1, [], []),
            ({"epochs": 1, "max_steps": 6}, 4, 1, [4], [4]),
            ({"epochs": 9, "max_steps": 6}, 6, 2, [4], [4]),
            ({"max_steps": 6, "evaluate_every": 2}, 6, 2, [2, 4, 6], [4]),
            ({"max_steps": 7, "evaluate_every": 3}, 7, 2, [3, 6, 7], [4]),
            ({"epochs": 2, "evaluate_every": 3}, 8, 2, [3, 6, 8], [4, 8]),
            ({"epochs": 2, "evaluate_every": 100}, 8, 2, [8], [4, 8]),
        ]
        for settings, steps, epochs, evaluated, ends_epoch in cases:
            with self.subTest(settings):
                self.make(**settings, **self.evaluation())
                self.assertEqual((self.elastic.total_steps, self.elastic.epochs), (steps, epochs))
                self.train()
                self.assertEqual(self.elastic.ending.step, steps)
                self.assertEqual(self.evaluated, evaluated)
                self.assertEqual(self.ends_epoch, ends_epoch)
                tests = [line["step"] for line in self.lines() if line["kind"] == "test"]
                self.assertEqual(tests, evaluated)
                trained = [line for line in self.lines() if line["kind"] == "train"]
                self.assertEqual({line["totalSteps"] for line in self.lines()}, {steps})
                self.assertEqual(trained[-1]["step"], steps, "the last line has the last step")
                manifest = json.loads((self.folder / "local" / "final" / "manifest.json").read_text())
                self.assertEqual((manifest["step"], manifest["epoch"]), (steps, steps // 4))

    def test_evaluations_do_not_change_what_is_trained(self):
        self.make(max_steps=7)
        expected = self.train()
        self.make(max_steps=7, evaluate_every=2, **self.evaluation())
        self.assert_same(self.train(), expected)


class ResumedTest(Steps):
    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.dict(os.environ, {"PLIANT_CHECKPOINT_EVERY_STEPS": "1"}))

    def resumed(self, before, after, stop_at):
        """The parameters of a training that is left after this step, and resumes with other settings."""
        folder = next(self.folders)
        self.make(folder, **before, **self.evaluation())
        self.train(stop_at=stop_at)
        self.make(folder, **after, **self.evaluation())
        return self.train()

    def test_it_continues_with_more_steps_and_other_evaluations(self):
        self.make(max_steps=11)
        expected = self.train()
        cases = [
            # settings before and after, the number of the last step before, evaluated after it
            ({"max_steps": 6}, {"max_steps": 11}, 4, [8]),
            ({"max_steps": 7, "evaluate_every": 3}, {"max_steps": 11, "evaluate_every": 3}, 5, [6, 9, 11]),
            ({"max_steps": 7, "evaluate_every": 3}, {"max_steps": 11, "evaluate_every": 2}, 5, [6, 8, 10, 11]),
            ({"max_steps": 7, "evaluate_every": 3}, {"max_steps": 11}, 5, [8]),
            ({"epochs": 3}, {"max_steps": 11, "evaluate_every": 5}, 5, [10, 11]),
        ]
        for before, after, stop_at, evaluated in cases:
            with self.subTest(before=before, after=after):
                self.assert_same(self.resumed(before, after, stop_at), expected)
                # The state that is left is that of the step before: its last step is taken again.
                self.assertEqual([step for step in self.evaluated if step > stop_at], evaluated)

    def test_fewer_steps_than_a_checkpoint_has_are_refused(self):
        with self.assertRaisesRegex(TrainingFailed, r"has more steps than maxSteps \(2\): use at least \d"):
            self.resumed({"max_steps": 6}, {"max_steps": 2}, 4)


class CheckpointTest(Steps):
    def test_the_program_says_how_often(self):
        self.make(max_steps=7, checkpoint_every_steps=2)
        self.train()
        self.assertTrue(self.saved())
        self.assertTrue(all(step % 2 == 0 for step in self.saved()), self.saved())

    def test_another_number_than_the_job_is_an_error_that_names_both(self):
        with mock.patch.dict(os.environ, {"PLIANT_CHECKPOINT_EVERY_STEPS": "200"}):
            self.make(epochs=1, checkpoint_every_steps=200)
            said = r"checkpoint_every_steps is 50, but the job's spec.checkpoint.everySteps .* is 200: remove one"
            with self.assertRaisesRegex(InvalidProgram, said):
                self.make(epochs=1, checkpoint_every_steps=50)

    def test_one_is_saved_where_the_program_asks(self):
        for stop_at in (3, 4, 5):
            self.make(max_steps=9, evaluate_every=2, **self.evaluation())
            expected = self.train()
            folder = next(self.folders)
            self.make(folder, max_steps=9, evaluate_every=2, **self.evaluation())

            def after(step, stop_at=stop_at):
                if step.number + 1 == stop_at:
                    self.elastic.save_checkpoint()

            self.train(after, stop_at=stop_at + 1)
            self.assertEqual(self.saved(), [stop_at])
            self.make(folder, max_steps=9, evaluate_every=2, **self.evaluation())
            first = []
            again = self.train(lambda step, first=first: first.append(step.number))
            self.assertEqual(first[0], stop_at, "it continues after that step")
            self.assert_same(again, expected)

    def test_one_is_saved_after_an_evaluation(self):
        self.make(max_steps=9, evaluate_every=2, **self.evaluation())
        self.elastic.add_callback(
            pliant.LambdaCallback(
                on_test_end=lambda evaluation: evaluation.step == 4 and self.elastic.save_checkpoint()
            )
        )
        self.train()
        self.assertEqual(self.saved(), [4])

    def test_not_before_the_first_step(self):
        self.make(max_steps=2)
        with self.assertRaisesRegex(InvalidProgram, "save_checkpoint.. comes too early: call it between"):
            self.elastic.save_checkpoint()

    def test_the_library_wants_it_within_a_commit(self):
        self.make(max_steps=2)
        with self.assertRaisesRegex(PliantError, "does not fit the current work"):
            self.elastic._learner.save_checkpoint()


if __name__ == "__main__":
    unittest.main()
