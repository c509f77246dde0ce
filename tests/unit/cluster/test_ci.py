"""The parts of CI, and its final report. Nothing of it is run."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from pliantdev import ci, history
from pliantdev.counts import Counts
from pliantdev.errors import DevError
from pliantdev.moments import moment


class CiTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def test_its_parts(self) -> None:
        self.assertEqual(
            [each.name for each in ci.moments()],
            [
                "format",
                "types",
                "chart",
                "compile",
                "unit, scenario, property, simulation, fuzz, fidelity, python tests",
                "integration tests",
                "Keras over tensorflow",
                "Keras over torch",
                "Keras over jax",
                "Hugging Face",
                "Trainers of Hugging Face",
                "Lightning and trackers",
                "cluster and images",
                "e2e",
                "alerts and dashboard",
                "compile (asan)",
                "unit, scenario, simulation, fuzz tests (asan)",
                "compile (tsan)",
                "unit, scenario, simulation, fuzz tests (tsan)",
                "GPU pack",
            ],
        )

    def run_with(self, run: str, types) -> tuple[int, str, mock.Mock]:
        parts = [moment("format", lambda: Counts(passed=2)), moment("types", types)]
        down = mock.Mock()
        said = io.StringIO()
        with (
            mock.patch.object(ci, "moments", lambda: parts),
            mock.patch.object(ci.preflight, "check"),
            mock.patch.object(ci.commands, "down", down),
            mock.patch.object(history, "FOLDER", self.folder),
            mock.patch.object(history, "new_file", lambda: self.folder / f"{run}.json"),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            return ci.run(), said.getvalue(), down

    def test_names_what_failed_and_says_how_long_each_part_took_before(self) -> None:
        def fail() -> None:
            raise DevError("line 3 is wrong")

        status, said, down = self.run_with("1", fail)
        self.assertEqual(status, 1)
        self.assertTrue(said.endswith("CI failed: types\n"), said)
        down.assert_called_once_with()
        status, said, _ = self.run_with("2", lambda: None)
        self.assertEqual(status, 0)
        lines = said.splitlines()
        self.assertEqual(lines[0].split(), ["part", "seconds", "before", "passed", "failed"])
        self.assertEqual(lines[1].split(), ["format", "0", "0", "2", "-"])
        self.assertEqual(lines[2].split(), ["types", "0", "-", "-", "-"])
        self.assertIn("(steal)", lines[3])
        self.assertEqual(lines[4], f"the same as JSON: {self.folder}/2.json")
        self.assertEqual(lines[5], "CI passed")

    def test_an_interruption_ends_the_cluster_and_keeps_what_was_found(self) -> None:
        def interrupt() -> None:
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            self.run_with("1", interrupt)
        self.assertEqual(history.seconds_when_passed(history.load(self.folder)), {"format": 0.0})


if __name__ == "__main__":
    unittest.main()
