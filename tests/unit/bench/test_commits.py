"""Analysis of the times at which steps were committed."""

import tempfile
import unittest
from itertools import accumulate
from pathlib import Path

from commits import Commit, CommitLog, differing, hashes, pause, read


def after_each_other(*steps):
    """Commits, given as pairs (seconds since the one before, shards)."""
    times = accumulate(gap for gap, _ in steps)
    return [
        Commit(step=i, at=at, shards=shards)
        for i, (at, (_, shards)) in enumerate(zip(times, steps, strict=True))
    ]


ALONE = [(1.0, 8)] * 6
IN_TWO = [(0.5, 4)] * 6


class PauseTest(unittest.TestCase):
    def test_changes(self):
        cases = [
            ("a join that costs nothing", [*ALONE, *IN_TWO], 0.0),
            ("a leave that costs nothing", [*IN_TWO, *ALONE], 0.0),
            ("the step of the switch is late", [*ALONE, (0.75, 4), *IN_TWO], 0.25),
            ("the step before it is late", [*ALONE, (1.25, 8), *IN_TWO], 0.25),
            ("all restart", [*IN_TWO, (5.0, 8), *ALONE], 4.0),
            ("a size passed through is no step of its own", [*ALONE, (0.75, 2), *IN_TWO], 0.25),
            ("a step of many shards is compared with its like", [*IN_TWO, *ALONE, *IN_TWO], 0.0),
        ]
        for what, steps, expected in cases:
            with self.subTest(what):
                self.assertAlmostEqual(pause(after_each_other(*steps), since=3.0), expected)

    def test_commits_before_the_change_do_not_count(self):
        commits = after_each_other(*ALONE, (9.0, 8), *ALONE, *IN_TWO)
        self.assertAlmostEqual(pause(commits, since=15.5), 0.0)


class HashesTest(unittest.TestCase):
    def test_all_of_a_step_are_compared(self):
        undisturbed = {5: ["a", "a"], 10: ["b"]}
        cases = [
            # what, hashes by step, steps that differ
            ("the same", {5: ["a"], 10: ["b", "b"]}, []),
            ("another run's other parameters", {5: ["a"], 10: ["c"]}, [10]),
            ("only the first report differs", {5: ["x", "a"]}, [5]),
            ("two of a step that the other run did not reach", {15: ["d", "e"]}, [15]),
            ("no step in common", {15: ["d"]}, []),
        ]
        for what, told, expected in cases:
            with self.subTest(what):
                self.assertEqual(differing(self.of(undisturbed), self.of(told)), expected)

    @staticmethod
    def of(told):
        commits = [
            Commit(step=step, at=0, shards=4, sha=sha)
            for step, found in told.items()
            for sha in found
        ]
        return hashes([*commits, Commit(step=99, at=0, shards=4)])


class FileTest(unittest.TestCase):
    def test_only_whole_lines_are_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "commits"
            self.assertEqual(read(path), [])
            log = CommitLog(path)
            log.add(1, 2, ends=[0.5, 0.75])
            log.add(2, 4, sha="ab", waited=0.25)
            CommitLog(path).add(3, 4)  # a process that took the first one's place
            with path.open("a") as file:
                file.write('{"step": 4, "a')
            one, two, three = read(path)
        self.assertEqual((one.step, one.shards, list(one.ends)), (1, 2, [0.5, 0.75]))
        self.assertEqual((two.sha, two.waited, two.cpu), ("ab", 0.25, None))
        self.assertGreater(one.cpu, 0)
        self.assertGreater(three.cpu, 0)
        self.assertLess(one.at, three.at)


if __name__ == "__main__":
    unittest.main()
