"""Checks that every bench runs quickly and gives its rows, but not any speed.

smoke_test.py BINARIES
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

_HERE = Path(__file__).parent
_PATH = f"{_HERE}:{_HERE.parents[2] / 'trainer' / 'python'}"
_BINARIES = sys.argv.pop(1)
# Rows that a quick run must have, among others.
_ROWS = {
    "plan": ["plan/4096-shards/1024/made", "plan/4096-shards/1024/a-host-each/first-tick"],
    "all-reduce": [f"all-reduce/2/{kind}/1MiB" for kind in ("plain", "tls", "shm")],
    "resize": ["resize/1->2/alone", "resize/2->1/alone"],
    "step": ["step/transformer/1", "step/transformer/2"],
    "package": ["python/import", "python/attach", "python/lines/char_transformer"],
    "registered": ["registered/1M/none", "registered/1M/computed"],
    "kill": [
        f"kill/{where}/{what}"
        for where in ("reduction", "computing")
        for what in ("next-step", "detection", "pause", "shards-too-many")
    ],
    "checkpoint": ["checkpoint/step", "checkpoint/extra", "checkpoint/pause", "checkpoint/longest"],
    "noise-scale": ["noise-scale/transformer/measured", "noise-scale/transformer/control"],
    "batch": ["batch/cnn/accuracy", "batch/cnn/loss/difference", "batch/cnn/steps"],
    "goodput": ["goodput/lost", "goodput/start-cpu", "goodput/hashes-different"],
}

# Prints the number of parameters of each model, after checking that its loss is finite.
_LOSSES = """
import json
import math
from torch.utils.data import default_collate
import workloads
found = {}
for name in workloads.SIZES:
    made = workloads.make(name)
    shard = default_collate([made.data[i] for i in range(made.batch // made.shards)])
    assert math.isfinite(made.loss(made.model, shard).item()), name
    found[name] = sum(parameter.numel() for parameter in made.model.parameters())
print(json.dumps(found))
"""


@unittest.skipUnless(importlib.util.find_spec("torch"), "without torch there is nothing to train")
class SmokeTest(unittest.TestCase):
    def test_rows(self) -> None:
        for bench, expected in _ROWS.items():
            with self.subTest(bench), tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "rows.json"
                command = [_HERE / "run.py", _BINARIES, "--quick", "--json", path, "--only", bench]
                ended = subprocess.run(
                    [sys.executable, "-B", *map(str, command)],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    check=False,
                )
                self.assertEqual(ended.returncode, 0, ended.stdout)
                rows = {row["name"]: row for row in json.loads(path.read_text())}
                self.assertLessEqual(set(expected), rows.keys())
                for row in rows.values():
                    self.assertGreaterEqual(row.keys(), {"name", "value", "unit"})

    def test_each_workload_has_a_loss(self) -> None:
        """Computes a shard of each model, including those that a quick run leaves out."""
        made = subprocess.run(
            [sys.executable, "-B", "-c", _LOSSES],
            env={**os.environ, "PYTHONPATH": _PATH},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        parameters = json.loads(made.stdout)
        self.assertEqual(parameters["resnet18"], 11_173_962, "the whole one")
        self.assertLess(parameters["cnn"], 1_000_000)

    def test_the_plain_versions_train(self) -> None:
        """Runs the plain scripts with whose lines the examples are compared."""
        with tempfile.TemporaryDirectory() as folder:
            text = Path(folder) / "text"
            text.write_text("abcdefg hijklm " * 100)
            size = [f"--text={text}", "--epochs=1", "--length=16", "--width=32", "--layers=1"]
            ended = subprocess.run(
                [sys.executable, "-B", str(_HERE / "plain" / "char_transformer.py"), *size],
                env={**os.environ, "PYTHONPATH": _PATH},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        self.assertRegex(ended.stdout, r"^0 \d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
