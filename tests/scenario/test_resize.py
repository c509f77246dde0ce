"""Planned changes: growing, shrinking, leaving, suspending. Nothing is lost, and the result is the same."""

import collections
import pathlib
import tempfile
import unittest

from harness import SAMPLES, ScenarioTest, samples_used


class ResizeTest(ScenarioTest):
    def test_grows_from_one_to_four(self):
        job, learners = self.running_job([0])
        learners += job.start_learners([1, 2, 3])
        job.plan(learners)
        job.wait_for_members(learners)
        self.report_pauses(job)
        self.assert_completes(job, learners)

    def test_shrinks_from_four_to_one(self):
        job, learners = self.running_job([0, 1, 2, 3])
        job.plan([learners[2], *[(learners[i], "Leaving") for i in (0, 1, 3)]])
        for leaver in (learners[0], learners[1], learners[3]):
            self.assert_drained(leaver)
        job.wait_for_members([learners[2]])
        self.report_pauses(job)
        self.assert_completes(job, [learners[2]])

    def test_a_statistical_job_loses_nothing_either(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="pliant-ledger-"))
        # A learner computes its whole share as one batch, not shard by shard: this time is that of a third of the
        # shards.
        job, learners = self.running_job([0], epochs=30, shard_milliseconds=60, environment={
            "PLIANT_REPRODUCIBILITY": "Statistical",
            "PLIANT_TEST_SETTINGS": f"sampleLedger={folder}",
        })
        learners += job.start_learners([1, 2])
        job.plan(learners)
        job.wait_for_members(learners)
        step = job.progress()["step"]
        learners[0].kill()
        job.wait_for_members(learners[1:])
        job.wait_for_step(step + 5)
        job.let_go()
        self.assertEqual([learner.exit_code() for learner in learners[1:]], [0, 0])
        hashes = {learner.termination()["parametersSha256"] for learner in learners[1:]}
        self.assertEqual(len(hashes), 1, "the learners of one size hold the same bits")
        for epoch, used in samples_used(pathlib.Path(folder)).items():
            self.assertEqual(used, collections.Counter(SAMPLES), f"epoch {epoch}")
        accuracy = [line["accuracy"] for line in job.metric_lines() if line["kind"] == "test"]
        self.assertEqual(len(accuracy), 30, "one evaluation an epoch")
        self.assertGreater(accuracy[-1], 0.9)

    def test_one_is_exchanged_for_another(self):
        job, learners = self.running_job([0, 1])
        newcomer = job.start_learner(2)
        job.plan([learners[1], newcomer])  # a learner that is not listed must leave
        self.assert_drained(learners[0])
        job.wait_for_members([learners[1], newcomer])
        self.assert_completes(job, [learners[1], newcomer])

    def test_a_deleted_pod_leaves_at_the_boundary(self):
        job, learners = self.running_job([0, 1, 2])
        learners[0].terminate()
        self.assert_drained(learners[0])
        job.wait_for_members(learners[1:])
        self.report_pauses(job)
        self.assert_completes(job, learners[1:])

    def test_deleted_with_its_coordinator(self):
        """As `kubectl delete` does: every pod receives SIGTERM at the same time, and no process waits for one that has
        ended."""
        longer_than_the_test_waits = {"PLIANT_GRACE_SECONDS": "600"}
        job, learners = self.running_job([0, 1, 2], environment=longer_than_the_test_waits)
        for process in (job.coordinator, *learners):
            process.terminate()
        for learner in learners:
            self.assert_drained(learner)
        messages = [learner.termination()["message"] for learner in learners]
        self.assertEqual(messages, ["left with a checkpoint"] * 3)
        step = max(learner.termination()["step"] for learner in learners)
        self.assertIn(f"step-{step:012d}", job.checkpoints()[-1], "a checkpoint of the very last step")

    def test_suspended_and_resumed(self):
        job, learners = self.running_job([0, 1])
        job.plan([])
        for learner in learners:
            self.assert_drained(learner)
        step = max(learner.termination()["step"] for learner in learners)
        job.wait("the job is drained", lambda: job.progress()["state"] == "Drained")
        self.assertIn(f"step-{step:012d}", job.checkpoints()[-1], "a checkpoint of the very last step")

        resumed = job.start_learners([2, 3])
        job.plan(resumed)
        job.wait_for_members(resumed)
        self.assert_resumed_at(resumed, step)
        self.assert_completes(job, resumed)


if __name__ == "__main__":
    unittest.main(verbosity=2)
