"""Verdicts of benches that start jobs."""

import unittest
from collections import defaultdict

from all_reduce import note
from commits import Commit
from goodput import Spell, hashes_row
from kill import add, moments_of
from resize import Rival
from rows import Measured
from trainers import shared_core_of


def spell(hashes):
    return Spell(seconds=60, steps=10, start_cpu=[], hashes=hashes)


class HashesRowTest(unittest.TestCase):
    def test_an_aim_without_a_comparison_is_not_met(self):
        undisturbed = {5: {"a"}, 10: {"b"}}
        cases = [
            # what, hashes of the disturbed run, steps that differ, met
            ("the same", {5: {"a"}, 10: {"b"}}, 0, True),
            ("one of two learners has others", {5: {"a", "x"}, 10: {"b"}}, 1, False),
            ("no step in common", {15: {"c"}}, 0, False),
            ("no hashes were reported", {}, 0, False),
        ]
        for what, hashes, different, met in cases:
            with self.subTest(what):
                row = hashes_row(spell(undisturbed), spell(hashes))
                self.assertEqual((row.value, row.met), (different, met))


class LostTest(unittest.TestCase):
    def test_the_time_of_starts_may_be_left_out(self):
        undisturbed = Spell(seconds=100, steps=1000, start_cpu=[], hashes={})
        cores = len({shared_core_of(number) for number in range(4)})
        # 10 s of each core.
        killed = Spell(seconds=100, steps=900, start_cpu=[10] * cores, hashes={})
        self.assertAlmostEqual(killed.lost(undisturbed, starts_count=True), 10)
        self.assertAlmostEqual(killed.lost(undisturbed, starts_count=False), 0)


class KillTest(unittest.TestCase):
    def test_the_moments_lie_all_over(self):
        self.assertEqual(moments_of(1), [0.5])
        self.assertEqual(moments_of(4), [0.125, 0.375, 0.625, 0.875])

    def test_the_pause_is_less_the_shards_computed_since(self):
        steady = [
            Commit(step, at, 4, ends=(at - 0.4, at - 0.3, at - 0.2, at - 0.1))
            for step, at in ((1, 1.0), (2, 1.5))
        ]
        cases = [
            # what, ends of the next step, shards too many
            ("the other's shards", (1.6, 1.7, 1.8, 1.9, 2.0, 2.1, 2.2, 2.3), 0),
            ("one more", (1.6, 1.7, 1.8, 1.9, 2.0, 2.1, 2.2, 2.3, 2.4), 1),
        ]
        killed = 1.75
        for what, ends, too_many in cases:
            with self.subTest(what):
                found = defaultdict(list)
                at = ends[-1] + 0.1
                commits = [*steady, Commit(3, at, len(ends), ends=ends)]
                add(found, 8, commits, killed, gave_up=1.77)
                since = sum(end >= killed for end in ends)
                self.assertAlmostEqual(found["next step"][0], 1000 * (at - killed))
                self.assertAlmostEqual(found["detection"][0], 20)
                self.assertAlmostEqual(found["pause"][0], 1000 * (at - killed - 0.1 * since))
                self.assertEqual(found["shards too many"], [too_many])

    def test_a_step_that_came_nevertheless_is_not_the_next(self):
        commits = [
            Commit(step, at, 4, ends=(at - 0.2, at - 0.1)) for step, at in ((1, 1.0), (2, 2.0))
        ]
        found = defaultdict(list)
        add(found, 8, commits, killed=0.95, gave_up=1.05)
        self.assertAlmostEqual(found["next step"][0], 1050)


class NotesTest(unittest.TestCase):
    def test_fewer_repeats_are_noted_with_the_reason(self):
        self.assertEqual(Rival(1).note(), "")
        self.assertIn("2 repeats", Rival(None, 2, "they take minutes").note())
        self.assertIn("minutes", Rival(None, 2, "they take minutes").note())

    def test_a_note_says_the_cost_of_tls(self):
        measured = {"plain": Measured.of([2.0]), "tls": Measured.of([3.0])}
        self.assertIn("1.50 times", note("tls", measured))
        self.assertIsNone(note("plain", measured))


if __name__ == "__main__":
    unittest.main()
