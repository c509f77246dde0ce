"""docs/kubectl-pliant.md shows what the commands print, and names all commands."""

import re
import unittest

from kubectl_pliant.arguments import parser
from kubectl_pliant.completion import commands_of
from play import HERE, ROOT
from test_golden import scenes

_ENVIRONMENT = re.compile(r"^\$ (?:[A-Z_]+=\S+ )*")
_STATE = re.compile(r"^# [a-z]+: ")


def shown_scenes(text: str) -> set[str]:
    """Commands of a golden file with their outputs, as a document shows them."""
    commands = {scene.command for scene in scenes(text)}
    found: list[list[str]] = []
    for line in text.splitlines():
        if line in commands:
            found.append([_ENVIRONMENT.sub("$ ", line)])
        elif found and not _STATE.match(line):
            found[-1].append(line)
    return {"\n".join(lines).rstrip("\n") for lines in found}


class DocumentTest(unittest.TestCase):
    def setUp(self) -> None:
        self.page = (ROOT / "docs" / "kubectl-pliant.md").read_text()

    def test_outputs_are_those_of_the_golden_files(self) -> None:
        golden = {each for file in (HERE / "golden").glob("*.txt") for each in shown_scenes(file.read_text())}
        fences = re.findall(r"^```text\n(.*?)\n```$", self.page, re.MULTILINE | re.DOTALL)
        self.assertGreater(len(fences), 7)
        for fence in fences:
            with self.subTest(command=fence.partition("\n")[0]):
                self.assertIn(fence, golden)

    def test_every_command_and_option_of_the_page_exists(self) -> None:
        commands = commands_of(parser())
        for command in commands:
            with self.subTest(command=command):
                self.assertRegex(self.page, rf"`{command}\b")
        options = {text for each in commands.values() for action in each._actions for text in action.option_strings}
        for option in set(re.findall(r"`(--?[a-zA-Z][a-z-]*)", self.page)):
            with self.subTest(option=option):
                self.assertIn(option, options)


if __name__ == "__main__":
    unittest.main()
