import unittest

from story import commands

ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
FRAME = "\x1b[H3 jobs\x1b[K\r\ntraining-1 4\x1b[J"


class CommandsTest(unittest.TestCase):
    def test_a_command_must_say_the_pattern_without_colours(self) -> None:
        self.assertEqual(commands.said_problems(["list"], "training-1  Running", r"training-1 +Running"), [])
        problems = commands.said_problems(["list", "-A"], "nothing", r"Running")
        self.assertEqual(problems, ["kubectl pliant list -A does not say Running: nothing"])
        self.assertEqual(
            commands.said_problems(["list"], "\x1b[1mRunning", r"Running"),
            ["kubectl pliant list writes control characters into a pipe"],
        )

    def test_pods_that_are_left(self) -> None:
        deleted = {"metadata": {"name": "a", "deletionTimestamp": "2026-11-27T12:00:00Z"}}
        self.assertEqual(commands.pods_left([deleted]), [])
        self.assertEqual(commands.pods_left([deleted, {"metadata": {"name": "b"}}]), ["pods are left: b"])

    def test_a_screen_that_is_restored(self) -> None:
        drawn = f"{ENTER}{FRAME}{FRAME}^C{LEAVE}"
        self.assertEqual(commands.screen_problems(drawn.encode(), 130, "training-1"), [])
        for broken, code, problem in (
            (f"{ENTER}{FRAME}{LEAVE}", 130, "drew 1 times"),
            (f"{ENTER}{FRAME}{FRAME}", 130, "does not restore the screen"),
            (f"{ENTER}{FRAME}{FRAME}{LEAVE}Traceback", 1, "ends kubectl pliant top with 1"),
            (f"{ENTER}{FRAME}\x1b[H{LEAVE}", 130, "does not show training-1"),
        ):
            with self.subTest(problem=problem):
                self.assertRegex("\n".join(commands.screen_problems(broken.encode(), code, "training-1")), problem)


if __name__ == "__main__":
    unittest.main()
