"""Processes that die suddenly. No committed step is lost, and the result is the same."""

import collections
import pathlib
import tempfile
import unittest

from harness import SAMPLES, ScenarioTest, samples_used


class FaultsTest(ScenarioTest):
    def test_a_learner_dies(self):
        job, learners = self.running_job([0, 1, 2])
        learners[0].kill()  # rank 0, which announces and reports
        job.wait_for_members(learners[1:])
        self.report_pauses(job)
        newcomer = job.start_learner(3)
        job.plan([(learners[0], "Ended"), learners[1], learners[2], newcomer])
        job.wait_for_members([*learners[1:], newcomer])
        self.assert_completes(job, [*learners[1:], newcomer])

    def test_each_sample_is_used_once_in_each_epoch(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="pliant-ledger-"))
        job, learners = self.running_job([0, 1, 2], epochs=30, environment={"PLIANT_TEST_SETTINGS": f"sampleLedger={folder}"})
        learners[0].kill()
        job.wait_for_members(learners[1:])
        newcomer = job.start_learner(3)
        job.plan([(learners[0], "Ended"), learners[1], learners[2], newcomer])
        job.wait_for_members([*learners[1:], newcomer])
        learners[1].kill()
        learners[2].kill()
        job.plan([(learners[0], "Ended"), (learners[1], "Ended"), (learners[2], "Ended"), newcomer])
        self.assert_completes(job, [newcomer])

        epochs = samples_used(pathlib.Path(folder))
        self.assertEqual(set(epochs), set(range(30)))
        for epoch, used in epochs.items():
            self.assertEqual(used, collections.Counter(SAMPLES), f"epoch {epoch}")

    def test_a_learner_with_other_data_is_refused(self):
        job, learners = self.running_job([0, 1])
        stranger = job.start_learner(2, TOY_TRAIN_SAMPLES="251")
        self.assertEqual(stranger.exit_code(), 1)
        self.assertIn('trainSamples is "251", not "250"', stranger.termination()["message"])
        self.assert_completes(job, learners)

    def test_a_learner_whose_memory_changed_is_found_and_goes(self):
        job = self.make_job(environment={"PLIANT_TEST_SETTINGS": "checkStateEverySteps=20"})
        job.start_coordinator()
        # The bit flips just before the comparison, so that no step uses the wrong value.
        learners = [*job.start_learners([0, 1]), job.start_learner(2, TOY_FLIP_BIT_AT_STEP="59")]
        job.plan(learners)
        self.assertEqual(learners[2].exit_code(), 1)
        self.assertIn("its state at step 60 differs from that of the other learners",
                      learners[2].termination()["message"])
        for learner in learners[:2]:
            job.wait(f"{learner.name} says so", lambda: learner.logged("a learner's state differs"))
            self.assertEqual(learner.logged("a learner's state differs")[0]["learner"], "toy-2")
        self.assert_completes(job, learners[:2])

    def test_a_learner_whose_program_hangs_ends(self):
        job = self.make_job()
        job.start_coordinator()
        learners = [*job.start_learners([0, 1]),
                    job.start_learner(2, TOY_HANG_AT_STEP="20", PLIANT_STEP_TIMEOUT_SECONDS="3")]
        job.plan(learners)
        self.assertEqual(learners[2].exit_code(), 1, "a failure that may be tried again")
        termination = learners[2].termination()
        self.assertEqual(termination["reason"], "Failed")
        self.assertRegex(termination["message"],
                         r"^StepTimeout: its program has worked at shard \d of .*step \d+ for \d+ s")
        self.assert_completes(job, learners[:2])

    def test_a_learner_dies_among_those_that_share_memory(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="pliant-shared-"))
        job, learners = self.running_job([0, 1, 2], environment={"PLIANT_SHARED_MEMORY_DIR": folder})
        sockets = list(pathlib.Path(folder).iterdir())
        self.assertEqual(len(sockets), 3, "each meets the others there")
        learners[0].kill()
        job.wait_for_members(learners[1:])
        newcomer = job.start_learner(3)
        job.plan([(learners[0], "Ended"), learners[1], learners[2], newcomer])
        job.wait_for_members([*learners[1:], newcomer])
        self.assert_completes(job, [*learners[1:], newcomer])
        left = list(pathlib.Path(folder).iterdir())
        self.assertEqual(len(left), 1, "that of the killed one")

    def test_the_coordinator_dies_and_comes_back(self):
        job, learners = self.running_job([0, 1])
        before = job.progress()
        job.coordinator.kill()
        steps = [line["step"] for line in job.metric_lines()]
        job.wait("training continues without a coordinator",
                 lambda: any(line["step"] > max(steps, default=0) + 20 for line in job.metric_lines()))

        job.start_coordinator()
        job.wait_for_members(learners)
        newcomer = job.start_learner(2)
        job.plan([*learners, newcomer])
        after = job.wait_for_members([*learners, newcomer])
        self.assertGreater(self.membership(after), self.membership(before))
        self.assert_completes(job, [*learners, newcomer])

    def test_the_coordinator_dies_with_its_state(self):
        job, learners = self.running_job([0, 1])
        job.coordinator.kill()
        job.start_coordinator(term=2, state="another node")
        job.wait_for_members(learners)
        job.plan([learners[0], (learners[1], "Leaving")])
        self.assert_drained(learners[1])
        after = job.wait_for_members([learners[0]])
        self.assertEqual(self.membership(after)[0], 2, "a new term")
        self.assert_completes(job, [learners[0]])

    def test_all_learners_die_at_once(self):
        job, learners = self.running_job([0, 1])
        job.wait("there is a checkpoint", job.checkpoints)
        for learner in learners:
            learner.popen.kill()
        for learner in learners:
            learner.kill()
        checkpoint = job.checkpoints()[-1]

        resumed = job.start_learners([2, 3])
        job.plan([*[(learner, "Ended") for learner in learners], *resumed])
        job.wait_for_members(resumed)
        self.assert_resumed_at(resumed, int(checkpoint.split("-")[1]))
        self.assert_completes(job, resumed)

    def test_a_program_that_fails_says_why(self):
        job = self.make_job()
        job.start_coordinator()
        learner = job.start_learner(0, TOY_FAIL_AT_STEP="10")
        job.plan([learner])
        self.assertEqual(learner.exit_code(), 2)
        self.assertEqual(learner.termination()["reason"], "Failed")
        self.assertIn("told to fail", learner.termination()["message"])

    @staticmethod
    def membership(progress):
        term, counter = progress["membership"]["id"].split(".")
        return int(term), int(counter)


if __name__ == "__main__":
    unittest.main(verbosity=2)
