"""The native learner on the digits: resized, suspended and killed, it ends with the bits of an undisturbed run."""

import pathlib
import tempfile
import unittest

from harness import BIN, ScenarioTest

DEMO = pathlib.Path(__file__).resolve().parents[2] / "manifests" / "demo"

# Quick, and with batch norm: its buffers are the first to tell another order or another batch.
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
train: {epochs: 100, learningRate: 0.05, momentum: 0.9, weightDecay: 0.0005}
data: {kind: digits, train: digits-train.csv, test: digits-test.csv}
"""


class DigitsTest(ScenarioTest):
    def digits_job(self, numbers):
        folder = tempfile.TemporaryDirectory(prefix="pliant-model-")
        self.addCleanup(folder.cleanup)
        model = pathlib.Path(folder.name, "model.yaml")
        model.write_text(MODEL)
        return self.running_job(
            numbers,
            program=[str(BIN / "pliant-learner"), f"--model={model}", f"--data={DEMO}"],
            environment={"PLIANT_GLOBAL_BATCH_SIZE": "256", "PLIANT_LOGICAL_SHARDS": "32"},
        )

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


if __name__ == "__main__":
    unittest.main()
