"""PyTorch programs on a GPU, in real processes: learners share the GPU, join and die, and the parameters equal those
of one learner alone."""

import pathlib
import sys
import unittest

from harness import ScenarioTest

PROGRAM = str(pathlib.Path(__file__).with_name("program.py"))


class GpuStory(ScenarioTest):
    def grow_and_kill(self, kind, epochs):
        job, learners = self.running_job(
            [0], program=[sys.executable, "-B", PROGRAM, kind], epochs=epochs, shard_milliseconds=100
        )
        for number in (1, 2):
            learners.append(job.start_learner(number))
            job.plan(learners)
            job.wait_for_members(learners)
        learners[0].kill()  # rank 0
        job.wait_for_members(learners[1:])
        self.report_pauses(job)
        self.assert_completes(job, learners[1:])
        for learner in learners[1:]:
            self.assertIn("done on ", learner.log.read_text())
        print(f"  {kind}: 1 -> 2 -> 3 learners, SIGKILL of rank 0, {learners[1].termination()['step']} steps; "
              f"parameters {learners[1].termination()['parametersSha256'][:16]} as alone", file=sys.stderr)

    def test_vision(self):
        self.grow_and_kill("vision", 20)

    def test_transformer(self):
        self.grow_and_kill("transformer", 12)

    def test_over_nccl(self):
        """NCCL takes the learners for different hosts, and so lets them share the GPU."""
        travels = "gradients travel from GPU to GPU"
        job = self.make_job(
            program=[sys.executable, "-B", PROGRAM, "vision"], epochs=20, shard_milliseconds=100,
            environment={"PLIANT_EXCHANGE": "Auto", "NCCL_SOCKET_IFNAME": "lo"},
        )
        job.start_coordinator()
        learners = []
        for number in range(3):
            learners.append(job.start_learner(number, NCCL_HOSTID=str(number)))
            job.plan(learners)
            job.wait_for_members(learners)
        job.wait("three learners to exchange by NCCL", lambda: learners[2].logged(travels))
        before = len(learners[1].logged(travels))
        learners[0].kill()
        job.wait_for_members(learners[1:])
        job.wait("two learners to exchange by NCCL", lambda: len(learners[1].logged(travels)) > before)
        self.report_pauses(job)
        self.assert_completes(job, learners[1:])

    def test_from_a_checkpoint(self):
        job, learners = self.running_job(
            [0, 1], program=[sys.executable, "-B", PROGRAM, "vision"], epochs=8, shard_milliseconds=100
        )
        job.plan([])
        for learner in learners:
            self.assert_drained(learner)
        resumed = job.start_learners([2])
        job.plan(resumed)
        job.wait_for_members(resumed)
        self.assert_resumed_at(resumed, learners[0].termination()["step"])
        self.assert_completes(job, resumed)


if __name__ == "__main__":
    unittest.main(verbosity=2)
