"""Counts the lines that a script changes to become elastic."""

import unittest

from package import changed_lines

PLAIN = """
import torch


def main() -> None:
    model = Model()
    # The loop.
    for batch in loader:
        model(batch).backward()
        optimizer.step()
"""
ELASTIC = """
import pliant
import torch


def main() -> None:
    model = Model()
    for step in elastic.steps():
        for batch in step:
            step.backward(model(batch))
        step.commit()

def other():
    pass
"""


class ChangedLinesTest(unittest.TestCase):
    def test_only_the_loop_and_the_import_count(self):
        self.assertEqual(changed_lines(PLAIN, PLAIN), (0, 0))
        self.assertEqual(changed_lines(PLAIN, ELASTIC), (5, 3))


if __name__ == "__main__":
    unittest.main()
