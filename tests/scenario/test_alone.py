"""The native learner run by hand: its output, and its messages about wrong files."""

import json
import os
import pathlib
import pty
import struct
import subprocess
import tempfile
import unittest

from harness import BIN

DEMO = pathlib.Path(__file__).resolve().parents[2] / "manifests" / "demo"

MODEL = """
name: tiny
input: {input}
layers: [flatten, linear: {{out: 10}}]
train: {{epochs: {epochs}, batchSize: 32, learningRate: 0.01}}
data: {data}
"""
DIGITS = f"{{kind: digits, train: {DEMO}/digits-train.csv, test: {DEMO}/digits-test.csv}}"


def idx(dimensions, values):
    return struct.pack(f">I{len(dimensions)}I", 0x800 + len(dimensions), *dimensions) + bytes(values)


class AloneTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pliant-alone-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def command(self, *, data=DIGITS, shape="[1, 8, 8]", epochs=1):
        model = self.folder / "model.yaml"
        model.write_text(MODEL.format(input=shape, epochs=epochs, data=data))
        return [str(BIN / "pliant-learner"), f"--model={model}", f"--checkpoint-dir={self.folder}/out",
                "--progress-seconds=1"]

    def run_logged(self, command):
        """The exit code and the log of the command."""
        ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120)
        return ended.returncode, [json.loads(line) for line in ended.stderr.splitlines()]

    def assert_refused(self, command, message):
        code, log = self.run_logged(command)
        self.assertEqual(code, 2)
        self.assertEqual((log[-1]["message"], log[-1]["reason"]), ("learner ends", "Failed"))
        self.assertIn(message, log[-1]["cause"])

    def test_progress_is_logged_where_there_is_no_terminal(self):
        code, log = self.run_logged(self.command(epochs=3))
        self.assertEqual(code, 0)
        progress = [line for line in log if line["message"] == "progress"]
        self.assertGreaterEqual(len(progress), 1)
        self.assertGreater(progress[0]["step"], 0)
        self.assertIn("loss", progress[0])

    def test_progress_is_one_line_at_a_terminal(self):
        reader, terminal = pty.openpty()
        learner = subprocess.Popen(self.command(epochs=3), stderr=terminal)
        os.close(terminal)
        shown = b""
        while True:
            try:
                part = os.read(reader, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        os.close(reader)
        self.assertEqual(learner.wait(120), 0)
        erase = b"\r\x1b[K"
        lines = [part.split(b"\n")[-1] for part in shown.split(erase)]
        self.assertTrue(any(line.startswith(b"epoch 3/3  step 135/135  [====") for line in lines), shown)
        self.assertTrue(shown.endswith(erase), "it leaves no half line behind")

    def test_idx_files_train(self):
        (self.folder / "images").write_bytes(idx([64, 4, 4], [i * 7 % 256 for i in range(64 * 16)]))
        (self.folder / "labels").write_bytes(idx([64], [i % 10 for i in range(64)]))
        data = "{kind: idx, train: {images: images, labels: labels}, test: {images: images, labels: labels}}"
        code, log = self.run_logged(self.command(data=data, shape="[1, 4, 4]"))
        self.assertEqual((code, log[-1]["reason"]), (0, "Completed"))
        self.assert_refused(self.command(data=data, shape="[1, 4, 5]"),
                            "input: the images are 1x4x4, but the model takes 1x4x5")

    def test_wrong_files_are_named(self):
        data = "{kind: cifar10, train: train.bin, test: train.bin}"
        self.assert_refused(self.command(data=data, shape="[3, 32, 32]"), "train.bin: No such file")
        (self.folder / "train.bin").write_bytes(bytes(3072))
        self.assert_refused(self.command(data=data, shape="[3, 32, 32]"), "offset 3072: the file ends within image 0")
        self.assert_refused(self.command(data=data.replace("cifar10", "cifar")), "model.yaml:6:14: data: kind: ")


if __name__ == "__main__":
    unittest.main()
