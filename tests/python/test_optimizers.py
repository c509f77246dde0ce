"""Several optimizers, clipping, averages of the weights, loss scales and low precision: alone, resumed after an
interruption, and their misuse."""

import math
import unittest

import torch
from pliant.errors import InvalidProgram
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import pliant

from resumable import ResumableTest
from small_data import data


class Two(nn.Module):
    """Two parts, each with an optimizer of its own."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.d = nn.Linear(6, 8)
        self.g = nn.Sequential(nn.BatchNorm1d(8), nn.Linear(8, 2))

    def forward(self, inputs):
        return self.g(self.d(inputs).tanh())


class Optimizers(ResumableTest):
    samples = 64

    def make(self, folder, optimizers=None, **settings):
        self.model = Two()
        self.both = {
            "d": torch.optim.SGD(self.model.d.parameters(), lr=0.1, momentum=0.9),
            "g": torch.optim.AdamW(self.model.g.parameters(), lr=0.01),
        }
        self.elastic = pliant.attach(
            self.model,
            self.both if optimizers is None else optimizers(self.model),
            data(self.samples),
            **{"epochs": 3, "batch_size": 16, "logical_shards": 4, **settings},
            checkpoint_dir=self.scratch / folder,
        )
        self.addCleanup(self.elastic.close)

    def loss(self, batch):
        return nn.functional.cross_entropy(self.model(batch[0]), batch[1])

    def train(self, commit, stop_at=None, weighs=False):
        for step in self.elastic.steps():
            for batch in step:
                weight = {"weight": 1 + step.shard.index} if weighs else {}
                step.backward(self.loss(batch), **weight)
            commit(step)
            if step.number == stop_at:
                self.elastic.close()
                return None
        return self.elastic.ending.parameters_sha256

    def resumed(self, prepare, commit, **how):
        """The end of a run that was interrupted after its sixth step is that of a whole one."""
        prepare("whole")
        whole = self.train(commit, **how)
        prepare("parts")
        self.train(commit, stop_at=5, **how)
        prepare("parts")
        self.assertEqual(self.train(commit, **how), whole)
        return whole


class SeveralTest(Optimizers):
    def test_they_take_turns(self):
        """As in a GAN: a step of one leaves the other's part as it was."""

        def commit(step):
            before = [value.detach().clone() for value in self.model.parameters()]
            name = "dg"[step.number % 2]
            step.commit(name)
            for (part, value), old in zip(self.model.named_parameters(), before, strict=True):
                self.assertEqual(torch.equal(value, old), not part.startswith(name), part)

        self.resumed(self.make, commit)

    def test_all_step_without_a_name(self):
        """The result is that of one optimizer for all."""

        def one(model):
            return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def two(model):
            return {
                part: torch.optim.SGD(getattr(model, part).parameters(), lr=0.1, momentum=0.9)
                for part in "dg"
            }

        self.make("one", one)
        expected = self.train(lambda step: step.commit(max_norm=1.0))
        self.make("two", two)
        self.assertEqual(self.train(lambda step: step.commit(max_norm=1.0)), expected)

    def test_each_has_its_schedule(self):
        def prepare(folder):
            self.make(folder)
            self.schedules = [
                torch.optim.lr_scheduler.StepLR(each, 2, gamma=0.5) for each in self.both.values()
            ]

        def commit(step):
            step.commit()
            for schedule in self.schedules:
                schedule.step()

        self.resumed(prepare, commit)
        self.assertIn("the schedule StepLR of the optimizer is part", self.told.getvalue())

    def test_wrong_ones_are_said(self):
        def both(model):
            return [torch.optim.SGD(part.parameters(), lr=0.1) for part in (model.d, model.g)]

        cases = [
            (both, "2 optimizers were given without names: give a dict"),
            (lambda model: {}, "the dict of optimizers is empty"),
            (lambda model: {"a b": both(model)[0]}, "an optimizer is named 'a b'"),
            (lambda model: {"d": 3}, "the optimizer d is a int: it must be a torch.optim.Optimizer"),
            (lambda model: torch.optim.SparseAdam(list(model.parameters())), "needs sparse gradients"),
        ]
        for optimizers, said in cases:
            with self.subTest(said), self.assertRaisesRegex(InvalidProgram, said):
                self.make("wrong", optimizers)
        for optimizers, name, said in (
            (None, "q", r"commit\('q'\): the training has the optimizers 'd', 'g'"),
            (lambda model: both(model)[0], "d", r"commit\('d'\): the training has one optimizer, without"),
        ):
            self.make(f"wrong {name}", optimizers)
            with self.subTest(said), self.assertRaisesRegex(InvalidProgram, said):
                self.train(lambda step, name=name: step.commit(name))


    def test_a_clip_is_over_the_parameters_of_those_that_step(self):
        """As clip_grad_norm_ over these; with a scaler, too, whose scale the others still have."""
        results = []
        for scaler in (None, torch.amp.GradScaler("cpu", init_scale=65536.0)):

            def commit(step):
                kept = [value.grad.clone() for value in self.model.d.parameters()]
                if scaler is not None:
                    kept = [each / scaler.get_scale() for each in kept]
                norm = math.hypot(*(each.norm().item() for each in kept))
                before = [value.detach().clone() for value in self.model.d.parameters()]
                step.commit("d", max_norm=0.01)
                if step.number == 0:  # no momentum yet: the step is the gradient
                    for value, old, gradient in zip(self.model.d.parameters(), before, kept, strict=True):
                        torch.testing.assert_close(old - value, 0.1 * 0.01 / norm * gradient)

            self.make(f"scaler {scaler is not None}", scaler=scaler)
            results.append(self.train(commit))
        self.assertEqual(len(results), 2)


class NotFiniteTest(Optimizers):
    def train_with_infinity(self, commit, at=2, **settings):
        self.make(f"{commit.__name__} {settings}", **settings)
        steps = []
        for step in self.elastic.steps():
            for batch in step:
                step.backward(self.loss(batch))
            if step.number == at:
                part = self.model.g[1].bias.grad
                part[0] = math.inf
            steps.append(commit(step))
        return steps

    def test_a_clip_does_not_hide_it(self):
        def by_value(step):
            step.clip_value(1.0)
            return step.commit()

        def by_norm(step):
            step.clip(1.0)
            return step.commit()

        for commit in (by_value, by_norm):
            with self.subTest(commit.__name__), self.assertRaisesRegex(pliant.Diverged, "its gradient is not finite"):
                self.train_with_infinity(commit)
            taken = self.train_with_infinity(commit, on_nonfinite="skip")
            self.assertEqual([number for number, took in enumerate(taken) if not took], [2])

    def test_a_gradient_of_an_optimizer_that_waits_does_not_count(self):
        def only_d(step):
            return step.commit("d")

        self.assertTrue(all(self.train_with_infinity(only_d)))

    def test_a_loss_that_is_not_finite_is_skipped_after_a_clip(self):
        """The scaler would refuse to unscale the next step's gradient, too."""
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        self.make("skip", scaler=scaler, on_nonfinite="skip")
        taken = []
        for step in self.elastic.steps():
            for batch in step:
                loss = self.loss(batch)
                step.backward(loss * math.nan if step.number == 1 else loss)
            step.clip(1.0)
            taken.append(step.commit())
        self.assertEqual([number for number, took in enumerate(taken) if not took], [1])
        self.assertEqual(scaler.get_scale(), 1024)


class ClipTest(Optimizers):
    def test_the_norm_is_that_before_clipping(self):
        norms = []

        def commit(step):
            norms.append(step.clip(0.05))
            after = math.hypot(*(value.grad.norm().item() for value in self.model.parameters()))
            self.assertLess(after, 0.0501)
            step.commit()

        self.make("clip")
        clipped = self.train(commit)
        self.assertGreater(min(norms), 0.05)
        self.make("commit")
        self.assertEqual(self.train(lambda step: step.commit(max_norm=0.05)), clipped)

    def test_by_value(self):
        def commit(step):
            step.clip_value(0.01)
            for parameter in self.model.parameters():
                self.assertLessEqual(parameter.grad.abs().max(), 0.01)
            step.commit()

        self.resumed(self.make, commit)

    def test_a_wrong_use_is_said(self):
        cases = [
            (lambda step: step.clip(0), "max_norm is 0: it must be a number above 0"),
            (lambda step: step.clip(math.nan), "max_norm is nan: it must be a number above 0"),
            (lambda step: step.clip_value("x"), "limit is 'x': it must be a number above 0"),
            (lambda step: step.commit(max_norm=-1), "max_norm is -1: it must be a number above 0"),
            (lambda step: (step.commit(), step.clip(1)), r"clip\(\) comes too late"),
        ]
        for use, said in cases:
            self.make("wrong")
            with self.subTest(said), self.assertRaisesRegex(InvalidProgram, said):
                self.train(use)
        self.make("early")
        with self.assertRaisesRegex(InvalidProgram, "the step is not complete"):
            for step in self.elastic.steps():
                for batch in step:
                    step.backward(self.loss(batch))
                    step.clip(1.0)


class PairsTest(Optimizers):
    """Features that meet in one step."""

    def test_scaler_weights_and_clip(self):
        def prepare(folder):
            self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
            self.make(folder, scaler=self.scaler)

        norms = []

        def commit(step):
            norms.append(step.clip(0.5))
            step.commit()

        self.resumed(prepare, commit, weighs=True)
        self.assertGreater(self.scaler.get_scale(), 1024)
        self.assertLess(max(norms), 100, "of gradients that are not scaled")
        self.make("plain")
        plain = []
        self.train(lambda step: (plain.append(step.clip(0.5)), step.commit()), weighs=True)
        for scaled, unscaled in zip(norms, plain, strict=False):
            self.assertAlmostEqual(scaled, unscaled, places=4)

    def test_an_average_and_two_optimizers(self):
        def prepare(folder):
            self.make(folder)
            self.average = AveragedModel(
                self.model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True
            )
            self.elastic.register("average", self.average)

        def commit(step):
            step.commit("dg"[step.number % 2])
            self.average.update_parameters(self.model)

        self.resumed(prepare, commit)
        kept = [value.clone() for value in self.average.state_dict().values()]
        prepare("third")
        self.train(commit)
        for value, other in zip(self.average.state_dict().values(), kept, strict=True):
            self.assertTrue(torch.equal(value, other))

    def test_bfloat16_and_recomputed_activations(self):
        from torch.utils.checkpoint import checkpoint

        for reentrant in (False, True):
            with self.subTest(reentrant=reentrant):

                def loss(batch, reentrant=reentrant):
                    with torch.autocast("cpu", torch.bfloat16):
                        inputs = batch[0].clone().requires_grad_()
                        hidden = checkpoint(self.model.d, inputs, use_reentrant=reentrant)
                        return nn.functional.cross_entropy(self.model.g(hidden.tanh()), batch[1])

                self.loss = loss
                self.scratch = self.scratch / str(reentrant)
                self.resumed(self.make, lambda step: step.commit())

    def test_accumulation_and_a_short_last_batch(self):
        """The last batch of an epoch has 8 of 16 samples: two in each shard, of which a micro-batch has four."""

        def prepare(folder):
            self.make(folder, micro_batch_size=4, logical_shards=None)
            self.assertEqual(self.elastic.plan.logical_shards, 4)

        sizes = set()

        def commit(step):
            sizes.add(int(step.weight))
            step.commit()

        self.samples = 56
        self.resumed(prepare, commit)
        self.assertEqual(sizes, {16, 8})


if __name__ == "__main__":
    unittest.main(verbosity=2)
