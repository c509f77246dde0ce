"""Learners of several ranks: processes that join and leave together. Nothing is lost, and the result is the same."""

import os
import pathlib
import signal
import unittest

from harness import ScenarioTest

TWO_RANKS = {"PLIANT_RANKS_PER_LEARNER": "2"}


class RanksTest(ScenarioTest):
    def test_grows_and_shrinks_by_whole_learners(self):
        job, learners = self.running_job([0], environment=TWO_RANKS)
        self.assert_ranks(job, [learners[0]])
        learners += job.start_learners([1, 2])
        job.plan(learners)
        job.wait_for_members(learners)
        self.assert_ranks(job, learners)
        self.assertEqual(job.progress()["resizes"][-1]["to"], 3, "learners are counted, not ranks")
        learners[1].terminate()
        self.assert_drained(learners[1])
        stay = [learners[0], learners[2]]
        job.wait_for_members(stay)
        self.report_pauses(job)
        self.assert_completes(job, stay)

    def test_a_rank_that_dies_takes_its_learner_with_it(self):
        job, learners = self.running_job([0, 1], environment=TWO_RANKS)
        os.kill(self.rank_processes(learners[0])[1], signal.SIGKILL)
        self.assertEqual(learners[0].exit_code(), 128 + signal.SIGKILL)
        job.wait_for_members([learners[1]])
        newcomer = job.start_learner(2)
        job.plan([(learners[0], "Ended"), learners[1], newcomer])
        job.wait_for_members([learners[1], newcomer])
        self.assert_ranks(job, [learners[1], newcomer])
        self.assert_completes(job, [learners[1], newcomer])

    def test_the_only_learner_saves_when_it_loses_a_rank(self):
        never_due = {"PLIANT_CHECKPOINT_EVERY_STEPS": "1000000"}
        job, learners = self.running_job([0], environment={**TWO_RANKS, **never_due})
        os.kill(self.rank_processes(learners[0])[0], signal.SIGKILL)
        self.assertEqual(learners[0].exit_code(), 128 + signal.SIGKILL)
        self.assertEqual(len(job.checkpoints()), 1, "written when it left")
        newcomer = job.start_learner(1)
        job.plan([(learners[0], "Ended"), newcomer])
        job.wait_for_members([newcomer])
        self.assert_completes(job, [newcomer])
        self.assertTrue(newcomer.logged("restored"))

    def test_ranks_do_not_outlive_their_launcher(self):
        job, learners = self.running_job([0, 1], environment=TWO_RANKS)
        ranks = self.rank_processes(learners[0])
        learners[0].kill()
        job.wait_for_members([learners[1]])
        for process in ranks:
            job.wait(f"{process} is gone", lambda: not self.lives(process))
        self.assert_completes(job, [learners[1]])

    @staticmethod
    def lives(process):
        try:
            status = pathlib.Path(f"/proc/{process}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return False
        return "State:\tZ" not in status  # the process that adopted it need not have noticed yet

    def rank_processes(self, learner):
        return [line["process"] for line in learner.logged("rank started")]

    def assert_ranks(self, job, learners):
        """Checks that the newest membership has both ranks of each of these learners."""
        line = next(line for line in reversed(learners[0].logged("entered")) if line["rank"] == 0)
        self.assertEqual(line["learners"], len(learners))
        ranks = {line["rank"] for learner in learners for line in learner.logged("entered")}
        self.assertEqual(ranks, set(range(2 * len(learners))))


if __name__ == "__main__":
    unittest.main(verbosity=2)
