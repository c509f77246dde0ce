"""The order of measurements."""

import unittest

from trainers import Late
from turns import Party, order, take


class OrderTest(unittest.TestCase):
    def test_rounds(self):
        cases = [
            # what, repeats, order
            ("all in each round", {"a": 2, "b": 2}, "a0 b0 a1 b1"),
            ("alone", {"a": 3}, "a0 a1 a2"),
            ("fewer repeats are spread over the rounds", {"a": 4, "b": 2}, "a0 a1 b0 a2 a3 b1"),
            ("none is left out", {"a": 5, "b": 5, "c": 2}, "a0 b0 a1 b1 a2 b2 c0 a3 b3 a4 b4 c1"),
        ]
        for what, repeats, expected in cases:
            with self.subTest(what):
                found = [f"{name}{number}" for name, number in order(repeats)]
                self.assertEqual(found, expected.split())


class TakeTest(unittest.TestCase):
    def setUp(self):
        self.found = []

    def party(self, name, repeats, late_at=None):
        def measure(number):
            if number == late_at:
                raise Late("no step")
            self.found.append(f"{name}{number}")

        return Party(measure, repeats)

    def test_a_late_rival_costs_nobody_else_a_turn(self):
        rivals = {"b": self.party("b", 3, late_at=1), "c": self.party("c", 3)}
        given_up = take(self.party("a", 3), rivals)
        self.assertEqual(self.found, ["a0", "b0", "c0", "a1", "c1", "a2", "c2"])
        self.assertEqual(given_up, {"b": "the rival was dropped: no step"})

    def test_a_late_turn_of_ours_is_an_error(self):
        with self.assertRaises(Late):
            take(self.party("a", 3, late_at=1), {"b": self.party("b", 3)})


if __name__ == "__main__":
    unittest.main()
