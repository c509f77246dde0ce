"""How the results of ctest are read."""

import tempfile
import unittest
from pathlib import Path

from pliantdev import ctest
from pliantdev.counts import Counts

_REPORT = """<testsuite>
<testcase name="a_test" status="run"><system-out>12 of 12
</system-out></testcase>
<testcase name="fidelity_test" status="run"><system-out>a figure
2 of 2 completion times equal
</system-out></testcase>
</testsuite>
"""


class ResultsTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.results = Path(scratch.name)

    def test_figures_of_a_test_that_prints_are_shown(self) -> None:
        (self.results / "ctest.junit").write_text(_REPORT)
        self.assertEqual(
            ctest.printed(self.results),
            [("fidelity_test", "a figure\n2 of 2 completion times equal")],
        )

    def test_the_beginning_and_end_of_a_failure_are_shown(self) -> None:
        output = "\n".join(f"line {number}" for number in range(1000))
        (self.results / "ctest.junit").write_text(
            f'''<testsuite><testcase name="some_test" status="fail">
<failure message="Failed"/><system-out>{output}</system-out></testcase></testsuite>'''
        )
        [(name, shown)] = ctest.printed(self.results)
        lines = shown.splitlines()
        self.assertEqual(name, "some_test")
        self.assertEqual(lines[0], "line 0")
        self.assertEqual(lines[75], "... 850 lines ...")
        self.assertEqual(lines[-1], "line 999")
        self.assertEqual(len(lines), ctest.SHOWN_LINES + 1)

    def test_a_program_without_a_report_of_its_own_is_one_case(self) -> None:
        (self.results / "ctest.junit").write_text(_REPORT)
        self.assertEqual(ctest.count_results(self.results), Counts(passed=2))

    def test_without_results_one_case_failed_and_nothing_is_shown(self) -> None:
        self.assertEqual(ctest.count_results(self.results), Counts(failed=1))
        self.assertEqual(ctest.printed(self.results), [])


if __name__ == "__main__":
    unittest.main()
