"""The faults to seed can be seeded, and the verdict on a run of their tests."""

import tempfile
import unittest
from pathlib import Path

import faults
import seeded_faults
from pliantdev import file_map
from pliantdev.counts import Counts
from pliantdev.record import Record
from pliantdev.rows import Row
from pliantdev.settings import REPO
from seeded_faults import Outcome


class FaultsTest(unittest.TestCase):
    def test_each_has_its_place(self) -> None:
        for fault in faults.FAULTS:
            with self.subTest(fault.name):
                text = (REPO / fault.file).read_text()
                self.assertNotEqual(faults.apply(text, fault), text)
                self.assertEqual(
                    len(faults.apply(text, fault).splitlines()), len(text.splitlines())
                )

    def test_a_text_that_is_not_there_once_is_an_error(self) -> None:
        fault = faults.Fault("file", "a", "b")
        self.assertEqual(faults.apply("xay", fault), "xby")
        for text in ("", "x", "aa"):
            with self.subTest(text=text), self.assertRaisesRegex(ValueError, "file has 'a'"):
                faults.apply(text, fault)

    def test_they_are_of_all_folders(self) -> None:
        self.assertEqual(len({fault.name for fault in faults.FAULTS}), len(faults.FAULTS))
        self.assertGreaterEqual(len(faults.FAULTS), 40)
        folders = {fault.file.partition("/")[0] for fault in faults.FAULTS}
        self.assertEqual(
            folders,
            {
                "base",
                "operator",
                "trainer",
                "examples",
                "crds",
                "helm",
                "manifests",
                "docs",
                "tests",
            },
        )

    def test_each_is_in_a_file_with_readers(self) -> None:
        """The tests of the documents read the task pages, and always run."""
        for fault in faults.FAULTS:
            if not fault.file.startswith("docs/tasks/"):
                self.assertTrue(file_map.readers(fault.file), fault.file)


class OutcomeTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.file = Path(scratch.name, "run.json")

    def run_of(self, *rows: Row) -> Record:
        run = Record(self.file, {"tests": ["base_test"], "parts": ["format"]})
        for row in rows:
            run.add(row)
        return run

    def test_says_what_failed_and_what_was_selected(self) -> None:
        good = Row("format", 1.0, Counts())
        bad = Row("tests", 1.0, Counts(failed=1), "base_test")
        for name, run, status, want in (
            ("found", self.run_of(good, bad), 1, Outcome("tests (base_test)", "base_test, format")),
            ("not found", self.run_of(good), 0, Outcome("", "base_test, format")),
            ("in its middle", self.run_of(good), 2, Outcome("exit status 2", "base_test, format")),
            ("no CMake", None, 1, Outcome("./dev itself (exit status 1)", "?")),
            ("no selection", None, 0, Outcome("", "?")),
        ):
            with self.subTest(name):
                self.assertEqual(seeded_faults.outcome(run, status), want)

    def test_the_table_names_what_was_not_found(self) -> None:
        found = Record(self.file, {"details": {
            "a": {"found_by": "tests (a_test)", "selected": "a_test"},
            "b": {"found_by": "", "selected": "format"},
        }})  # fmt: skip
        found.add(Row("a", 61.0, Counts(passed=1)))
        found.add(Row("b", 2.0, Counts(failed=1)))
        self.assertEqual(
            seeded_faults.table(found),
            [
                "seconds  verdict",
                "     61  found      a",
                "                    selected: a_test",
                "                    failed: tests (a_test)",
                "      2  NOT FOUND  b",
                "                    selected: format",
            ],
        )


if __name__ == "__main__":
    unittest.main()
