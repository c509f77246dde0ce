"""Rows that a bench makes from its measurements."""

import json
import tempfile
import unittest
from pathlib import Path

from quantiles import quantile
from rows import Aim, Measured, line, measured_row, write


class QuantileTest(unittest.TestCase):
    def test_the_middle_and_what_chance_may_have_made_of_it(self):
        median = quantile(range(31), 0.5)
        self.assertEqual(median.value, 15)
        # In 31 tosses of a coin, 10 to 20 are heads with a probability of 95 %.
        self.assertTrue(9 <= median.low <= 10 and 20 <= median.high <= 22, median)

    def test_few_measurements_say_little(self):
        median = quantile([3.0, 1.0, 2.0], 0.5)
        self.assertEqual((median.low, median.value, median.high), (1.0, 2.0, 3.0))


class RowTest(unittest.TestCase):
    def test_aims(self):
        cases = [
            # what, ours, rival, more is better, aim, ratio, met
            ("less time than the rival", 2.0, 4.0, False, Aim("ratio", 1.5), 2.0, True),
            ("not enough less", 3.0, 4.0, False, Aim("ratio", 1.5), 1.333, False),
            ("more of what is good", 4.0, 2.0, True, Aim("ratio", 1.5), 2.0, True),
            ("a bound, whatever the rival has", 40.0, 4000.0, False, Aim("value", 50), 100.0, True),
            ("a bound that is passed", 51.0, None, False, Aim("value", 50), None, False),
            ("a pause below nothing has no ratio", -1.0, 9.0, False, Aim("value", 50), None, True),
            ("no rival, no ratio", 1.0, None, False, Aim("ratio", 1.0), None, False),
        ]
        for what, ours, rival, more_is_better, aim, ratio, met in cases:
            with self.subTest(what):
                row = measured_row(
                    "x", "ms", Measured.of([ours]), Measured.of([rival]) if rival else None,
                    aim=aim, more_is_better=more_is_better,
                )  # fmt: skip
                self.assertEqual((row.ratio, row.met), (ratio, met))
                self.assertIn("met" if met else "missed", line(row))

    def test_a_row_without_an_aim_has_no_verdict(self):
        row = measured_row("x", "ms", Measured.of([1.0, 2.0]))
        self.assertIsNone(row.met)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.json"
            write([row], path)
            (read,) = json.loads(path.read_text())
        self.assertEqual(read["repeats"], 2)
        self.assertFalse({"aim", "met", "rival", "rival_repeats"} & read.keys())

    def test_a_row_has_the_repeats_of_a_rival_that_was_measured_less_often(self):
        row = measured_row("x", "ms", Measured.of([1.0, 2.0]), Measured.of([3.0]))
        self.assertEqual((row.repeats, row.rival_repeats), (2, 1))


if __name__ == "__main__":
    unittest.main()
