"""The moment at which a process kills itself in a reduction, and the files that it leaves."""

import os
import signal
import tempfile
import threading
import time
import unittest
from pathlib import Path

from mortal import Countdown, Mortal, die


class CountdownTest(unittest.TestCase):
    def test_it_dies_at_the_gradient_that_completes_its_share(self):
        cases = [
            # what, elements, order of the backward pass, share, index that it dies at
            ("once the share is handed over", [10, 10, 10, 10], [3, 2, 1, 0], 0.5, 1),
            ("of elements, not of parameters", [10, 10, 80], [2, 1, 0], 0.5, 1),
            ("not before", [80, 10, 10], [2, 1, 0], 0.15, 0),
            ("at the last one, if it is most of them", [80, 10, 10], [2, 1, 0], 0.9, 0),
            ("at once", [10, 10], [1, 0], 0.0, 1),
        ]
        for what, elements, backward, share, expected in cases:
            with self.subTest(what):
                countdown = Countdown(elements, share)
                over = [index for index in backward if countdown.over(index)]
                self.assertEqual(over[0], expected)


class Parameter:
    def __init__(self, elements):
        self.elements = elements
        self.hooks = []

    def numel(self):
        return self.elements

    def register_post_accumulate_grad_hook(self, hook):
        self.hooks.append(hook)

    def made(self):
        for hook in self.hooks:
            hook(self)


class MortalTest(unittest.TestCase):
    def test_it_dies_only_when_asked_and_tells_when(self):
        with tempfile.TemporaryDirectory() as folder:
            commits = Path(folder) / "commits-0"
            parameters = [Parameter(10) for _ in range(4)]
            Mortal(commits, parameters).before_reduction()
            self.assertFalse(any(parameter.hooks for parameter in parameters))

            child = os.fork()
            if child == 0:
                try:
                    mortal = Mortal(commits, parameters)
                    end = time.monotonic() + 20
                    while time.monotonic() < end and not parameters[0].hooks:
                        mortal.before_reduction()
                        time.sleep(0.01)
                    for parameter in reversed(parameters):
                        parameter.made()
                finally:
                    os._exit(0)
            began = time.monotonic()
            died: list[float] = []
            asking = threading.Thread(target=lambda: died.append(die(commits, 0.5)))
            asking.start()
            _, status = os.waitpid(child, 0)
            ended = time.monotonic()
            asking.join()
            self.assertTrue(os.WIFSIGNALED(status))
            self.assertEqual(os.WTERMSIG(status), signal.SIGKILL)
            self.assertTrue(began <= died[0] <= ended, (began, died, ended))
            # The request must not reach the process that replaces it.
            Mortal(commits, parameters).before_reduction()
            self.assertFalse(any(parameter.hooks for parameter in parameters))


if __name__ == "__main__":
    unittest.main()
