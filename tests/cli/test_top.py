"""kubectl pliant top on a terminal: what it draws, and that it leaves the terminal as it was."""

import os
import pty
import signal
import subprocess
import sys
import time
import unittest

from kubectl_pliant import bars, top_frame
from kubectl_pliant.bars import Part
from kubectl_pliant.job import Job
from kubectl_pliant.shares import Pool, Queue
from kubectl_pliant.top_frame import Observed
from kubectl_pliant.world import Terminal
from play import PROGRAM, ProgramTest

_ENTER, _LEAVE = "\x1b[?1049h", "\x1b[?1049l"


class BarsTest(unittest.TestCase):
    def test_columns_are_in_proportion_and_add_up(self) -> None:
        for amounts, columns, want in (
            ([6, 5, 4, 5], 20, [6, 5, 4, 5]),
            ([1, 1, 1], 10, [4, 3, 3]),
            ([0, 1], 10, [0, 10]),
            ([0, 0], 10, [0, 0]),
            ([1, 999], 10, [0, 10]),
            ([], 10, []),
        ):
            with self.subTest(amounts=amounts):
                self.assertEqual(bars.cells(amounts, columns), want)

    def test_colours_only_where_they_are_wanted(self) -> None:
        parts = [Part("A", "a", 2), Part("#", "other", 1), Part(".", "idle", 1)]
        self.assertEqual(bars.bar(parts, 4, False), "[AA#.]")
        self.assertEqual(bars.bar(parts, 4, True), "[\x1b[36mAA\x1b[0m#.]")

    def test_a_job_with_a_gpu_has_a_mark(self) -> None:
        for have, most, want in ((0, 8, "...."), (1, 100, "|..."), (8, 8, "||||"), (9, 8, "||||"), (1, 0, "....")):
            with self.subTest(have=have):
                self.assertEqual(bars.gauge(have, most, 4), want)


class FrameTest(unittest.TestCase):
    def test_the_parts_of_a_pool_add_up(self) -> None:
        queues = [Queue("a", "p", allocated=3), Queue("b", "p", allocated=0), Queue("c", "other", allocated=9)]
        parts = top_frame.parts_of(Pool("p", capacity=16, allocated=5, foreign=2), queues)
        assert parts is not None
        found = [(part.mark, part.label, part.gpus) for part in parts]
        want = [("A", "a", 3), ("*", "other queues", 2), ("#", "other workloads", 2), (".", "idle", 11)]
        self.assertEqual(found, want)
        self.assertIsNone(top_frame.parts_of(Pool("p"), queues))

    def test_the_reason_stays_on_a_narrow_screen(self) -> None:
        reason = "5 of 16 GPUs: fair share 1/2"
        job = Job("team", "digits", queue="research", max_learners=8, learners=5, samples_per_second=1830.5, reason=reason)
        seen = Observed((job,), (), ())
        for columns, titles in (
            (None, "JOB QUEUE GPUS OF ITS MAXIMUM SAMPLES/S EFFICIENCY WAITING REASON"),
            (120, "JOB QUEUE GPUS OF ITS MAXIMUM SAMPLES/S EFFICIENCY WAITING REASON"),
            (100, "JOB QUEUE GPUS OF ITS MAXIMUM SAMPLES/S WAITING REASON"),
            (80, "JOB QUEUE GPUS SAMPLES/S WAITING REASON"),
            (60, "JOB QUEUE GPUS WAITING REASON"),
        ):
            with self.subTest(columns=columns):
                *_, header, row = top_frame.frame(seen, 0.0, Terminal(True, columns, 24, False), with_namespace=False)
                self.assertEqual(" ".join(header.split()), titles)
                self.assertIn("5 of 16 GPUs: f", row)
                self.assertTrue(columns is None or len(row) <= columns)

    def test_it_fits_the_screen(self) -> None:
        jobs = tuple(Job("team", f"job-{number:02}", max_learners=4, learners=1) for number in range(50))
        seen = Observed(jobs, (Queue("a", "p", allocated=3),), (Pool("p", capacity=4, allocated=3),), "out of date")
        lines = top_frame.frame(seen, 0.0, Terminal(True, 60, 24, False), with_namespace=True, max_rows=24)
        self.assertEqual(len(lines), 24)
        self.assertEqual(max(map(len, lines)), 60)
        self.assertEqual(lines[-2:], ["38 more; kubectl pliant list has all", "out of date"])


class LiveTest(ProgramTest):
    def read_until(self, text: str) -> str:
        found = b""
        deadline = time.monotonic() + 20
        while text.encode() not in found:
            self.assertLess(time.monotonic(), deadline, found)
            found += os.read(self.screen, 65536)
        return found.decode(errors="replace")

    def setUp(self) -> None:
        super().setUp()
        self.screen, there = pty.openpty()
        self.addCleanup(os.close, self.screen)
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), "top", "-A"], stdin=subprocess.DEVNULL, stdout=there, stderr=there,
            env=self.cluster.environment({"COLUMNS": "120", "LINES": "30", "TERM": "xterm", "NO_COLOR": "1"}),
        )  # fmt: skip
        os.close(there)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)

    def test_it_redraws_until_ctrl_c(self) -> None:
        first = self.read_until("nightly")
        self.assertIn(_ENTER, first)
        self.assertNotIn("\x1b[36m", first)  # NO_COLOR
        self.cluster.fault("get", stderr="Unable to connect to the server: EOF", code=1)
        said = self.read_until("out of date: the API server cannot be reached")
        self.assertNotIn(_LEAVE, said)
        self.assert_it_leaves(signal.SIGINT)

    def test_it_leaves_the_terminal_as_it_was_when_it_is_terminated(self) -> None:
        self.read_until("nightly")
        self.assert_it_leaves(signal.SIGTERM)

    def assert_it_leaves(self, number: int) -> None:
        self.process.send_signal(number)
        self.read_until(f"\x1b[?25h{_LEAVE}")
        self.assertEqual(self.process.wait(10), 130)


if __name__ == "__main__":
    unittest.main()
