"""The native learner on the digits: resized, suspended and killed, it ends with the bits of an undisturbed run."""

import pathlib
import tempfile
import unittest

from harness import BIN, ScenarioTest

DEMO = pathlib.Path(__file__).resolve().parents[2] / "manifests" / "demo"

# Quick, and with batch norm: its buffers are the first to reveal another order or another batch.
MODEL = """
name: small
input: [1, 8, 8]
layers:
  - conv: {out: 8, kernel: 3, padding: 1}
  - batch_norm
  - relu
  - max_pool: {kernel: 2}
  - flatten
  - linear: {out: 10}
train: {epochs: 40, learningRate: 0.05, momentum: 0.9, weightDecay: 0.0005}
data: {kind: digits, train: digits-train.csv, test: digits-test.csv}
"""

# Uses everything that draws random numbers, keeps state, or needs the whole gradient.
RICH_MODEL = """
name: rich
input: [1, 8, 8]
layers:
  - conv: {out: 4, kernel: 3, padding: 1}
  - batch_norm
  - relu
  - residual:
      layers: [conv: {out: 6, kernel: 3, stride: 2, padding: 1}, batch_norm, dropout: {rate: 0.2}]
      shortcut: [conv: {out: 6, kernel: 1, stride: 2}]
  - relu
  - flatten
  - dropout: {rate: 0.3}
  - linear: {out: 10}
train:
  epochs: 40
  optimizer: adamw
  learningRate: 0.003
  weightDecay: 0.01
  schedule: {kind: cosine, warmupEpochs: 1.5, least: 0.01}
  clipNorm: 0.5
  labelSmoothing: 0.1
data:
  kind: digits
  train: digits-train.csv
  test: digits-test.csv
  augment: {cropPadding: 1, horizontalFlip: true}
"""

DIVERGING_MODEL = """
name: diverging
input: [64]
layers: [linear: {out: 32}, relu, linear: {out: 32}, relu, linear: {out: 10}]
train: {epochs: 1000, learningRate: 900, weightDecay: 0.9}
data: {kind: digits, train: digits-train.csv, test: digits-test.csv}
"""


class DigitsTest(ScenarioTest):
    def digits_job(self, numbers, model=MODEL, shards=32):
        return self.running_job(numbers, **self.digits_options(model, shards))

    def digits_options(self, model, shards=32):
        folder = tempfile.TemporaryDirectory(prefix="pliant-model-")
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name, "model.yaml")
        path.write_text(model)
        return {
            "program": [str(BIN / "pliant-learner"), f"--model={path}", f"--data={DEMO}"],
            "environment": {"PLIANT_GLOBAL_BATCH_SIZE": "256", "PLIANT_LOGICAL_SHARDS": str(shards)},
            "shard_milliseconds": 320 // shards,
        }

    def test_grows_and_shrinks(self):
        job, (first,) = self.digits_job([0])
        second, third = job.start_learners([1, 2])
        job.plan([first, second, third])
        job.wait_for_members([first, second, third])
        job.plan([(first, "Leaving"), second, third])
        self.assert_drained(first)
        job.wait_for_members([second, third])
        self.report_pauses(job)
        self.assert_completes(job, [second, third])

    def test_is_suspended_and_resumed(self):
        job, learners = self.digits_job([0, 1])
        job.plan([])
        for learner in learners:
            self.assert_drained(learner)
        stopped = max(learner.termination()["step"] for learner in learners)
        newcomer = job.start_learner(2)
        job.plan([newcomer])
        self.assert_completes(job, [newcomer])
        self.assert_resumed_at([newcomer], stopped)

    def test_a_killed_learner_is_replaced(self):
        job, (first, second) = self.digits_job([0, 1])
        first.kill()
        newcomer = job.start_learner(2)
        job.plan([(first, "Ended"), second, newcomer])
        job.wait_for_members([second, newcomer])
        self.assert_completes(job, [second, newcomer])

    def test_a_model_that_draws_is_no_exception(self):
        job = self.make_job(**self.digits_options(RICH_MODEL, shards=8))
        job.start_coordinator()
        # The third learner is up before it is needed: starting a process takes as long as training on a fast machine.
        first, second, third = job.start_learners([0, 1, 2])
        job.plan([first, second])
        job.wait_for_members([first, second])
        job.wait_for_step(5)
        job.plan([first, second, third])
        job.wait_for_members([first, second, third])
        first.kill()
        job.plan([(first, "Ended"), second, third])
        job.wait_for_members([second, third])
        self.assert_completes(job, [second, third])

    def test_all_say_why_a_training_diverged(self):
        job = self.make_job(**self.digits_options(DIVERGING_MODEL))
        job.let_go()
        job.start_coordinator()
        learners = job.start_learners([0, 1])
        job.plan(learners)
        for learner in learners:
            self.assertEqual(learner.exit_code(), 2, learner.log)
            self.assertEqual(learner.termination()["reason"], "Failed")
        messages = {learner.termination()["message"] for learner in learners}
        self.assertEqual(len(messages), 1, "reduced values are the same for all")
        self.assertRegex(messages.pop(), r"step \d+ cannot be taken, its .*: lower train.learningRate")


if __name__ == "__main__":
    unittest.main()
