"""The examples run as a user runs them, smaller; and what scripts for the old product meet."""

import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


class ExamplesTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-examples-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def run_example(self, name, *arguments):
        environment = {**os.environ, "PLIANT_CHECKPOINT_DIR": str(self.folder / "checkpoints"),
                       "RESULT_DIR": str(self.folder / "results")}  # fmt: skip
        command = [sys.executable, "-B", str(EXAMPLES / name / "train.py"), *arguments]
        ended = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout, ended.stderr

    def test_resnet18(self):
        data = self.folder / "cifar"
        data.mkdir()
        for file in ("data_batch_1.bin", "test_batch.bin"):
            (data / file).write_bytes(
                b"".join(struct.pack("B", i % 10) + bytes([i * 20] * 3072) for i in range(8))
            )
        out, _ = self.run_example("resnet18", f"--data={data}", "--epochs=1", "--batch-size=8")
        self.assertIn("'kind': 'test'", out)

    def test_char_transformer(self):
        text = self.folder / "text"
        text.write_text("abcdefg hijklm " * 200)
        size = ["--epochs=4", "--batch-size=16", "--length=16", "--width=32", "--layers=1"]
        out, _ = self.run_example("char_transformer", f"--text={text}", *size)
        losses = [float(loss) for loss in re.findall(r"'kind': 'test'.*?'loss': ([\d.]+)", out)]
        self.assertEqual(len(losses), 4)
        self.assertLess(losses[-1], losses[0])

    def test_ibm_style(self):
        out, log = self.run_example("ibm_style", "--epochs=3", "--unknown-argument=1")
        self.assertRegex(out, r"train batch 39: loss [\d.]+, accuracy \d+\.\d %")
        self.assertRegex(out, r"test batch 39: loss [\d.]+, accuracy 9\d\.\d %|accuracy 100\.0 %")
        self.assertIn("the argument enable_onnx is not used", log)
        self.assertTrue((self.folder / "results" / "model" / "model.pt").exists())
        final = self.folder / "checkpoints" / "local" / "final" / "manifest.json"
        self.assertIn("framework", json.loads(final.read_text()))


class LoggersTest(unittest.TestCase):
    def test_both_signatures_are_served(self):
        from pliant.fabric import _LoggerAdapter

        heard = []

        class Old:
            def log_train_metrics(self, loss, acc, completed_batch, worker=0):
                heard.append(("train", loss, acc, completed_batch))

            def log_test_metrics(self, loss, acc, completed_batch, worker=0):
                heard.append(("test", loss, acc, completed_batch))

        class New:
            def on_train_begin(self):
                heard.append("begin")

            def log_train_metrics(self, metrics, iteration, epoch, workers):
                heard.append(("train", metrics, iteration, epoch, workers))

            def log_test_metrics(self, metrics, iteration, epoch):
                heard.append(("test", metrics, iteration, epoch))

        train = {
            "kind": "train",
            "loss": 0.5,
            "accuracy": 0.25,
            "step": 7,
            "epoch": 1,
            "learners": 3,
        }
        test = {"kind": "test", "loss": 0.4, "accuracy": 0.5, "step": 8, "epoch": 1}
        for logger in (Old(), New()):
            adapter = _LoggerAdapter(logger)
            adapter.pass_on(train)
            adapter.pass_on(test)
        self.assertEqual(heard, [
            ("train", 0.5, 25.0, 7), ("test", 0.4, 50.0, 8), "begin",
            ("train", {"loss": 0.5, "accuracy": 0.25}, 7, 1, 3), ("test", {"loss": 0.4, "accuracy": 0.5}, 8, 1),
        ])  # fmt: skip

    def test_both_modules_have_the_class(self):
        import fabric_model
        import pliant
        import pyedt.fabric_model

        self.assertIs(fabric_model.FabricModel, pliant.FabricModel)
        self.assertIs(pyedt.fabric_model.FabricModel, pliant.FabricModel)


class DoctorTest(unittest.TestCase):
    def run_doctor(self, **environment):
        command = [sys.executable, "-B", "-m", "pliant", "doctor"]
        return subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120
        )

    def test_a_machine_that_works(self):
        ended = self.run_doctor()
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertIn("ok      training  3 steps alone", ended.stdout)

    def test_a_missing_library_is_named(self):
        ended = self.run_doctor(PLIANT_LIBRARY="/nowhere/libpliant.so")
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stdout, "FAILED  library .*/nowhere/libpliant.so")
        self.assertIn("FAILED  training", ended.stdout, "and the other checks are made")


if __name__ == "__main__":
    unittest.main(verbosity=2)
