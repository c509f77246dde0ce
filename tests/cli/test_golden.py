"""The output of each command, byte by byte: the files golden/*.txt have the commands and what they print.

PLIANT_WRITE_GOLDEN=1 writes the outputs into the files instead of comparing them: read the difference before keeping it.
"""

import os
import re
import shlex
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from play import HERE, Cluster

# A command: $ NAME=VALUE ... kubectl pliant ARGUMENTS
_COMMAND = re.compile(r"^\$ (?P<environment>(?:[A-Z_]+=\S+ )*)kubectl pliant (?P<arguments>.*)$")
# The cluster of the next command: "# jobs: NAME" are those of this file of the folder api, and other names are
# files of the cluster with their contents.
_STATE = re.compile(r"^# (?P<file>[a-z]+): (?P<content>.*)$")


@dataclass(frozen=True)
class Scene:
    """A command, and the lines before it that say what its cluster is like."""

    state: tuple[str, ...]
    command: str

    def play(self) -> list[str]:
        """Its lines in the file."""
        match = _COMMAND.match(self.command)
        assert match is not None
        with tempfile.TemporaryDirectory() as folder:
            cluster = Cluster(Path(folder))
            for line in self.state:
                file, _, content = line[2:].partition(": ")
                if file == "jobs":
                    cluster.use(content)
                else:
                    (cluster.folder / f"{file}.json").write_text(content)
            environment = dict(each.split("=", 1) for each in match["environment"].split())
            ended = cluster.run(shlex.split(match["arguments"]), **environment)
        code = [f"[exit code {ended.code}]"] if ended.code else []
        return [*self.state, self.command, *(ended.stdout + ended.stderr).splitlines(), *code, ""]


def scenes(text: str) -> list[Scene]:
    found, state = [], []
    for line in text.splitlines():
        if _STATE.match(line):
            state.append(line)
        elif _COMMAND.match(line):
            found.append(Scene(tuple(state), line))
            state = []
    return found


def play(text: str) -> str:
    """The text with the outputs of its commands. Each command has a cluster of its own."""
    with ThreadPoolExecutor(4) as pool:
        return "\n".join(line for lines in pool.map(Scene.play, scenes(text)) for line in lines)


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
