"""The output of each command, byte by byte: the files golden/*.txt have the commands and what they print.

PLIANT_WRITE_GOLDEN=1 writes the outputs into the files instead of comparing them: read the difference before keeping it.
"""

import os
import re
import shlex
import tempfile
import unittest
from pathlib import Path

from play import HERE, Cluster

# A command: $ NAME=VALUE ... kubectl pliant ARGUMENTS
_COMMAND = re.compile(r"^\$ (?P<environment>(?:[A-Z_]+=\S+ )*)kubectl pliant (?P<arguments>.*)$")
_JOBS = "# jobs: "  # the next command finds the jobs of this file of the folder api


def play(text: str) -> str:
    """The text with the outputs of its commands. Each command has a cluster of its own."""
    made, jobs = [], ""
    for line in text.splitlines():
        if line.startswith(_JOBS):
            made.append(line)
            jobs = line[len(_JOBS) :]
        if match := _COMMAND.match(line):
            with tempfile.TemporaryDirectory() as folder:
                cluster = Cluster(Path(folder))
                if jobs:
                    cluster.use(jobs)
                environment = dict(each.split("=", 1) for each in match["environment"].split())
                ended = cluster.run(shlex.split(match["arguments"]), **environment)
            made += [line, *(ended.stdout + ended.stderr).splitlines()]
            made += [f"[exit code {ended.code}]"] if ended.code else []
            made.append("")
            jobs = ""
    return "\n".join(made)


class GoldenTest(unittest.TestCase):
    maxDiff = None

    def test_each_command_prints_what_its_file_says(self) -> None:
        files = sorted((HERE / "golden").glob("*.txt"))
        self.assertGreater(len(files), 1)
        for file in files:
            with self.subTest(file=file.name):
                made = play(file.read_text())
                if os.environ.get("PLIANT_WRITE_GOLDEN"):
                    file.write_text(made)
                self.assertEqual(file.read_text(), made)


if __name__ == "__main__":
    unittest.main()
