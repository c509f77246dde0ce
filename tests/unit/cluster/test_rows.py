"""The report of a run, the files that it keeps, and the comparison with earlier runs."""

import json
import tempfile
import unittest
from pathlib import Path

from pliantdev import history, processors, record, rows
from pliantdev.counts import Counts
from pliantdev.record import Record
from pliantdev.rows import Row

FORMAT = Row("format", 6.6, Counts())
UNIT = Row("unit tests", 120.4, Counts(passed=903, failed=2, skipped=1))


class TemporaryFolderTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)


class TableTest(unittest.TestCase):
    def test_has_a_line_for_each_part(self) -> None:
        self.assertEqual(
            rows.table([FORMAT, UNIT]),
            [
                "part        seconds   passed   failed",
                "format            7        -        -",
                "unit tests      120      903        2  FAILED",
            ],
        )

    def test_says_how_long_each_part_took_before(self) -> None:
        self.assertEqual(
            rows.table([FORMAT, UNIT], {"format": 5.4}),
            [
                "part        seconds   before   passed   failed",
                "format            7        5        -        -",
                "unit tests      120        -      903        2  FAILED",
            ],
        )

    def test_nothing_was_run(self) -> None:
        self.assertEqual(rows.table([]), ["part  seconds   passed   failed"])


class RecordTest(TemporaryFolderTest):
    def test_is_read_as_it_was_written(self) -> None:
        file = self.folder / "log" / "run.json"
        written = Record(file, {"source": "abc"})
        written.add(FORMAT)
        written.end("format")
        written.add(UNIT)
        found = record.load(file)
        self.assertEqual(found.head, {"source": "abc"})
        self.assertEqual(found.ended, ["format"])
        self.assertEqual([row.name for row in found.rows], ["format", "unit tests"])
        self.assertEqual(found.rows[1].counts, UNIT.counts)
        self.assertEqual([*file.parent.iterdir()], [file])

    def test_a_later_row_replaces_the_earlier_one_of_its_name(self) -> None:
        written = Record(self.folder / "run.json", {})
        for row in (UNIT, FORMAT, Row(UNIT.name, 3.0, Counts(passed=905))):
            written.add(row)
        found = record.load(written.file).rows
        self.assertEqual(
            [(row.name, row.passed) for row in found], [(UNIT.name, True), ("format", True)]
        )

    def test_a_malformed_record_is_none(self) -> None:
        file = self.folder / "run.json"
        for text in ("", "{", "[]", "{}", '{"rows": [{}], "ended": []}'):
            with self.subTest(text=text):
                file.write_text(text)
                self.assertIsNone(record.load(file))
        self.assertIsNone(record.load(self.folder / "absent.json"))


class HistoryTest(TemporaryFolderTest):
    def run_of(self, name: str, *found: Row) -> None:
        written = Record(self.folder / f"{name}.json", {})
        for row in found:
            written.add(row)

    def test_the_last_run_in_which_a_part_passed_counts(self) -> None:
        passed = Counts(passed=1)
        self.run_of("20260101-000000", Row("a", 1.0, passed), Row("b", 2.0, passed))
        self.run_of("20260102-000000", Row("a", 3.0, passed), Row("b", 4.0, Counts(failed=1)))
        (self.folder / "20260103-000000.json").write_text("cut o")
        self.assertEqual(
            history.seconds_when_passed(history.load(self.folder)), {"a": 3.0, "b": 2.0}
        )

    def test_old_runs_are_forgotten(self) -> None:
        for day in range(1, 8):
            self.run_of(f"2026010{day}-000000", FORMAT)
        history.forget_old(self.folder, kept=2)
        self.assertEqual(
            sorted(file.name for file in self.folder.iterdir()),
            ["20260106-000000.json", "20260107-000000.json"],
        )

    def test_there_was_no_run_before(self) -> None:
        self.assertEqual(history.load(self.folder / "absent"), [])


class StealTest(unittest.TestCase):
    def test_is_a_share_of_all_ticks(self) -> None:
        #            user nice system idle iowait irq softirq steal guest guest_nice
        before = "cpu  100 10 50 800 20 0 5 15 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n"
        for name, after, percent in (
            ("a quarter", "cpu  160 10 65 800 20 0 5 40 60 0\n", 25.0),
            ("nothing", "cpu  160 10 65 800 20 0 5 15 60 0\n", 0.0),
            ("no time has passed", before, 0.0),
        ):
            with self.subTest(name):
                self.assertAlmostEqual(processors.steal_percent(before, after), percent)

    def test_the_machine_tells(self) -> None:
        self.assertEqual(processors.steal_percent(processors.read(), processors.read()) >= 0, True)


class JsonTest(unittest.TestCase):
    def test_a_row_of_an_older_run_may_lack_what_is_new(self) -> None:
        row = rows.from_json({"name": "a", "seconds": 1, "passed": 2, "failed": 0})
        self.assertEqual(row, Row("a", 1, Counts(passed=2)))

    def test_says_why_it_failed(self) -> None:
        row = Row("compile", 1.0, Counts(failed=1), "compiling failed")
        self.assertEqual(rows.from_json(json.loads(json.dumps(rows.to_json(row)))), row)


if __name__ == "__main__":
    unittest.main()
