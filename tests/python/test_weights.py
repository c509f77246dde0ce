"""A step by tokens in one process: the gradient is that of the mean over all tokens of the global batch, and named sums
are over all of its shards."""

import contextlib
import io
import json
import math
import pathlib
import tempfile
import unittest

import torch
from pliant._shard_report import ShardReport, evaluated
from pliant.errors import InvalidProgram
from torch import nn

import pliant

IGNORED = -100


def texts(count=32, without=()):
    """Texts of 1 to 9 tokens; those of `without` have no labels."""
    generator = torch.Generator().manual_seed(3)
    made = []
    for index in range(count):
        tokens = torch.randint(0, 12, (1 + index % 9,), generator=generator)
        labels = torch.full_like(tokens, IGNORED) if index in without else (tokens * 5 + 1) % 12
        made.append((tokens, labels))
    return made


def padded(samples):
    pad = nn.utils.rnn.pad_sequence
    inputs, targets = zip(*samples, strict=True)
    return pad(inputs, True), pad(targets, True, IGNORED)


class Weights(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-weights-")
        self.addCleanup(scratch.cleanup)
        self.folders = (pathlib.Path(scratch.name) / str(i) for i in range(100))
        self.told = io.StringIO()
        redirect = contextlib.redirect_stderr(self.told)
        redirect.__enter__()
        self.addCleanup(redirect.__exit__, None, None, None)

    def make(self, samples=None, **settings):
        torch.manual_seed(4)
        self.model = nn.Sequential(nn.Embedding(12, 8), nn.Tanh(), nn.Linear(8, 12))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.folder = next(self.folders)
        self.elastic = pliant.attach(
            self.model,
            self.optimizer,
            texts() if samples is None else samples,
            **{"epochs": 1, "batch_size": 32, "logical_shards": 8, "collate_fn": padded, **settings},
            checkpoint_dir=self.folder,
        )
        self.addCleanup(self.elastic.close)
        return self.elastic

    def loss(self, batch, reduction="mean"):
        inputs, targets = batch
        scores = self.model(inputs).flatten(0, 1)
        return nn.functional.cross_entropy(scores, targets.flatten(), reduction=reduction)

    def train(self, backward):
        """Takes all steps. Returns the gradients and the loss of the first one."""
        first = None
        for step in self.elastic.steps():
            for batch in step:
                backward(step, batch)
            if first is None:
                first = [parameter.grad.clone() for parameter in self.model.parameters()], step.loss
            step.commit()
        return first


def tokens_of(batch):
    return (batch[1] != IGNORED).sum()


class GradientTest(Weights):
    def whole_batch(self, samples):
        """PyTorch's own gradient of the mean over all tokens."""
        loss = self.loss(padded(samples))
        loss.backward()
        gradients = [parameter.grad.clone() for parameter in self.model.parameters()]
        self.model.zero_grad()
        return gradients, loss.item()

    def assert_close(self, ours, theirs):
        for a, b in zip(ours[0], theirs[0], strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)
        self.assertAlmostEqual(ours[1], theirs[1], places=5)

    def test_it_is_that_of_the_mean_over_all_tokens(self):
        ways = {
            "mean": lambda step, batch: step.backward(self.loss(batch), weight=tokens_of(batch)),
            "sum": lambda step, batch: step.backward(
                self.loss(batch, "sum"), weight=int(tokens_of(batch))
            ),
            "own": lambda step, batch: self.own_backward(step, batch),
        }
        for without in ((), range(0, 32, 2), range(24)):
            for shards in (1, 2, 8):
                for name, way in ways.items():
                    with self.subTest(name, shards=shards, without=len(without)):
                        samples = texts(without=without)
                        reduction = "sum" if name == "sum" else "mean"
                        self.make(samples, logical_shards=shards, loss_reduction=reduction)
                        expected = self.whole_batch(samples)
                        self.assert_close(self.train(way), expected)

    def own_backward(self, step, batch):
        loss = self.loss(batch)
        loss.backward()
        step.report(loss, weight=tokens_of(batch).item())

    def test_without_a_weight_it_is_another(self):
        """The oracle above can tell the two."""
        self.make()
        expected = self.whole_batch(texts())
        gradients, _ = self.train(lambda step, batch: step.backward(self.loss(batch)))
        self.assertFalse(torch.allclose(gradients[0], expected[0][0], rtol=1e-3))

    def test_equal_weights_are_as_good_as_none(self):
        same = [(tokens[:1].repeat(4), labels[:1].repeat(4)) for tokens, labels in texts()]
        self.make(same)
        plain = self.train(lambda step, batch: step.backward(self.loss(batch)))
        self.make(same)
        weighed = self.train(lambda step, batch: step.backward(self.loss(batch), weight=16))
        self.assert_close(weighed, plain)

    def test_a_step_without_any_token_changes_nothing(self):
        self.make(texts(without=range(32)))
        before = [parameter.detach().clone() for parameter in self.model.parameters()]
        gradients, loss = self.train(
            lambda step, batch: step.backward(self.loss(batch), weight=tokens_of(batch))
        )
        self.assertTrue(math.isnan(loss))
        self.assertFalse(any(gradient.any() for gradient in gradients))
        for parameter, old in zip(self.model.parameters(), before, strict=True):
            self.assertTrue(torch.equal(parameter, old))
        self.assertIn("step 0 has a gradient of zero: the weights of all its batches are 0", self.told.getvalue())

    def test_the_bits_are_those_of_an_interrupted_run(self):
        def weighed(step, batch):
            step.backward(self.loss(batch), weight=tokens_of(batch), tokens=tokens_of(batch))

        settings = {"epochs": 6, "batch_size": 8, "logical_shards": 4}
        self.make(**settings)
        self.train(weighed)
        expected = self.elastic.ending.parameters_sha256
        self.make(**settings)
        for step in self.elastic.steps():
            for batch in step:
                weighed(step, batch)
            step.commit()
            if step.number == 9:
                self.elastic.close()
                break
        folder = self.folder
        self.folders = iter([folder])
        self.make(**settings)
        self.train(weighed)
        self.assertEqual(self.elastic.ending.parameters_sha256, expected)


class SumsTest(Weights):
    def test_they_are_over_all_shards(self):
        self.make(epochs=2)
        seen = []
        for step in self.elastic.steps():
            for batch in step:
                step.log(texts=len(batch[0]))
                step.backward(self.loss(batch), weight=tokens_of(batch), tokens=tokens_of(batch))
                if step.shard.index == 3:
                    step.log(rare=torch.tensor([2.5]))
                    step.log(rare=1)
            seen.append((dict(step.sums), step.weight))
            step.commit()
            self.assertTrue(self.elastic.first)
        tokens = sum(1 + index % 9 for index in range(32))
        self.assertEqual(seen, [({"tokens": tokens, "texts": 32, "rare": 3.5}, tokens)] * 2)
        lines = (self.folder / "local" / "metrics.jsonl").read_text().splitlines()
        for line in map(json.loads, lines):
            self.assertEqual(line["sums"], {"tokens": tokens, "texts": 32, "rare": 3.5})
            self.assertEqual((line["weight"], line["samples"]), (tokens, 32))

    def test_an_evaluation_has_them_too(self):
        def by_tokens(batch):
            return {"loss": self.loss(batch), "weight": tokens_of(batch), "texts": len(batch[0])}

        def as_tuple(batch):
            return self.loss(batch), 0, tokens_of(batch)

        samples = texts(20, without=(3, 4))
        for evaluate in (by_tokens, as_tuple):
            heard = []
            self.make(test_data=samples, evaluate=evaluate)
            self.elastic.add_callback(pliant.LambdaCallback(on_test_end=heard.append))
            self.train(lambda step, batch: step.backward(self.loss(batch)))
            (evaluation,) = heard
            with torch.no_grad():
                self.assertAlmostEqual(evaluation.loss, self.loss(padded(samples)).item(), places=5)
            tokens = sum(len(text) for index, (text, _) in enumerate(samples) if index not in (3, 4))
            self.assertEqual((evaluation.samples, evaluation.weight), (20, tokens))
            self.assertEqual(evaluation.sums, {"texts": 20} if evaluate is by_tokens else {})


class WrongTest(Weights):
    def test_wrong_numbers_and_names_are_said(self):
        cases = [
            ({"weight": -1}, "weight is -1: it must be a number ≥ 0, the tokens or samples"),
            ({"weight": math.nan}, "weight is nan: it must be a number"),
            ({"weight": math.inf}, "weight is inf: it must be a number"),
            ({"weight": torch.ones(2)}, "weight is a Tensor: it must be one number"),
            ({"weight": "many"}, "weight is a str: it must be one number"),
            ({"entropy": torch.ones(2)}, "the sum entropy is a Tensor: it must be one number"),
            ({"samples": 3}, "a sum is named 'samples': give a name of 1 to 63 letters"),
            ({"two words": 3}, "a sum is named 'two words'"),
            ({"x" * 64: 3}, "a sum is named 'x"),
            ({f"n{i}": i for i in range(33)}, "33 named sums are reported in a batch: at most 32"),
        ]
        for given, said in cases:
            with self.subTest(said), self.assertRaisesRegex(InvalidProgram, said):
                self.make()
                self.train(lambda step, batch, given=given: step.backward(self.loss(batch), **given))

    def test_names_that_differ_between_shards_have_a_limit_together(self):
        self.make()
        with self.assertRaisesRegex(pliant.TrainingFailed, "40 named sums in step 0: at most 32"):
            self.train(
                lambda step, batch: step.backward(
                    self.loss(batch), **{f"n{step.shard.index}-{i}": i for i in range(5)}
                )
            )

    def test_a_weight_for_some_batches_only(self):
        self.make()
        said = "some batches of step 0 have a weight and others have none"
        with self.assertRaisesRegex(pliant.TrainingFailed, said) as failed:
            self.train(
                lambda step, batch: step.backward(
                    self.loss(batch), weight=3 if step.shard.index else None
                )
            )
        self.assertEqual(failed.exception.exit_code, 2)

    def test_an_evaluation_weighs_all_of_its_batches(self):
        for size, alike in ((40, 1), (8, 8)):  # in one tick of the evaluation, and from one to the next
            calls = []

            def evaluate(batch, calls=calls, alike=alike):
                calls.append(batch)
                return {"loss": 1.0, **({"weight": 3} if len(calls) > alike else {})}

            self.make(test_data=texts(20), evaluate=evaluate, batch_size=size, logical_shards=8)
            with self.assertRaisesRegex(pliant.TrainingFailed, "others have none: .* in evaluate"):
                self.train(lambda step, batch: step.backward(self.loss(batch)))

    def test_two_weights_in_a_batch(self):
        def twice(step, batch):
            self.loss(batch).backward()
            step.report(1.0, weight=3)
            step.report(1.0, weight=4)

        self.make()
        with self.assertRaisesRegex(InvalidProgram, "weight is 4.0 in a second report of a batch"):
            self.train(twice)

    def test_log_outside_of_a_batch(self):
        self.make()
        with self.assertRaisesRegex(InvalidProgram, "only inside the loop over the step"):
            for step in self.elastic.steps():
                for batch in step:
                    step.backward(self.loss(batch))
                step.log(late=1)

    def test_evaluate_may_return_several_forms(self):
        cases = [
            (1.5, ShardReport(loss=1.5, loss_is_known=True)),
            ((1.5, 3), ShardReport(loss=1.5, correct=3.0, loss_is_known=True)),
            ((1.5, 3, 7), ShardReport(loss=1.5, correct=3.0, weight=7.0, loss_is_known=True)),
            (
                {"loss": 1.5, "weight": 7, "f1/positives": 2},
                ShardReport(1.5, 0.0, 7.0, {"f1/positives": 2.0}, True),
            ),
            (None, "evaluate returned None: it must"),
            ((1, 2, 3, 4), "evaluate returned 4 values: it must"),
            ({"correct": 1}, "evaluate returned a dict with correct: it must have the loss"),
            ({"loss": 1, "weight": -2}, "weight is -2: it must be a number ≥ 0"),
            ({"loss": 1, 5: 2}, "a sum is named 5"),
            ({"loss": "high"}, "the loss that evaluate returned is a str"),
        ]
        for said, expected in cases:
            with self.subTest(said=said):
                if isinstance(expected, ShardReport):
                    self.assertEqual(evaluated(said), expected)
                else:
                    with self.assertRaisesRegex(InvalidProgram, expected):
                        evaluated(said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
