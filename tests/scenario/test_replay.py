"""Recomputes a job's steps alone, from one of its checkpoints: the job's later checkpoints must have the same bits."""

import pathlib
import subprocess
import tempfile
import unittest

from harness import UID, ScenarioTest

_STEPS = 56  # in seven epochs


class ReplayTest(ScenarioTest):
    def trained(self, **environment):
        """The folder of a job that one learner trained alone, with checkpoints of steps 20 and 40."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="pliant-replay-")))
        # Slow enough to write a checkpoint before the next one is due.
        job = self.make_job(epochs=7, shard_milliseconds=3)
        settings = {
            **job.training(),
            "PLIANT_CHECKPOINT_DIR": str(folder),
            "PLIANT_CHECKPOINT_EVERY_STEPS": "20",
            "PLIANT_CHECKPOINT_KEEP": "10",
        }
        code, log = self.run_program(job, {**settings, **environment})
        self.assertEqual(code, 0, log)
        return job, settings

    def run_program(self, job, environment):
        ended = subprocess.run(job.program, env=environment, capture_output=True, text=True, timeout=60)
        return ended.returncode, ended.stderr

    def replay(self, job, settings, steps):
        files = self.files(settings)
        code, log = self.run_program(job, {**settings, "PLIANT_VERIFY_REPLAY": steps})
        self.assertEqual(self.files(settings), files, "the volume is only read")
        return code, log

    def files(self, settings):
        root = pathlib.Path(settings["PLIANT_CHECKPOINT_DIR"])
        return {path: path.stat().st_mtime_ns for path in root.rglob("*")}

    def test_the_same_bits(self):
        job, settings = self.trained()
        for steps, compared in (("20", ["40", f"{_STEPS}"]), ("20-40", ["40"]), ("40", [f"{_STEPS}"])):
            code, log = self.replay(job, settings, steps)
            self.assertEqual(code, 0, log)
            again = [line for line in log.splitlines() if "computed again, with the same bits" in line]
            self.assertEqual([line.partition('"step":')[2].strip("}") for line in again], compared)

    def test_a_lost_bit_is_found(self):
        job, settings = self.trained(TOY_FLIP_BIT_AT_STEP="30")
        code, log = self.replay(job, settings, "20")
        self.assertEqual(code, 1, log)
        self.assertRegex(log, r"step-0+40-t\d+-m0\.1: .*model.weight differs in \d+ of its elements")
        code, log = self.replay(job, settings, "40")
        self.assertEqual(code, 0, "what follows is computed from it: " + log)

    def test_a_final_model_that_differs_is_found(self):
        job, settings = self.trained(TOY_FLIP_BIT_AT_STEP="45")
        code, log = self.replay(job, settings, "20")
        self.assertEqual(code, 1, log)
        self.assertIn("the final model differs", log)

    def test_a_replay_without_a_comparison_says_why(self):
        job, settings = self.trained()
        wrong = [
            ("30", {}, "no checkpoint of step 30", 2),
            ("40-50", {}, "no later checkpoint than that of step 40", 2),
            ("x", {}, "no range of steps", 2),
            ("20", {"PLIANT_SEED": "12"}, "seed", 2),
            ("20", {"PLIANT_REPRODUCIBILITY": "Statistical"}, "bitwise", 2),
        ]
        for steps, more, message, expected in wrong:
            with self.subTest(steps, **more):
                code, log = self.replay(job, settings | more, steps)
                self.assertEqual(code, expected, log)
                self.assertIn(message, log)

    def test_a_job_of_several_learners_is_replayed(self):
        job, learners = self.running_job([0, 1, 2], epochs=20, shard_milliseconds=60,
                                         environment={"PLIANT_CHECKPOINT_KEEP": "20"})
        learners[0].kill()
        self.assert_completes(job, learners[1:])
        steps = sorted(int(name.split("-")[1]) for name in job.checkpoints())
        code, log = self.replay(job, job.training() | {"PLIANT_JOB_UID": UID}, str(steps[0]))
        self.assertEqual(code, 0, log)
        self.assertEqual(log.count("computed again, with the same bits"), len(steps))


if __name__ == "__main__":
    unittest.main(verbosity=2)
