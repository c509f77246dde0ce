"""Scripts that fail: the message that the job's owner reads, and the exit code."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = str(pathlib.Path(__file__).with_name("program.py"))


class Run:
    def __init__(self, folder, fault):
        self.termination = folder / f"{fault}.termination"
        self.log = folder / f"{fault}.log"
        environment = {
            **os.environ,
            "PLIANT_CHECKPOINT_DIR": str(folder / fault),
            "PLIANT_TERMINATION_LOG": str(self.termination),
            "PLIANT_GLOBAL_BATCH_SIZE": "" if fault == "divide" else "32",
            "TOY_EPOCHS": "1",
            "TOY_WORKERS": "1" if fault == "data" else "0",
        }
        with open(self.log, "w") as log:
            command = [sys.executable, "-B", PROGRAM, "cnn", fault]
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)


# fault → exit code, text in the termination message, text in the log
CASES = {
    "exception": (
        1,
        "ValueError: the third step is a bad one (",
        "Traceback (most recent call last)",
    ),
    "data": (1, "loading data failed: KeyError: 'sample 77 has no label' (", "in __getitem__"),
    "nan": (2, "step 3 cannot be taken, its loss is nan", "Traceback"),
    "skip": (0, "all steps done", "step 3 is skipped because its loss is nan"),
    # NaN parameters give NaN losses: the training continues to the end.
    "warn": (0, "all steps done", "step 3 is taken although its loss is nan"),
    "typo": (2, "on_nonfinite is 'typo': it must be 'stop' or 'skip' or 'warn'", "Traceback"),
    "own step": (2, "the loop calls optimizer.step(): step.commit() takes", "program.py"),
    "meta": (2, "is on the device meta", "Traceback"),
    "iterable": (2, "have no __len__: samples are assigned to learners by their index", "Traceback"),
    "divide": (2, "30 is not a positive multiple of logicalShards (8)", "Traceback"),
}


class BadInputTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-bad-input-")
        cls.addClassCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        cls.runs = {fault: Run(folder, fault) for fault in CASES}

    @classmethod
    def tearDownClass(cls):
        for run in cls.runs.values():
            run.process.kill()
            run.process.wait()

    def check(self, fault):
        run = self.runs[fault]
        code, message, logged = CASES[fault]
        actual = run.process.wait(180)
        log = run.log.read_text()
        self.assertEqual(actual, code, log)
        self.assertIn(message, json.loads(run.termination.read_text())["message"])
        self.assertIn(logged, log)


for _fault in CASES:
    setattr(BadInputTest, f"test_{_fault}", lambda self, fault=_fault: self.check(fault))


if __name__ == "__main__":
    unittest.main(verbosity=2)
