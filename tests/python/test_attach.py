"""One learner in this process: what a loop may do, and the errors if it does something else."""

import contextlib
import dataclasses
import io
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import torch
from torch import nn

import pliant

from small_data import data
from pliant import _nonfinite
from pliant._learner import Shard
from pliant.errors import Diverged, InvalidProgram, PliantError


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Linear(8, 3)
        )
        self.unused = nn.Linear(2, 2)

    def forward(self, inputs):
        return self.layers(inputs)


class AttachTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-attach-")
        self.addCleanup(scratch.cleanup)
        self.folders = (pathlib.Path(scratch.name) / str(i) for i in range(100))
        environment = mock.patch.dict(os.environ, {"PLIANT_CHECKPOINT_EVERY_STEPS": "1"})
        environment.start()
        self.addCleanup(environment.stop)

    def make(self, folder=None, samples=56, **settings):
        torch.manual_seed(2)
        self.model = Net()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01, weight_decay=0.1)
        settings = {"epochs": 2, "batch_size": 16, "logical_shards": 4, **settings}
        self.elastic = pliant.attach(
            self.model,
            self.optimizer,
            data(samples),
            checkpoint_dir=folder or next(self.folders),
            **settings,
        )
        self.addCleanup(self.elastic.close)
        return self.elastic

    def train(self, *, stop_at=None, backward=None, max_norm=None):
        """The parameters at the end, or None if it stopped earlier."""
        loss_function = nn.CrossEntropyLoss()
        for step in self.elastic.steps():
            for inputs, targets in step:
                loss = loss_function(self.model(inputs), targets)
                (backward or (lambda step, loss: step.backward(loss)))(step, loss)
            step.commit(max_norm=max_norm)
            if step.number == stop_at:
                self.elastic.close()
                return None
        return [parameter.detach().clone() for parameter in self.model.state_dict().values()]

    def with_others(self):
        """Imitates several learners: the gradients of the last shard are sent early."""
        take = self.elastic._learner.next

        def next_work():
            work = take()
            if isinstance(work, Shard) and work.training:
                return dataclasses.replace(work, travels_early=work.index == 3)
            return work

        patch = mock.patch.object(self.elastic._learner, "next", next_work)
        patch.start()
        self.addCleanup(patch.stop)

    def assert_same(self, first, second):
        for a, b in zip(first, second, strict=True):
            self.assertTrue(torch.equal(a, b))

    def test_continues_from_a_checkpoint(self):
        self.make()
        expected = self.train()
        folder = next(self.folders)
        self.make(folder)
        self.assertIsNone(self.train(stop_at=5))
        checkpoints = list((folder / "local").glob("step-*/manifest.json"))
        self.assertTrue(checkpoints)
        self.make(folder)
        self.assert_same(self.train(), expected)
        self.make(folder)
        self.assert_same(self.train(), expected)  # the training is complete: the final model is loaded

    def test_own_backward_is_reported(self):
        def twice(step, loss):
            (loss / 2).backward(retain_graph=True)
            (loss / 2).backward()
            step.report(loss)

        self.make()
        expected = self.train()
        self.make()
        self.assert_same(self.train(backward=twice), expected)

    def test_gradients_travel_during_the_backward_pass(self):
        self.make(overlap=False)
        expected = self.train()
        said = []  # gradients reported ready, by backward pass
        self.make()
        ready = self.elastic._learner.gradients_ready

        parameters = 0

        def note(first, count):
            nonlocal parameters
            parameters += count
            ready(first, count)

        def backward(step, loss):
            nonlocal parameters
            parameters = 0
            step.backward(loss)
            said.append((step.shard.travels_early, parameters))

        def train():
            said.clear()
            with mock.patch.object(self.elastic._learner, "gradients_ready", note):
                self.assert_same(self.train(backward=backward), expected)

        train()
        self.assertEqual(said[:4], [(False, 0)] * 4, "nobody waits for those of one alone")
        self.make()
        ready = self.elastic._learner.gradients_ready
        self.with_others()
        train()
        used = sum(1 for name, _ in self.model.named_parameters() if "unused" not in name)
        self.assertEqual(
            said[:4],
            [(False, 0), (False, 0), (False, 0), (True, used)],
            "the last one of its block",
        )

    def test_a_change_of_grad_acts_alike_in_every_shard(self):
        """Which shards' gradients are sent early depends on the other learners: nothing else may."""

        def clip():
            nn.utils.clip_grad_norm_(self.model.parameters(), 1e-3)

        self.make()
        expected = self.train()
        does = {
            "zero_grad": lambda: self.optimizer.zero_grad(),
            "zero_grad to zeros": lambda: self.optimizer.zero_grad(set_to_none=False),
            "clip": clip,
        }
        for what, do in does.items():
            for overlap in (True, False):
                with self.subTest(what, overlap=overlap):
                    self.make(overlap=overlap)
                    self.with_others()
                    ended_with = self.train(backward=lambda step, loss: (step.backward(loss), do()))
                    self.assert_same(ended_with, expected)

        # A gradient from the program's own backward stays on the parameter until the shard is done.
        def own(do):
            return lambda step, loss: (loss.backward(), do(), step.report(loss))

        self.make(overlap=False)
        clipped = self.train(backward=own(clip))
        self.assertFalse(all(torch.equal(a, b) for a, b in zip(clipped, expected, strict=True)))
        self.make()
        self.with_others()
        self.assert_same(self.train(backward=own(clip)), clipped)
        self.make()
        with self.assertRaisesRegex(InvalidProgram, "no parameter has a gradient"):
            self.train(backward=own(does["zero_grad"]))

    def penalty(self):
        return 0.01 * sum(parameter.square().sum() for parameter in self.model.parameters())

    def test_losses_one_after_the_other_add_up(self):
        self.make()
        expected = self.train(backward=lambda step, loss: step.backward(loss + self.penalty()))

        def both(step, loss):
            step.backward(loss)
            step.backward(self.penalty())

        def mixed(step, loss):
            step.backward(loss)
            self.penalty().backward()

        for backward in (both, mixed):
            for overlap in (True, False):
                self.make(overlap=overlap)
                self.with_others()
                for a, b in zip(self.train(backward=backward), expected, strict=True):
                    torch.testing.assert_close(a, b)

    def test_a_backward_pass_more_than_before_is_refused(self):
        """In any shard, and with or without other learners."""

        def more(second, shard):
            def backward(step, loss):
                step.backward(loss)
                if step.number == 2 and step.shard.index == shard:
                    second(step)

            return backward

        seconds = {
            "its own": lambda step: step.backward(self.penalty()),
            "torch's": lambda step: self.penalty().backward(),
        }
        for what, second in seconds.items():
            for shard in range(4):
                for others in (False, True):
                    with self.subTest(what, shard=shard, others=others):
                        self.make()
                        if others:
                            self.with_others()
                        with self.assertRaisesRegex(
                            InvalidProgram, "a second backward pass in a batch"
                        ):
                            self.train(backward=more(second, shard))
            self.make(overlap=False)
            self.train(backward=more(second, 3))

    def test_a_scaler_goes_with_the_state(self):
        def make(folder):
            scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=2)
            return self.make(folder, scaler=scaler), scaler

        def run(folder, stop_at=None):
            _, scaler = make(folder)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return self.train(stop_at=stop_at, max_norm=1.0), scaler.get_scale()

        expected, scale = run(next(self.folders))
        self.assertLess(scale, 2.0**127, "a scale that overflows is lowered")
        self.assertTrue(all(torch.isfinite(parameter).all() for parameter in expected))
        folder = next(self.folders)
        run(folder, stop_at=4)
        again, scale_again = run(folder)
        self.assert_same(again, expected)
        self.assertEqual(scale_again, scale)

    def test_a_scaler_does_not_hide_that_a_training_diverges(self):
        def no_loss(step, loss):
            step.backward(loss * float("nan") if step.number >= 3 else loss)

        def no_gradient(step, loss):
            """The loss is unchanged, but its gradient is not finite: it is that of the root of 0."""
            weight = self.model.layers[0].weight
            infinite = (weight - weight.detach()).sum().sqrt()
            step.backward(loss + infinite if step.number >= 3 else loss)

        for policy, backward, said in (
            ("stop", no_loss, "step 3 cannot be taken, its loss is nan: the training diverges"),
            ("skip", no_loss, "step 5 cannot be taken, .* nor could the 2 before it"),
            ("warn", no_loss, None),
            ("stop", no_gradient, "step 5 cannot be taken, its gradient .* nor could the 2 before"),
            ("skip", no_gradient, "step 5 cannot be taken, its gradient .* nor could the 2 before"),
            ("warn", no_gradient, None),
        ):
            with self.subTest(policy, backward=backward.__name__):
                scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
                self.make(scaler=scaler, on_nonfinite=policy)
                with (
                    mock.patch.object(_nonfinite, "_SKIPS_IN_A_ROW_MAX", 2),
                    contextlib.redirect_stderr(io.StringIO()),
                ):
                    if said is None:
                        parameters = self.train(backward=backward)
                        self.assertTrue(all(torch.isfinite(each).all() for each in parameters))
                        self.assertEqual(scaler.get_scale(), 4.0 / 2**5)
                        continue
                    with self.assertRaisesRegex(Diverged, said):
                        self.train(backward=backward)
                    lowered = 2 if backward is no_gradient else 0
                    self.assertEqual(scaler.get_scale(), 4.0 / 2**lowered)

    def commits_before(self, step):
        """Until this step other learners compute, as for a learner that joins: it gets commits only."""
        learner = self.elastic._learner
        take = learner.next
        parameters = len(list(self.model.parameters()))

        def next_work():
            work = take()
            while isinstance(work, Shard) and work.training and work.step < step:
                learner.put_gradients([None] * parameters, 1.0)  # zeros
                learner.shard_done(samples=len(work.samples), loss=0.0, correct=0.0)
                work = take()
            return work

        patch = mock.patch.object(learner, "next", next_work)
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_scaler_of_a_learner_that_joins_is_called_by_a_commit_first(self):
        folder = next(self.folders)
        for begins, computes, ends in ((0, 2, 4), (4, 6, None)):
            with self.subTest("from a checkpoint" if begins else "from the start"):
                scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
                self.make(folder, scaler=scaler)
                self.commits_before(computes)
                self.train(stop_at=ends)
        self.assertEqual(self.elastic.ending.reason, "Completed")
        self.assertEqual(scaler.get_scale(), 4.0 * 2**4, "each of the 8 steps counts once")

    def test_the_sum_of_the_losses_is_as_good_as_their_mean(self):
        self.make()
        expected = self.train()
        self.make(loss_reduction="sum")
        summed = self.train(
            backward=lambda step, loss: step.backward(loss * len(step.shard.samples))
        )
        for a, b in zip(summed, expected, strict=True):
            torch.testing.assert_close(a, b)

    def test_a_short_last_batch_can_be_left_out(self):
        self.make(samples=50, drop_last=True)
        self.assertEqual(self.elastic.steps_per_epoch, 3)
        self.assertIsNotNone(self.train())

    def test_a_misused_step_is_refused_with_the_reason(self):
        cases = {
            "the step is not complete": lambda step: step.commit(),
            "committed already": lambda step: ([step.backward(self.loss(b)) for b in step], step.commit(), step.commit()),
            "was not committed": lambda step: [step.backward(self.loss(b)) for b in step],
            "a tensor of one number": lambda step: [step.backward(3.0) for _ in step],
            "no parameter has a gradient": lambda step: list(step),
            "there is no current batch": lambda step: ([step.backward(self.loss(b)) for b in step], step.backward(self.penalty())),
        }  # fmt: skip
        for message, do in cases.items():
            with self.subTest(message):
                self.make()
                with self.assertRaisesRegex(PliantError, message):
                    for step in self.elastic.steps():
                        do(step)

    def loss(self, batch):
        inputs, targets = batch
        return nn.functional.cross_entropy(self.model(inputs), targets)

    def test_wrong_settings_are_said(self):
        with self.assertRaisesRegex(InvalidProgram, "must be given together"):
            self.make(test_data=data())
        with self.assertRaisesRegex(InvalidProgram, "epochs is 0"):
            self.make(epochs=0)
        with mock.patch.dict(os.environ, {"PLIANT_GLOBAL_BATCH_SIZE": "32"}):
            with self.assertRaisesRegex(InvalidProgram, "program's .*16, but the job's is 32"):
                self.make()
        self.make()
        self.assertIsNotNone(self.train(), "and none of them is left open")

    def test_operations_need_be_deterministic_in_bitwise_mode_only(self):
        """Some operations have no deterministic kernel on a GPU, and raise."""
        self.addCleanup(torch.use_deterministic_algorithms, False)
        self.addCleanup(setattr, torch.backends.cudnn, "benchmark", False)
        for mode, deterministic in (("Statistical", False), ("Bitwise", True), ("", True)):
            torch.use_deterministic_algorithms(False)
            torch.backends.cudnn.benchmark = True
            with mock.patch.dict(os.environ, {"PLIANT_REPRODUCIBILITY": mode}):
                self.make()
            self.assertEqual(torch.are_deterministic_algorithms_enabled(), deterministic, mode)
            self.assertEqual(torch.backends.cudnn.benchmark, not deterministic, mode)

    def test_an_abandoned_loop_is_closed_by_the_next(self):
        self.make()
        for step in self.elastic.steps():
            for batch in step:
                step.backward(self.loss(batch))
            break
        self.make()
        self.assertIsNotNone(self.train())

    def test_the_trained_parameters_are_fixed_at_the_start(self):
        def unfreeze(step, loss):
            if step.number == 3:
                self.model.unused.requires_grad_(True)
            step.backward(loss)

        def make_frozen():
            with mock.patch.object(Net, "__init__", frozen):
                self.make()

        def frozen(net, made=Net.__init__):
            made(net)
            net.unused.requires_grad_(False)

        make_frozen()
        self.assertIsNotNone(self.train())
        make_frozen()
        with self.assertRaisesRegex(InvalidProgram, "unused.weight requires a gradient, which it"):
            self.train(backward=unfreeze)
        self.assertEqual(self.optimizer.state[next(self.model.parameters())]["step"], 3)

    def test_a_parameter_without_loss_has_a_zero_gradient(self):
        """So an optimizer may change it, here by weight decay."""
        self.make()
        before = self.model.unused.weight.detach().clone()
        self.train()
        decay = (1 - 0.01 * 0.1) ** 8
        torch.testing.assert_close(self.model.unused.weight.detach(), before * decay)

    def test_losses_that_are_not_reported_are_missed(self):
        self.make()
        log = io.StringIO()
        with contextlib.redirect_stderr(log):
            self.train(backward=lambda step, loss: loss.backward())
        self.assertEqual(log.getvalue().count("no loss is reported"), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
