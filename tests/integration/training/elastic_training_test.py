#!/usr/bin/env python3
"""A training on real processes grows, shrinks and is disturbed, and ends with the bits of an undisturbed one.

Usage: elastic_training_test.py DIRECTORY-OF-THE-PROGRAMS
"""

import sys
import tempfile
import unittest
from pathlib import Path

from local_job import LocalJob, leave

_REPO = Path(__file__).resolve().parents[3]
_DEMO = _REPO / "manifests" / "demo"
_PROGRAMS = Path(sys.argv.pop(1)).resolve()

# Small enough for seconds, with batch norm, whose buffers are the first to tell a different order.
_MODEL = """
name: small
input: [1, 8, 8]
layers:
  - conv: {out: 8, kernel: 3, padding: 1}
  - batch_norm
  - relu
  - max_pool: {kernel: 2}
  - flatten
  - linear: {out: 10}
train: {epochs: 60, learningRate: 0.05, momentum: 0.9, weightDecay: 0.0005}
data: {kind: digits, train: digits-train.csv, test: digits-test.csv}
"""


class ElasticTrainingTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="pliant-")
        self.addCleanup(scratch.cleanup)
        self._directory = Path(scratch.name)
        (self._directory / "model.yaml").write_text(_MODEL)

    def job(self, *arguments: str) -> LocalJob:
        model = ["--model", str(self._directory / "model.yaml"), "--data", str(_DEMO)]
        return LocalJob(_PROGRAMS, self._directory, [*model, *arguments], seed=7)

    def complete(self, job: LocalJob, names: list[str]) -> None:
        """These learners end the training, and agree with the run alone to the last bit."""
        for name in names:
            self.assertEqual(job.learners[name].wait(timeout=300), 0, name)
        alone = job.parameters_of_run_alone()
        self.assertEqual(len(alone), 64)
        for name in names:
            words = job.last_words(name)
            self.assertEqual((words["reason"], words["parametersSha256"]), ("Completed", alone), name)

    def test_grows_and_shrinks_without_a_trace(self) -> None:
        with self.job() as job:
            job.start_coordinator()
            job.start_learner("a")
            job.plan(["a"])
            job.wait_for_members("a", step=5)
            for name in ("b", "c"):
                job.start_learner(name)
            job.plan(["a", "b", "c"])
            step = job.wait_for_members("a", "b", "c")["step"]
            job.wait_for_members("a", "b", "c", step=step + 5)
            job.plan(["a", "c"])
            step = job.wait_for_members("a", "c")["step"]
            self.assertEqual(job.learners["b"].wait(timeout=60), 0)
            self.assertEqual(job.last_words("b")["reason"], "Drained")
            # The first one goes as a drained node would make it.
            self.assertEqual(leave(job.learners["a"]), 0)
            progress = job.wait_for_members("c", step=step)
            self.assertEqual([each["stepsLost"] for each in progress["resizes"]], [0] * len(progress["resizes"]))
            self.complete(job, ["c"])

    def test_survives_a_killed_learner_and_a_killed_coordinator(self) -> None:
        with self.job() as job:
            job.start_coordinator()
            for name in ("a", "b", "c"):
                job.start_learner(name)
            job.plan(["a", "b", "c"])
            job.wait_for_members("a", "b", "c", step=5)
            job.learners["a"].kill()
            job.learners["a"].wait()
            job.plan(["b", "c"], ended=["a"])
            step = job.wait_for_members("b", "c")["step"]
            job.kill_coordinator()
            job.start_coordinator()
            job.plan(["b", "c"])
            job.wait_for_members("b", "c", step=step + 5)
            self.complete(job, ["b", "c"])

    def test_resumes_from_a_checkpoint_when_all_learners_vanish(self) -> None:
        with self.job() as job:
            job.start_coordinator()
            for name in ("a", "b"):
                job.start_learner(name)
            job.plan(["a", "b"])
            saved = job.wait("a checkpoint is written", lambda each: (each.get("lastCheckpoint") or {}).get("step"))
            for name in ("a", "b"):
                job.learners[name].kill()
                job.learners[name].wait()
            for name in ("c", "d"):
                job.start_learner(name)
            job.plan(["c", "d"], ended=["a", "b"])
            job.wait_for_members("c", "d", step=saved["lastCheckpoint"]["step"])
            self.complete(job, ["c", "d"])

    def test_suspends_with_a_checkpoint_and_goes_on_from_there(self) -> None:
        with self.job() as job:
            job.start_coordinator()
            for name in ("a", "b"):
                job.start_learner(name)
            job.plan(["a", "b"])
            job.wait_for_members("a", "b", step=7)
            job.plan([])
            for name in ("a", "b"):
                self.assertEqual(job.learners[name].wait(timeout=60), 0)
            stopped = max(job.last_words(name)["step"] for name in ("a", "b"))
            job.start_learner("c")
            job.plan(["c"], ended=["a", "b"])
            self.assertGreaterEqual(job.wait_for_members("c")["step"], stopped)
            self.complete(job, ["c"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
