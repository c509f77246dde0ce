"""How commands run whose output goes to a log."""

import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from pliantdev import progress
from pliantdev.errors import DevError

_REFUSED = "Close_Fd sealing memfd copy: Device or resource busy"

# Says its first argument at its first run, and its second argument later. Fails at the first run.
_PROGRAM = """
import pathlib, sys
before = pathlib.Path(sys.argv[1])
first = not before.exists()
before.open("a").write("run\\n")
print(sys.argv[2] if first else sys.argv[3])
sys.exit(1 if first else 0)
"""


class RunToLogTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.runs = Path(scratch.name, "runs")
        self.log = Path(scratch.name, "log")
        sleeps = mock.patch.object(progress.time, "sleep")
        sleeps.start()
        self.addCleanup(sleeps.stop)

    def command(self, first: str, later: str) -> list[str | Path]:
        return [sys.executable, "-c", _PROGRAM, self.runs, first, later]

    def test_a_container_that_did_not_start_is_tried_again(self) -> None:
        self.assertEqual(progress.run_to_log(self.command(_REFUSED, "passed"), self.log), 0)
        self.assertEqual(self.log.read_text(), f"{_REFUSED}\npassed\n")

    def test_a_container_that_never_starts_is_tried_three_times(self) -> None:
        command = ["sh", "-c", f'echo run >>"$0"; echo "{_REFUSED}"; exit 1', self.runs]
        self.assertEqual(progress.run_to_log(command, self.log), 1)
        self.assertEqual(self.runs.read_text(), "run\n" * 3)

    def test_a_command_that_fails_is_not_tried_again(self) -> None:
        for said in ("failed", f"a test quotes\n{_REFUSED}"):
            with self.subTest(said=said):
                self.runs.unlink(missing_ok=True)
                self.assertEqual(progress.run_to_log(self.command(said, "passed"), self.log), 1)
                self.assertEqual(self.runs.read_text(), "run\n")

    def test_the_log_begins_with_the_command(self) -> None:
        with self.assertRaisesRegex(DevError, "the thing failed .exit status 1."):
            progress.run_logged(["sh", "-c", "echo broken; exit 1"], self.log, "the thing")
        self.assertEqual(self.log.read_text(), "+ sh -c echo broken; exit 1\nbroken\n")


if __name__ == "__main__":
    unittest.main()
