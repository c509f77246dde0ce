"""tests/gpu/quarter.py: results survive a part that hangs or fails."""

import importlib.util
import json
import sys
import tempfile
import time
import unittest
from pathlib import Path

_FILE = Path(__file__).resolve().parents[2] / "gpu/quarter.py"
_SPEC = importlib.util.spec_from_file_location("quarter", _FILE)
assert _SPEC and _SPEC.loader
quarter = importlib.util.module_from_spec(_SPEC)
sys.modules["quarter"] = quarter
_SPEC.loader.exec_module(quarter)


class QuarterTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = Path(folder.name) / "out"

    def results(self) -> dict[str, str]:
        return {each["name"]: each["result"] for each in json.loads((self.out / "summary.json").read_text())}

    def test_a_part_that_hangs_is_cut_off_with_its_children_and_the_next_one_runs(self) -> None:
        child = self.out / "child"
        hangs = f"(sleep 2; touch {child}) & echo began; sleep 60"
        sees = f"test -s {self.out}/summary.json"
        began = time.monotonic()
        ended = quarter.play_all(
            [
                quarter.Part("hangs", 0.5, ("sh", "-c", hangs)),
                quarter.Part("fails", 5, ("sh", "-c", "echo no; exit 3")),
                quarter.Part("passes", 5, ("sh", "-c", sees)),
            ],
            self.out,
        )
        self.assertEqual([each.result for each in ended], ["cut off", "failed", "passed"])
        self.assertEqual(self.results(), {"hangs": "cut off", "fails": "failed", "passes": "passed"})
        self.assertEqual((self.out / "hangs.log").read_text(), "began\n")
        self.assertEqual((self.out / "fails.log").read_text(), "no\n")
        time.sleep(max(0.0, 2.5 - (time.monotonic() - began)))
        self.assertFalse(child.exists(), "a child of the part lives on")

    def test_the_parts_take_ten_minutes_together(self) -> None:
        parts = quarter.parts(self.out)
        self.assertLessEqual(sum(part.seconds for part in parts), 600)
        self.assertEqual(len({part.name for part in parts}), len(parts))


if __name__ == "__main__":
    unittest.main()
