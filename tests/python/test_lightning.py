"""The page on Lightning: its script trains, alone and on learners that join and die."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from harness import ScenarioTest
from pages import script_of


class LightningTest(ScenarioTest):
    def test_the_script_of_the_page_is_elastic(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        script = pathlib.Path(folder.name, "train.py")
        text = script_of("lightning")
        script.write_text(text)
        ran = subprocess.run(
            [sys.executable, "-B", script], cwd=folder.name, capture_output=True, text=True, timeout=300
        )  # fmt: skip
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("40 steps; the model is in", ran.stdout)
        # The batch and the shards are the job's.
        longer = text.replace("epochs=5", "epochs=12").replace("    batch_size=64,\n    logical_shards=4,\n", "")
        self.assertNotEqual(longer, text)
        script.write_text(longer)
        job, learners = self.running_job([0], program=[sys.executable, "-B", str(script)], shard_milliseconds=100)
        learners += job.start_learners([1, 2])
        self.assert_outlives_the_first(job, learners)


if __name__ == "__main__":
    unittest.main(verbosity=2)
