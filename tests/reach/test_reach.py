"""Public scripts with few added lines: on 1, 3 and 2 learners with a SIGKILL the bits are those of one learner alone. The
last line of each says how many lines were added, how long it took, and whether the bits are equal.

PLIANT_REACH_SCRIPTS is the folder of the fetched scripts, and of reach.py with further ones. Without it those of packages
run; with "fetch" all."""

import importlib.util
import json
import os
import pathlib
import runpy
import sys
import tempfile
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "scenario"))
from harness import ScenarioTest
from scripts import SCRIPTS, apply, fetch

RUN = str(pathlib.Path(__file__).with_name("run_script.py"))
FETCHED = os.environ.get("PLIANT_REACH_SCRIPTS", "")


class ReachTest(ScenarioTest):
    def reach(self, name):
        script = SCRIPTS[name]
        if not script.of_package and not FETCHED:
            self.skipTest("its source is not a package: give PLIANT_REACH_SCRIPTS")
        if importlib.util.find_spec(script.library) is None:
            self.skipTest(f"it runs where {script.library} is installed")
        scratch = tempfile.TemporaryDirectory(prefix="pliant-reach-")
        self.addCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        fetched = fetch(script, None if FETCHED in ("", "fetch") else pathlib.Path(FETCHED))
        main = next(iter(fetched))
        for path, text in fetched.items():
            own = "script.py" if path == main else pathlib.Path(path).name
            (folder / own).write_text(apply(script.edits, text) if path == main else text)
        script.make_data(folder)
        began = time.monotonic()
        row = {"script": name, "added lines": script.added_lines, "bits": "differ"}
        try:
            self.three_sizes(script, folder)
            row["bits"] = "equal"
        finally:
            row["seconds"] = round(time.monotonic() - began)
            print(json.dumps(row), file=sys.stderr)

    def three_sizes(self, script, folder):
        job, learners = self.running_job(
            [0],
            program=[sys.executable, "-B", RUN, str(folder), *script.arguments],
            shard_milliseconds=250,
            environment={
                "HF_HUB_OFFLINE": "1",
                "HF_HOME": str(folder / "cache"),
                "PLIANT_GLOBAL_BATCH_SIZE": str(script.samples),
                "PLIANT_LOGICAL_SHARDS": str(script.shards),
            },
        )
        learners += job.start_learners([1, 2])
        self.assert_outlives_the_first(job, learners)


_FURTHER = pathlib.Path(FETCHED, "reach.py")
if FETCHED and _FURTHER.exists():
    SCRIPTS |= runpy.run_path(str(_FURTHER))["SCRIPTS"]

for _name in SCRIPTS:
    setattr(ReachTest, f"test_{_name.replace(' ', '_')}", lambda self, name=_name: self.reach(name))


if __name__ == "__main__":
    unittest.main(verbosity=2)
