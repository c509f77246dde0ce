"""pliant.accelerate in one process: next to a plain Accelerator, after a restart, where it has no shard, and what is
refused."""

import unittest
from unittest import mock

import accelerate
import torch
from accelerate.state import AcceleratorState, GradientState, PartialState
from pliant.accelerate import Accelerator
from pliant.errors import InvalidProgram
from torch import nn
from torch.utils.data import DataLoader

from resumable import ResumableTest
from small_data import data


class Lost(Exception):
    pass


class Epochs:
    """State of a script that changes once an epoch, and once a step."""

    def __init__(self):
        self.ended = self.steps = 0

    def state_dict(self):
        return dict(vars(self))

    def load_state_dict(self, state):
        vars(self).update(state)


class AccelerateTest(ResumableTest):
    def setUp(self):
        super().setUp()
        for state in (AcceleratorState, GradientState, PartialState):
            self.addCleanup(state._reset_state)

    def make(self, kind=Accelerator, *, folder="one", accumulation=4, shuffle=True, count=56, batch=2, scale=None, **length):
        for state in (AcceleratorState, GradientState, PartialState):
            state._reset_state()
        self.enterContext(mock.patch.dict("os.environ", {"PLIANT_CHECKPOINT_DIR": str(self.scratch / folder)}))
        given = length if kind is accelerate.Accelerator else {"epochs": 3, **length}
        self.accelerator = kind(gradient_accumulation_steps=accumulation, cpu=True, **given)
        torch.manual_seed(3)
        self.model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 3))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.02)
        schedule = torch.optim.lr_scheduler.LinearLR(self.optimizer, 1.0, 0.1, 21)
        loader = DataLoader(data(count), batch_size=batch, shuffle=shuffle)
        self.epochs = Epochs()
        self.accelerator.register_for_checkpointing(self.epochs)
        if scale:
            self.accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        prepared = self.accelerator.prepare(self.model, self.optimizer, loader, schedule)
        self.model, self.optimizer, self.loader, self.schedule = prepared

    def assert_same(self, expected, own):
        self.assertEqual(len(expected), len(own))
        self.assertTrue(all(map(torch.equal, expected, own)))

    def train(self, *, epochs=range(3), stop_at=None, clip=None):
        """The loop of a script. Its parameters, and its learning rates with a number drawn after each step."""
        rates, self.losses, taken = [], [], getattr(self.accelerator, "step", 0) if stop_at != 0 else 0
        clip = clip or (lambda: self.accelerator.clip_grad_norm_(self.model.parameters(), 1.0))
        for _ in epochs:
            self.model.train()
            summed = 0.0
            for inputs, labels in self.loader:
                with self.accelerator.accumulate(self.model):
                    loss = nn.functional.cross_entropy(self.model(inputs), labels)
                    summed += float(loss.detach()) / self.accelerator.gradient_accumulation_steps
                    self.accelerator.backward(loss)
                    if self.accelerator.sync_gradients:
                        clip()
                    self.optimizer.step()
                    self.schedule.step()
                    self.optimizer.zero_grad()
                if self.accelerator.sync_gradients:
                    taken += 1
                    self.epochs.steps += 1
                    rates.append((self.schedule.get_last_lr()[0], float(torch.rand(()))))
                    self.losses.append(summed)
                    summed = 0.0
                    if taken == stop_at:
                        raise Lost
            self.epochs.ended += 1
        self.taken = taken
        return [value.clone() for value in self.model.state_dict().values()], rates

    def test_its_losses_are_those_of_a_plain_accelerator(self):
        """In order, without dropout; a batch of BatchNorm is a micro-batch in both."""
        losses, rates = [], []
        for kind in (accelerate.Accelerator, Accelerator):
            self.make(kind, folder=kind.__module__, shuffle=False)
            self.model[2].p = 0.0
            self.accelerator.step = 0
            rates.append([rate for rate, _ in self.train()[1]])
            losses.append(self.losses)
        self.assertEqual(len(losses[0]), 21)
        self.assertEqual(rates[0], rates[1])
        for plain, own in zip(*losses, strict=True):
            self.assertAlmostEqual(own / plain, 1.0, delta=1e-5)

    def test_it_continues_where_it_was(self):
        self.make()
        parameters, rates = self.train()
        self.assertEqual(self.taken, 21)
        self.assertEqual(self.accelerator.step, 21)
        for stop in (4, 9, 18):
            folder = f"stopped{stop}"
            self.make(folder=folder)
            with self.assertRaises(Lost):
                self.train(stop_at=stop)
            self.accelerator._elastic.close()
            self.make(folder=folder)
            self.accelerator.save_state("unused")
            self.accelerator.load_state("unused")
            again, rates_again = self.train()
            with self.subTest(stop):
                self.assert_same(parameters, again)
                self.assertEqual(rates_again, rates[-len(rates_again) :])
                self.assertEqual(self.taken, 21)
                self.assertEqual(self.epochs.steps, 21)
                self.assertEqual(self.epochs.ended, 3, "what the script did for epochs that are over is undone")
        self.assertIn("accelerator.load_state does nothing", self.told.getvalue())

    def test_a_script_may_begin_at_its_epoch(self):
        self.make()
        parameters, _ = self.train()
        for begins_at_its_epoch in (True, False):
            folder = f"begins{begins_at_its_epoch}"
            self.make(folder=folder)
            with self.assertRaises(Lost):
                self.train(stop_at=18)
            self.accelerator._elastic.close()
            self.make(folder=folder)
            if begins_at_its_epoch:
                self.assertEqual(self.accelerator.epoch, 2)
                again, _ = self.train(epochs=range(self.accelerator.epoch, 3))
                self.assert_same(parameters, again)
                continue
            self.train(epochs=range(self.accelerator.step // 7, 3))
            with self.assertRaisesRegex(InvalidProgram, "at 0 or at accelerator.epoch"):
                self.accelerator.end_training()

    def test_gradients_are_unscaled_once(self):
        found = []
        for own in (False, True):
            self.make(folder=f"own{own}", scale=2.0**10)
            norms = []

            def clip():
                if own:
                    self.accelerator.unscale_gradients()
                    gradients = [each.grad for each in self.model.parameters()]
                    whole = float(torch.nn.utils.get_total_norm(gradients))
                norms.append(float(self.accelerator.clip_grad_norm_(self.model.parameters(), 1.0)))
                if own:
                    self.assertAlmostEqual(whole / norms[-1], 1.0, places=5)

            self.train(clip=clip)
            found.append(norms)
        self.assertEqual(*found)

    def test_training_data_are_those_that_shuffle_or_come_with_the_optimizer(self):
        self.make()
        self.accelerator = Accelerator(epochs=1, cpu=True)
        test = self.accelerator.prepare(DataLoader(data(), batch_size=4))
        self.assertIsInstance(test, DataLoader)
        self.assertEqual(len(list(test)), 14)
        train, _ = self.accelerator.prepare(DataLoader(data(), batch_size=4), torch.optim.SGD(self.model.parameters()))
        self.assertNotIsInstance(train, DataLoader)

    def test_a_generator_of_the_loader_orders_the_data_except_in_a_job(self):
        for job, seed in (({}, 5), ({"PLIANT_SEED": "9"}, 9)):
            with mock.patch.dict("os.environ", job):
                self.make(folder=f"seed{seed}")
                self.accelerator._loader.loader.generator = torch.Generator().manual_seed(5)
                self.train()
            self.assertEqual(self.accelerator._elastic.plan.seed, seed)

    def test_one_learner_acts_for_all(self):
        self.make()
        said = []
        act = self.accelerator.on_main_process(said.append)
        for first in (False, True):
            with mock.patch.object(type(self.accelerator), "is_main_process", first):
                act(first)
                self.accelerator.save({"of": first}, self.scratch / "saved.pt")
        self.assertEqual(said, [True])
        self.assertEqual(torch.load(self.scratch / "saved.pt"), {"of": True})
        with self.assertRaisesRegex(InvalidProgram, "would act on this learner alone"):
            self.accelerator.set_trigger()

    def test_a_complete_training_is_loaded(self):
        self.make(max_steps=5)
        parameters, _ = self.train(epochs=range(9))
        self.make(max_steps=5)
        self.assertEqual(self.accelerator.step, 5)
        again, rates = self.train(epochs=range(9))
        self.assertEqual(rates, [])
        self.assert_same(parameters, again)

    def test_it_ends_where_the_script_does(self):
        self.make()
        with self.assertRaises(Lost):
            self.train(stop_at=4)
        self.accelerator.end_training()
        self.assertEqual(self.accelerator._elastic.ending.reason, "Completed")
        self.assertEqual(self.accelerator._elastic.ending.step, 4)

    def test_a_step_without_a_shard_is_taken_by_the_same_body(self):
        """As a learner that joins takes the steps that others computed: no batch of it counts, and its forward changes
        nothing."""
        self.make()
        begin = self.accelerator._begin
        seen = []

        class Emptied:
            """A step of which others computed all shards."""

            def __init__(self, step):
                self.step = step

            def __getattr__(self, name):
                return getattr(self.step, name)

            def __iter__(self):
                for inputs, labels in self.step:
                    loss = nn.functional.cross_entropy(elastic._model(inputs), labels)
                    self.step.backward(loss)
                return iter(())

        steps = begin()
        elastic = self.accelerator._elastic

        def batches(step):
            seen.append(step.number)
            return type(self.accelerator)._shards(self.accelerator, Emptied(step) if step.number % 3 == 1 else step)

        with mock.patch.object(self.accelerator, "_shards", batches):
            parameters, rates = self.train()
        self.assertEqual(seen, list(range(21)))
        self.assertIsNone(steps.ahead())
        self.make(folder="two")
        expected, expected_rates = self.train()
        self.assertEqual(rates, expected_rates)
        self.assert_same(parameters, expected)

    def test_a_loop_that_cannot_work_is_refused(self):
        def several():
            self.accelerator.prepare(nn.Linear(2, 2))
            self.train()

        def without_backward():
            for _ in self.loader:
                pass

        def norm_of_another_type():
            for inputs, labels in self.loader:
                self.accelerator.backward(nn.functional.cross_entropy(self.model(inputs), labels))
                self.accelerator.clip_grad_norm_(self.model.parameters(), 1.0, norm_type=1)

        cases = [
            ({}, several, "2 models are prepared: an elastic Accelerator trains one model"),
            ({}, without_backward, r"accelerator.backward\(loss\) was not called for a batch"),
            ({}, norm_of_another_type, "norm_type is 1"),
            ({}, lambda: self.accelerator._present(), "in the loop over the prepared training data"),
            ({"accumulation": 3}, self.train, "gradient_accumulation_steps is 3: .* such as 2 or 4"),
            ({"epochs": None}, self.train, "epochs and max_steps are both None"),
        ]
        for place, (chosen, run, said) in enumerate(cases):
            self.make(folder=f"refused{place}", **chosen)
            with self.subTest(said), self.assertRaisesRegex(InvalidProgram, said):
                run()
            if self.accelerator._elastic is not None:
                self.accelerator._elastic.close()
        self.accelerator = Accelerator(epochs=1, cpu=True)
        self.accelerator.prepare(nn.Linear(2, 2))
        with self.assertRaisesRegex(InvalidProgram, "no training data are prepared"):
            self.accelerator.step


if __name__ == "__main__":
    unittest.main(verbosity=2)
