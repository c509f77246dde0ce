"""Trainings that are limited, evaluated and saved by steps, in one process. test_elastic.py has them on several
learners."""

import json
import math
import os
import pathlib
import shutil
import tempfile
import time
import unittest
from unittest import mock

import torch
from pliant._torch.final_model import read_safetensors
from pliant.errors import InvalidProgram, PliantError, TrainingFailed
from torch import nn

import pliant

from small_data import data


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
        manifests = (self.folder / "local").glob("step-*/manifest.json")
        return sorted(int(each.parent.name.split("-")[1]) for each in manifests)

    def save_after(self, number):
        """What follows each step: a checkpoint after that one, which is waited for before the next step ends."""

        def after(step):
            if step.number + 1 == number:
                self.elastic.save_checkpoint()
            until = time.monotonic() + 20
            while step.number == number and number not in self.saved() and time.monotonic() < until:
                time.sleep(0.01)

        return after

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
            self.train(self.save_after(stop_at), stop_at=stop_at + 1)
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


class BestModelTest(Steps):
    def best(self):
        folder = self.folder / "local" / "best"
        note = json.loads((folder / "best.json").read_text())
        manifest = json.loads((folder / "manifest.json").read_text())
        self.assertEqual(manifest["step"], note["step"], "one model, not a mix of two")
        return note, read_safetensors(folder / "model.safetensors")

    def make_with(self, losses, best=None, folder=None, **settings):
        """A training whose evaluations say these losses, one after another."""
        said = iter(losses)
        given = {"max_steps": 2 * len(losses), "evaluate_every": 2, "test_data": data(16), "logical_shards": 1, **settings}
        self.make(folder, evaluate=lambda batch: next(said), **given)
        self.callback = best or pliant.BestModel()
        self.elastic.add_callback(self.callback)
        self.models = {}
        self.elastic.add_callback(
            pliant.LambdaCallback(
                on_test_end=lambda evaluation: self.models.update(
                    {evaluation.step: {name: value.clone() for name, value in self.model.state_dict().items()}}
                )
            )
        )

    def test_it_is_the_model_of_the_best_evaluation(self):
        cases = [
            # losses of the evaluations after 2, 4, 6 and 8 steps; the best
            ([4.0, 3.0, 2.0, 1.0], 8),
            ([4.0, 1.0, 2.0, 3.0], 4),
            ([1.0, 1.0, 1.0, 1.0], 2),
            ([math.nan, 3.0, math.inf, 3.5], 4),
        ]
        for losses, step in cases:
            with self.subTest(losses):
                self.make_with(losses)
                self.train()
                note, model = self.best()
                value = losses[step // 2 - 1]
                self.assertEqual(note, {"monitor": "loss", "value": value, "step": step})
                self.assertEqual((self.callback.value, self.callback.step), (value, step))
                self.assertEqual(set(model), set(self.models[step]))
                for name, tensor in self.models[step].items():
                    self.assertTrue(torch.equal(model[name], tensor), name)

    def test_without_a_number_there_is_none(self):
        self.make_with([math.nan, math.nan])
        self.train()
        self.assertFalse((self.folder / "local" / "best").exists())
        self.assertIsNone(self.callback.value)

    def test_more_may_be_better(self):
        self.make_with([4.0, 1.0, 5.0, 3.0], pliant.BestModel(mode="max"))
        self.train()
        self.assertEqual(self.best()[0]["step"], 6)

    def test_it_survives_a_resume_and_what_was_not_written_is_made_up_for(self):
        for removed, step in ((False, 4), (True, 6)):
            folder = next(self.folders)
            self.make_with([4.0, 1.0, 2.0, 3.0], folder=folder)
            self.train(self.save_after(5), stop_at=6)
            self.assertEqual(self.saved(), [5])
            if removed:
                shutil.rmtree(folder / "local" / "best")
            self.make_with([2.0, 3.0], folder=folder, max_steps=8)
            self.train()
            self.assertEqual(self.callback.value, 1.0)
            self.assertEqual(self.best()[0]["step"], step)

    def test_bad_arguments_are_named(self):
        with self.assertRaisesRegex(InvalidProgram, "mode is 'up': it must be 'min' or 'max'"):
            pliant.BestModel(mode="up")
        self.make(max_steps=2)
        with self.assertRaisesRegex(InvalidProgram, "BestModel needs evaluations: give test data"):
            self.elastic.add_callback(pliant.BestModel())
        self.make_with([1.0], pliant.BestModel("f1"))
        with self.assertRaisesRegex(InvalidProgram, "monitor is 'f1': the evaluation has loss, accuracy"):
            self.train()


if __name__ == "__main__":
    unittest.main()
