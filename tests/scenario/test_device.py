"""Learners whose tensors and gradients are on a GPU, here the stand-in for its driver: they grow, crash and shrink, and
the bits are those of a learner on the host. The stand-in runs each learner's work in another order, and a race between
streams ends the learner."""

import os
import unittest

from harness import BIN, PATIENCE_SECONDS, ScenarioTest

PROGRAM = [str(BIN / "device-learner")]


class DeviceTest(ScenarioTest):
    environment = {}

    def start(self, job, numbers, **environment):
        return [job.start_learner(number, FAKE_CUDA_SEED=str(number), FAKE_NCCL_SEED=str(number), **environment)
                for number in numbers]

    def wait_for_rounds(self, job, learner):
        """Where gradients travel by NCCL: until they do."""

    def device_job(self, **options):
        """A job whose first learner trains."""
        driver = {"LD_LIBRARY_PATH": os.environ["FAKE_CUDA"]}
        job = self.make_job(program=PROGRAM, environment=driver | self.environment, **options)
        job.start_coordinator()
        learners = self.start(job, [1])
        job.plan(learners)
        job.wait_for_members(learners)
        job.wait_for_step(5)
        return job, learners

    def assert_bits_of_the_host(self, job, learners):
        self.assert_completes(job, learners)
        host = job.folder / "host"
        host.mkdir()
        alone = job.start_learner(99, DEVICE="host", PLIANT_COORDINATOR="", PLIANT_CHECKPOINT_DIR=str(host),
                                  PLIANT_PACE_FILE="")
        self.assertEqual(alone.popen.wait(PATIENCE_SECONDS), 0, alone.log)
        self.assertEqual({each.termination()["parametersSha256"] for each in learners},
                         {alone.termination()["parametersSha256"]})

    def test_grows_crashes_shrinks_and_grows(self):
        job, learners = self.device_job()
        learners += self.start(job, [2, 3, 4])
        job.plan(learners)
        job.wait_for_members(learners)
        self.wait_for_rounds(job, learners[0])
        learners[1].kill()
        job.wait_for_members([learners[0], *learners[2:]])
        job.plan([learners[2], learners[3]])
        self.assert_drained(learners[0])
        job.wait_for_members(learners[2:])
        step = job.progress()["step"]
        newcomers = self.start(job, [6])
        job.plan(learners[2:] + newcomers)
        job.wait_for_members(learners[2:] + newcomers)
        self.wait_for_rounds(job, newcomers[0])
        job.wait_for_step(step + 5)
        self.report_pauses(job)
        self.assert_bits_of_the_host(job, learners[2:] + newcomers)

    def test_suspended_and_resumed(self):
        job, learners = self.device_job()
        job.plan([])
        self.assert_drained(learners[0])
        step = learners[0].termination()["step"]
        resumed = self.start(job, [2, 3])
        job.plan(resumed)
        job.wait_for_members(resumed)
        self.assert_resumed_at(resumed, step)
        self.assert_bits_of_the_host(job, resumed)


    def test_data_that_depend_on_the_process(self):
        """The learners compute a shard twice after their first step together, and find that the results differ."""
        job, learners = self.device_job()
        learners += self.start(job, [2], DEVICE_ERROR="1")
        job.plan(learners)
        for learner in learners:
            self.assertEqual(learner.exit_code(), 2, "a failure that is not tried again")
            self.assertRegex(learner.termination()["message"], r"shard \d of step \d+ .* has another result on")


class NcclTest(DeviceTest):
    """Their gradients travel over NCCL, here its stand-in. Each learner dies once in each state of a communicator."""

    environment = {"PLIANT_EXCHANGE": "Auto", "PLIANT_TEST_SETTINGS": "bucketBytes=4096"}
    TRAVELS = "gradients travel from GPU to GPU"

    def wait_for_rounds(self, job, learner, times=1):
        job.wait(f"{learner.name} to exchange by NCCL, time {times}", lambda: self.rounds(learner) >= times)

    def rounds(self, learner):
        return len(learner.logged(self.TRAVELS))

    def test_a_crash_in_each_state(self):
        job, learners = self.device_job()
        learners += self.start(job, [2])
        job.plan(learners)
        for number, (state, times) in enumerate({"creating": 0, "warming": 0, "round": 5, "aborting": 0}.items()):
            with self.subTest(state):
                before = [self.rounds(each) for each in learners]
                victim = self.start(job, [3 + number], FAKE_NCCL_DIES=state, FAKE_NCCL_DIES_AT=str(times))[0]
                job.plan([*learners, victim])
                if state == "aborting":
                    job.wait_for_members([*learners, victim])
                    self.wait_for_rounds(job, victim)
                    job.plan(learners)
                job.wait(f"{victim.name} to die", lambda: victim.popen.poll() is not None)
                self.assertEqual(victim.popen.returncode, -9, victim.log)
                job.plan(learners)
                job.wait_for_members(learners)
                for each, times_before in zip(learners, before):
                    self.wait_for_rounds(job, each, times_before + 1)
        self.report_pauses(job)
        self.assert_bits_of_the_host(job, learners)

    def test_statistical(self):
        """NCCL adds, in any order: all learners still have the same model."""
        self.environment = {**self.environment, "PLIANT_REPRODUCIBILITY": "Statistical"}
        job, learners = self.device_job()
        learners += self.start(job, [2, 3])
        job.plan(learners)
        job.wait_for_members(learners)
        self.wait_for_rounds(job, learners[0])
        job.let_go()
        self.assertEqual([each.exit_code() for each in learners], [0, 0, 0])
        self.assertEqual(len({each.termination()["parametersSha256"] for each in learners}), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
