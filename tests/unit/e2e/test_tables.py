import io
import unittest

import builders
from story import table
from story.screen import Screen


class TableTest(unittest.TestCase):
    def test_columns_line_up_and_numbers_stand_right(self) -> None:
        lines = table.layout(("name", "n"), [("a", "5"), ("bbbbb", "12")])
        self.assertEqual(lines, ["name   n", "a       5", "bbbbb  12"])

    def test_lines_are_cut_at_the_width(self) -> None:
        self.assertEqual(table.layout(("a",), [("0123456789x",)], width=5)[1], "0123…")

    def test_a_row_a_training_in_the_order_of_names(self) -> None:
        second = builders.training(5, name="training-2", uid="u2", step=60, priority=10000, reason="5 of 8")
        rows = table.trainings(builders.world(1.0, second, builders.training(3)))
        self.assertEqual([row[0] for row in rows], ["training-1", "training-2"])
        self.assertEqual(
            rows[1], ["training-2", "Running", "10000", "5", "5", "1.1 (5)", "10", "60/900", "0.5000", "1000", "5 of 8"]
        )

    def test_a_job_of_which_nothing_is_known_yet_has_a_row(self) -> None:
        new = builders.Training(builders.job(phase=""), (), None)
        self.assertEqual(
            table.trainings(builders.world(1.0, new))[0][1:], ["-", "5000", "0", "0", "-", "-", "-", "-", "-", ""]
        )


class ScreenTest(unittest.TestCase):
    def test_without_a_terminal_lines_are_plain_and_come_on_change(self) -> None:
        stream = io.StringIO()
        screen = Screen(stream)
        screen.say("begin", "bold")
        for _ in range(3):
            screen.show(builders.world(1.0, builders.training(3)))
        screen.show(builders.world(2.0, builders.training(4)))
        text = stream.getvalue()
        self.assertNotIn("\x1b", text)
        self.assertEqual(text.count("training-1 Running"), 2)
        self.assertIn("4 of 4 GPUs; membership 1.1 (4), epoch 0, step 0/900, loss 0.5000, 1000 samples/s\n", text)
        self.assertIn("begin", text.splitlines()[0])
