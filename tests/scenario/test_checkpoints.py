"""The checkpoint volume: where a job starts, what it keeps, and how people inspect it."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from harness import BIN, PATIENCE_SECONDS, UID, ScenarioTest, write_pace


class CheckpointsTest(unittest.TestCase):
    """Learners alone: the same program and the same folder as in a cluster."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pliant-checkpoints-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def train(self, name, *, epochs, want_code=0, **environment):
        """Trains in a folder of its own. Returns the termination message."""
        message = self.folder / f"{name}.json"
        pace = self.folder / "pace"
        write_pace(pace, 1)  # slow enough to write a checkpoint before the next one is due
        ended = subprocess.run(
            [str(BIN / "toy-learner")], stderr=subprocess.PIPE, text=True, timeout=PATIENCE_SECONDS,
            env={**os.environ, "PLIANT_CHECKPOINT_DIR": str(self.folder / name), "PLIANT_TERMINATION_LOG": str(message),
                 "PLIANT_CHECKPOINT_EVERY_STEPS": "3", "PLIANT_CHECKPOINT_KEEP": "2", "TOY_EPOCHS": str(epochs),
                 "PLIANT_PACE_FILE": str(pace), "PLIANT_LOGICAL_SHARDS": "8", **environment})
        self.assertEqual(ended.returncode, want_code, ended.stderr)
        self.log = [json.loads(line) for line in ended.stderr.splitlines()]
        return json.loads(message.read_text())

    def checkpoints(self, name):
        return sorted(path for path in (self.folder / name / "local").iterdir() if path.name.startswith("step-"))

    def tool(self, *arguments, want_code=0):
        ended = subprocess.run([str(BIN / "pliant-checkpoint"), *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(ended.returncode, want_code, ended.stdout + ended.stderr)
        return ended.stdout

    def test_a_job_continues_from_anothers_checkpoint(self):
        whole = self.train("whole", epochs=6)
        self.train("first", epochs=2)
        self.assertEqual(len(self.checkpoints("first")), 2, "spec.checkpoint.keep")
        newest = self.checkpoints("first")[-1]
        for name, source in [("relative", "../first/local"), ("checkpoint", str(newest))]:
            with self.subTest(name):
                went_on = self.train(name, epochs=6, PLIANT_RESUME_FROM=source)
                self.assertEqual(went_on["parametersSha256"], whole["parametersSha256"])
                restored = [line["step"] for line in self.log if line["message"] == "restored"]
                self.assertEqual(restored, [int(newest.name.split("-")[1])])

    def test_a_checkpoint_of_another_training_is_refused(self):
        self.train("first", epochs=2)
        source = str(self.folder / "first" / "local")
        for name, settings, want in [
            ("seed", {"PLIANT_SEED": "8"}, "written with seed 7; this job has seed 8"),
            ("data", {"TOY_TRAIN_SAMPLES": "251"}, "written with trainSamples 250; this job has trainSamples 251"),
            ("nothing", {"PLIANT_RESUME_FROM": "../none"}, "none: there is no checkpoint"),
        ]:
            with self.subTest(name):
                ended = self.train(name, epochs=4, want_code=2, **{"PLIANT_RESUME_FROM": source, **settings})
                self.assertEqual(ended["reason"], "Failed")
                self.assertIn("resume from ", ended["message"])
                self.assertIn(want, ended["message"])

    def test_its_own_checkpoint_comes_before_anothers(self):
        whole = self.train("whole", epochs=6)
        self.train("first", epochs=2)
        own = self.train("own", epochs=4)
        self.assertNotEqual(own["parametersSha256"], whole["parametersSha256"])
        for path in (self.folder / "own" / "local" / "final").iterdir():
            path.unlink()
        source = str(self.folder / "first" / "local")
        self.assertEqual(self.train("own", epochs=6, PLIANT_RESUME_FROM=source)["parametersSha256"],
                         whole["parametersSha256"])
        restored = [line["step"] for line in self.log if line["message"] == "restored"]
        self.assertGreater(restored[0], int(self.checkpoints("first")[-1].name.split("-")[1]))

    def test_the_tool_reads_what_a_learner_writes(self):
        ended = self.train("job", epochs=2)
        folder = self.folder / "job"
        found = json.loads(self.tool("verify", folder, "--json"))
        self.assertEqual([one["state"] for one in found], ["verified"] * 3)
        self.assertEqual(found[0]["parametersSha256"], ended["parametersSha256"])
        self.tool("export", folder, self.folder / "model.safetensors")
        self.assertEqual((self.folder / "model.safetensors").read_bytes(),
                         (folder / "local" / "final" / "model.safetensors").read_bytes())
        newest = self.checkpoints("job")[-1]
        (newest / "model-00001-of-00001.safetensors").write_bytes(b"")
        self.assertIn("a file is missing or cut", self.tool("verify", folder, want_code=1))


class SlicesTest(ScenarioTest):
    """Rank 0 reads a checkpoint that several learners wrote; the others get the state from it."""

    def suspended_job(self):
        """A suspended job with a checkpoint of three slices, and that checkpoint's step."""
        job, learners = self.running_job([0, 1, 2], environment={"PLIANT_TEST_SETTINGS": "checkpointSliceBytes=1"})
        job.wait_for_step(25)  # there is an earlier checkpoint, of step 20
        job.plan([])
        for learner in learners:
            self.assert_drained(learner)
        return job, max(learner.termination()["step"] for learner in learners)

    def is_ready(self, job, learner):
        return any(line["learner"].startswith(learner.name) for line in job.coordinator.logged("learner is ready"))

    def resume(self, job):
        learners = job.start_learners([3, 4, 5])
        # On a busy machine learners become ready one after another and would not start together.
        job.wait("all are ready", lambda: all(self.is_ready(job, learner) for learner in learners))
        job.plan(learners)
        job.wait_for_members(learners)
        return learners

    def test_one_reads_it_and_the_others_catch_up(self):
        job, step = self.suspended_job()
        learners = self.resume(job)
        self.assert_resumed_at(learners, step)
        restored = [line["step"] for learner in learners for line in learner.logged("restored")]
        self.assertEqual(restored, [step])
        self.assert_completes(job, learners)

    def test_a_damaged_slice_is_reported_and_an_older_checkpoint_taken(self):
        job, step = self.suspended_job()
        newest = max((job.folder / "checkpoints" / UID).glob("step-*"))
        content = bytearray((newest / "optimizer-00002-of-00003.safetensors").read_bytes())
        content[-1] ^= 1
        (newest / "optimizer-00002-of-00003.safetensors").write_bytes(content)
        learners = self.resume(job)
        restored = [line["step"] for learner in learners for line in learner.logged("restored")]
        self.assertEqual(len(restored), 1)
        self.assertLess(restored[0], step)
        told = [line["reason"] for learner in learners
                for line in learner.logged("checkpoint does not verify, taking an older one")]
        self.assertTrue(told and all("optimizer-00002-of-00003" in cause for cause in told), told)
        job.let_go()
        for learner in learners:
            self.assertEqual(learner.exit_code(), 0, learner.log)


if __name__ == "__main__":
    unittest.main(verbosity=2)
