"""Runs the program against the fake kubectl of this folder, in a process of its own and with a fixed clock."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAM = ROOT / "cli" / "kubectl-pliant"
NOW = "1795780800"  # 2026-11-27T12:00:00Z
JOBS = "elastictrainingjobs"
_PYCACHE = tempfile.TemporaryDirectory()  # compiled once in a run, and not in the source's folders


@dataclass(frozen=True)
class Ended:
    code: int
    stdout: str
    stderr: str


class Cluster:
    """The folder from which the fake kubectl answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(HERE / "api", folder, dirs_exist_ok=True)

    def read(self, name: str) -> object:
        return json.loads((self.folder / name).read_text())

    def write(self, name: str, value: object) -> None:
        (self.folder / name).write_text(json.dumps(value))

    def use(self, name: str) -> None:
        """Serves the jobs of another file of the folder api."""
        shutil.copy(HERE / "api" / f"{name}.json", self.folder / f"{JOBS}.json")

    def fault(self, match: str, **fault: object) -> None:
        """The next calls with all words of `match` misbehave."""
        self.write("faults.json", [{"match": match, **fault}])

    def calls(self) -> list[list[str]]:
        file = self.folder / "calls.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
        return {
            **kept,
            "PATH": f"{HERE / 'fake'}:{os.environ['PATH']}",
            "FAKE_KUBECTL_STATE": str(self.folder),
            "PLIANT_CLI_TEST_NOW": NOW,
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": _PYCACHE.name,
            "PYTHONIOENCODING": "utf-8",
            **more,
        }

    def start(self, arguments: Sequence[str], **environment: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            # -S: the program needs no packages of the machine.
            [sys.executable, "-S", str(PROGRAM), *arguments], env=self.environment(environment),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            encoding="utf-8",
        )  # fmt: skip

    def run(self, arguments: Sequence[str], **environment: str) -> Ended:
        process = self.start(arguments, **environment)
        try:
            stdout, stderr = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
        return Ended(process.returncode, stdout, stderr)


class ProgramTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cluster = Cluster(Path(folder.name))

    def run_it(self, command: str, **environment: str) -> Ended:
        return self.cluster.run(command.split(), **environment)

    def assert_fails(self, command: str, code: int, sentence: str, **environment: str) -> None:
        ended = self.run_it(command, **environment)
        self.assertEqual(ended.stderr, f"error: {sentence}\n")
        self.assertEqual((ended.code, ended.stdout), (code, ""))
