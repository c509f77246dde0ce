"""Which moments run, in which order, and which run again after an interruption."""

import tempfile
import unittest
from pathlib import Path

from pliantdev import e2e, moments, source_tree, testing
from pliantdev.counts import Counts
from pliantdev.errors import DevError
from pliantdev.moments import Moment, moment, pending, play
from pliantdev.record import Record
from pliantdev.rows import Row

PASSED, FAILED = Counts(passed=3), Counts(passed=2, failed=1)


class MomentsTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.record = Record(self.folder / "run.json", {})
        self.ran: list[str] = []

    def moment(self, name: str, result: Counts | DevError | None, *needs: str) -> Moment:
        def run() -> Counts | None:
            self.ran.append(name)
            if isinstance(result, DevError):
                raise result
            return result

        return moment(name, run, needs)

    def verdicts(self) -> dict[str, bool]:
        return {row.name: row.passed for row in self.record.rows}


class PlayTest(MomentsTest):
    def test_a_failure_keeps_nothing_else_from_running(self) -> None:
        play(
            [
                self.moment("format", None),
                self.moment("types", DevError("line 3 is wrong")),
                self.moment("chart", FAILED),
                self.moment("unit tests", PASSED),
            ],
            self.record,
        )
        self.assertEqual(
            self.verdicts(), {"format": True, "types": False, "chart": False, "unit tests": True}
        )
        self.assertEqual(self.record.rows[1].problem, "line 3 is wrong")

    def test_except_for_what_needs_what_failed(self) -> None:
        play(
            [
                self.moment("compile", DevError("no such header")),
                self.moment("unit tests", PASSED, "compile"),
                self.moment("chart", PASSED),
            ],
            self.record,
        )
        self.assertEqual(self.ran, ["compile", "chart"])
        self.assertIn("compile", self.record.rows[1].problem)
        self.assertEqual(self.verdicts(), {"compile": False, "unit tests": False, "chart": True})

    def test_stops_after_the_first_failure_if_asked_to(self) -> None:
        play([self.moment("a", FAILED), self.moment("b", PASSED)], self.record, fail_fast=True)
        self.assertEqual(self.ran, ["a"])


class PendingTest(MomentsTest):
    def names(self, *all_moments: Moment) -> list[str]:
        return [each.name for each in pending(all_moments, self.record)]

    def test_a_moment_that_has_passed_is_left_out(self) -> None:
        plan = [self.moment("a", PASSED), self.moment("b", FAILED), self.moment("c", PASSED)]
        play(plan[:2], self.record)
        self.assertEqual(self.names(*plan), ["b", "c"])

    def test_a_needed_moment_is_played_again(self) -> None:
        plan = [
            self.moment("compile", None),
            self.moment("unit tests", PASSED, "compile"),
            self.moment("fuzz tests", PASSED, "compile"),
        ]
        play(plan[:2], self.record)
        self.assertEqual(self.names(*plan), ["compile", "fuzz tests"])
        play(plan[2:], self.record)
        self.assertEqual(self.names(*plan), [])

    def test_a_moment_of_several_rows_has_passed_when_it_ended_and_all_of_them_passed(self) -> None:
        story = Moment("e2e", lambda add: None)
        for name, rows, ended, left in (
            ("interrupted", {"e2e: a": PASSED}, False, ["e2e"]),
            ("one failed", {"e2e: a": PASSED, "e2e: b": FAILED}, True, ["e2e"]),
            ("all passed", {"e2e: a": PASSED, "e2e: b": PASSED}, True, []),
            ("the stage could not be set", {"e2e: a": PASSED, "e2e": FAILED}, True, ["e2e"]),
            ("others failed", {"e2e: a": PASSED, "e2e 2": FAILED}, True, []),
        ):
            with self.subTest(name):
                record = Record(self.folder / "run.json", {})
                for each, counts in rows.items():
                    record.add(Row(each, 1.0, counts))
                if ended:
                    record.end("e2e")
                self.assertEqual([each.name for each in pending([story], record)], left)

    def test_failures_of_an_earlier_run_are_forgotten_when_it_is_run_again(self) -> None:
        self.record.add(Row("e2e: a", 1.0, PASSED))
        self.record.add(Row("e2e", 1.0, FAILED))
        self.record.end("e2e")
        story = Moment("e2e", lambda add: add(Row("e2e: b", 1.0, PASSED)))
        play([story], self.record)
        self.assertEqual(self.verdicts(), {"e2e: a": True, "e2e: b": True})
        self.assertTrue(moments.has_passed(story, self.record))


class SetsTest(unittest.TestCase):
    def names(self, *sets: str) -> list[str]:
        return [each.name for each in testing.of_sets(sets)]

    def test_each_is_made_of_moments(self) -> None:
        in_images = [
            "Keras over tensorflow",
            "Keras over torch",
            "Keras over jax",
            "Hugging Face",
            "Trainers of Hugging Face",
            "Lightning and trackers",
        ]
        for sets, names in (
            (["unit"], ["compile", "unit tests"]),
            (["chart"], ["chart"]),
            (["integration", "fuzz"], ["compile", "fuzz tests", "integration tests"]),
            (["python"], ["compile", "python tests", *in_images]),
            (["e2e"], ["cluster and images", "e2e"]),
            (
                [],
                [
                    "chart",
                    "compile",
                    "unit, scenario, property, simulation, fuzz, fidelity, python tests",
                    "integration tests",
                    *in_images,
                    "cluster and images",
                    "e2e",
                ],
            ),
        ):
            with self.subTest(sets=sets):
                self.assertEqual(self.names(*sets), names)

    def test_the_first_half_of_all_needs_no_cluster(self) -> None:
        record = Record(Path("unused"), {})
        halves = [
            [each.name for each in testing.of_half(half, "release", None, record)]
            for half in ("all/1", "all/2")
        ]
        self.assertNotIn("cluster and images", halves[0])
        self.assertIn("the oldest transformers", halves[0], "a long one")
        self.assertNotIn("the oldest transformers", self.names())
        self.assertEqual(halves[1], ["cluster and images", "e2e", "the kills of ./dev up"])
        self.assertLessEqual({*self.names()}, {*halves[0], *halves[1], self.names()[2]})

    def test_arguments_that_do_not_go_together(self) -> None:
        for sets, resume, problem, remedy in (
            (["all/1", "unit"], False, "all/1 cannot be combined", "./dev test all/1"),
            (["all", "chart"], False, "all cannot be combined", "./dev test all"),
            (["unit"], True, "--resume is for the set all", "./dev test all --resume"),
            ([], True, "--resume is for the set all", "./dev test all --resume"),
        ):
            with (
                self.subTest(sets=sets),
                self.assertRaisesRegex(DevError, f"{problem}(.|\n)*remedy: {remedy}"),
            ):
                testing.check_arguments(sets, None, resume)


class ResumeTest(MomentsTest):
    def test_results_of_something_else_are_not_taken_over(self) -> None:
        head = {"source": "abc", "preset": "release", "cifar10": None}
        file = self.folder / "run.json"
        for name, earlier, taken in (
            ("the same", {}, True),
            ("another source", {"source": "def"}, False),
            ("another preset", {"preset": "dev"}, False),
            ("other images", {"cifar10": "/images"}, False),
        ):
            with self.subTest(name):
                Record(file, {**head, **earlier}).end("a")
                found = testing.earlier_record(file, head)
                self.assertEqual(found is not None, taken)
        self.assertIsNone(testing.earlier_record(self.folder / "absent.json", head))


class StoryResultsTest(unittest.TestCase):
    def test_each_moment_is_a_row(self) -> None:
        text = (
            '{"name": "the story", "seconds": 81.2, "passed": 9, "failed": 0}\n'
            '{"name": "a drained node", "seconds": 40, "passed": 3, "failed": 1}\n'
            '{"name": "being wri'
        )
        self.assertEqual(
            e2e.rows_of(text),
            [
                Row("e2e: the story", 81.2, Counts(passed=9)),
                Row("e2e: a drained node", 40, Counts(passed=3, failed=1)),
            ],
        )
        self.assertEqual(e2e.rows_of(""), [])


class SourceTreeTest(unittest.TestCase):
    def test_its_identity_follows_contents_and_names_only(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            root = Path(scratch)
            (root / "a").write_text("text")
            first = source_tree.identity(root)
            (root / "build").mkdir()
            (root / "build" / "object").write_text("made from it")
            self.assertEqual(source_tree.identity(root), first)
            (root / "b").write_text("")
            second = source_tree.identity(root)
            (root / "a").write_text("other text")
            (root / "b").unlink()
            third = source_tree.identity(root)
            (root / "a").write_text("text")
            self.assertEqual(source_tree.identity(root), first)
            self.assertEqual(len({first, second, third}), 3)


if __name__ == "__main__":
    unittest.main()
