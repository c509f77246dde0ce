"""A learner written in C with pliant.h gets the same bits alone, with others, after crashes and from checkpoints."""

import unittest

from harness import BIN, ScenarioTest

PROGRAM = [str(BIN / "c-learner")]


class CInterfaceTest(ScenarioTest):
    def test_grows_crashes_and_shrinks(self):
        job, learners = self.running_job([0], program=PROGRAM)
        learners += job.start_learners([1, 2])
        job.plan(learners)
        job.wait_for_members(learners)
        learners[0].kill()
        job.wait_for_members(learners[1:])
        learners[1].terminate()
        self.assert_drained(learners[1])
        self.assert_completes(job, learners[2:])

    def test_suspended_and_resumed(self):
        job, learners = self.running_job([0, 1], program=PROGRAM)
        job.plan([])
        for learner in learners:
            self.assert_drained(learner)
        step = max(learner.termination()["step"] for learner in learners)
        resumed = job.start_learners([2, 3])
        job.plan(resumed)
        job.wait_for_members(resumed)
        self.assert_resumed_at(resumed, step)
        self.assert_completes(job, resumed)

    def test_a_program_that_fails_says_why(self):
        job = self.make_job(program=PROGRAM)
        job.start_coordinator()
        learner = job.start_learner(0, TOY_FAIL_AT_STEP="10")
        job.plan([learner])
        self.assertEqual(learner.exit_code(), 2)
        self.assertEqual(learner.termination()["reason"], "Failed")
        self.assertEqual(learner.termination()["message"], "told to fail")


if __name__ == "__main__":
    unittest.main(verbosity=2)
