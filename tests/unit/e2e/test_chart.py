import unittest

import builders
from story import chart
from story.style import Style

NAMES = ("training-1", "training-2")


class ChartTest(unittest.TestCase):
    def worlds(self) -> list:
        second = {"name": "training-2", "uid": "u2"}
        return [
            builders.world(0.0, builders.training(8)),
            builders.world(5.0, builders.training(8)),
            builders.world(10.0, builders.training(4), builders.training(4, **second)),
            builders.world(20.0, builders.training(0), builders.training(6, **second)),
        ]

    def test_only_changes_are_kept(self) -> None:
        changes = chart.held_over_time(self.worlds(), NAMES)
        self.assertEqual([(each.time, each.gpus) for each in changes], [(0, (8, 0)), (10, (4, 4)), (20, (0, 6))])

    def test_slots_stack_from_the_bottom(self) -> None:
        rows = chart.slots(chart.held_over_time(self.worlds(), NAMES), 30.0, 8, 3)
        self.assertEqual(rows[0], [0, 1, None])  # the top slot
        self.assertEqual(rows[3], [0, 1, 1])
        self.assertEqual(rows[7], [0, 0, 1])

    def test_drawing_has_axes_and_a_legend(self) -> None:
        lines = chart.draw(chart.held_over_time(self.worlds(), NAMES), 30.0, NAMES, 8, 33, Style(colours=False))
        self.assertEqual(lines[0], "GPUs   ██ training-1   ▒▒ training-2")
        self.assertEqual(lines[1], "8 ┤" + "█" * 10 + "▒" * 10 + "·" * 10)
        self.assertEqual(lines[8], "  │" + "█" * 20 + "▒" * 10)
        self.assertEqual(len(lines), 11)
        self.assertTrue(lines[10].strip().startswith("0 s"))

    def test_colours_wrap_runs_not_cells(self) -> None:
        lines = chart.draw(chart.held_over_time(self.worlds(), NAMES), 30.0, NAMES, 8, 33, Style(colours=True))
        self.assertEqual(lines[1].count("\x1b[0m"), 3)
