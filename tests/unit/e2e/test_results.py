"""The messages about each moment from run.py to the program that started it."""

import io
import json
import tempfile
import unittest
from pathlib import Path

import run

from story.checks import Check
from story.errors import StoryError
from story.screen import Screen


class ResultsTest(unittest.TestCase):
    def test_each_moment_adds_a_line(self) -> None:
        def half_good(stage, screen):
            return [Check("a", ()), Check("b", ("it is not so",))]

        def broken(stage, screen):
            raise StoryError("no pods")

        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch, "results")
            for name, moment in {"half good": half_good, "broken": broken}.items():
                run.play(name, moment, None, Screen(io.StringIO()), file)
            found = [json.loads(line) for line in file.read_text().splitlines()]
        self.assertEqual(
            [(each["name"], each["passed"], each["failed"]) for each in found],
            [("half good", 1, 1), ("broken", 0, 1)],
        )
        self.assertTrue(all(each["seconds"] >= 0 for each in found))


if __name__ == "__main__":
    unittest.main()
