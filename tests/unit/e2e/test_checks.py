import unittest

import builders
from story import checks
from story.resizes import Request, report


def outcome(**changes: object) -> checks.Outcome:
    values = {
        "name": "training-1", "phase": "Succeeded", "steps": 900, "steps_total": 900, "accuracy": 0.98,
        "parameters_sha256": "ab", "reference_sha256": "ab",
    }  # fmt: skip
    values |= changes
    evaluations = ((1, 0.5), (values["steps"] or 900, values["accuracy"]))
    return checks.Outcome(**{"evaluations": evaluations, **values})


def problems(found: list[checks.Check]) -> list[str]:
    return [problem for check in found for problem in check.problems]


class OutcomesTest(unittest.TestCase):
    def test_a_good_end_holds(self) -> None:
        self.assertEqual(problems(checks.check_outcomes([outcome()])), [])

    def test_each_thing_that_is_off_is_named(self) -> None:
        cases = (
            ({"phase": "Failed"}, "training-1 is Failed"),
            ({"steps": 899}, "training-1 ended at step 899 of 900"),
            ({"steps": None, "steps_total": None}, "training-1 ended at step None of None"),
            ({"accuracy": 0.95}, "training-1 has a test accuracy of 0.95"),
            ({"accuracy": None}, "training-1 has a test accuracy of None"),
            ({"evaluations": ((900, 0.98),)}, "training-1 was evaluated at the steps [900]"),
            ({"evaluations": ((9, 0.5), (9, 0.98))}, "training-1 was evaluated at the steps [9, 9]"),
            ({"evaluations": ((9, 0.5), (900, 0.97))}, "training-1 was last evaluated at step 900 with an accuracy of 0.97"),
            ({"parameters_sha256": "cd"}, "training-1 ended with cd, the undisturbed run with ab"),
            (
                {"parameters_sha256": "", "reference_sha256": ""},
                "training-1 ended with no hash, the undisturbed run with ",
            ),
        )
        for changes, problem in cases:
            with self.subTest(problem=problem):
                self.assertEqual(problems(checks.check_outcomes([outcome(**changes)])), [problem])


class WorldsTest(unittest.TestCase):
    def test_good_worlds_have_no_problems(self) -> None:
        good = [builders.world(0.0, builders.training(8, step=3)), builders.world(1.0, builders.training(4, step=3))]
        self.assertEqual(problems(checks.check_worlds(good, 8)), [])

    def test_more_gpus_than_there_are(self) -> None:
        both = builders.world(0.0, builders.training(6), builders.training(3, name="training-2", uid="u2"))
        self.assertEqual(problems(checks.check_worlds([both], 8)), ["9 of 8 GPUs were held"])

    def test_fewer_learners_than_the_minimum(self) -> None:
        small = builders.training(1, min_learners=2)
        self.assertEqual(
            problems(checks.check_worlds([builders.world(0.0, small)] * 2, 8)),
            ["training-1 was allocated 1 learners, outside of 2 to 8"],
        )

    def test_a_maximum_that_was_lowered_a_moment_ago(self) -> None:
        for observed, held in ((1, []), (2, ["training-1 was allocated 8 learners, outside of 1 to 6"])):
            with self.subTest(observed=observed):
                large = builders.training(8, max_learners=6, generation=2, observed_generation=observed)
                self.assertEqual(problems(checks.check_worlds([builders.world(0.0, large)], 8)), held)

    def test_a_step_that_is_undone(self) -> None:
        worlds = [builders.world(0.0, builders.training(1, step=5)), builders.world(1.0, builders.training(1, step=4))]
        self.assertEqual(problems(checks.check_worlds(worlds, 8)), ["training-1 went from step 5 back to 4"])

    def test_a_resize_that_loses_steps(self) -> None:
        resizes = [
            ("training-1", builders.resize(8, 4, running=1.0)),
            ("training-2", builders.resize(4, 3, running=2.0, lost=2)),
        ]
        self.assertEqual(checks.check_resizes(resizes).problems, ("training-2 lost 2 steps from 4 to 3 learners",))


class ResizesTest(unittest.TestCase):
    def test_a_resize_belongs_to_the_last_request_before_it(self) -> None:
        requests = [Request("apply 1", 0.0), Request("apply 2", 10.0)]
        resizes = [
            ("training-1", builders.resize(0, 8, running=4.0)),
            ("training-1", builders.resize(8, 4, running=11.5)),
            ("older", builders.resize(1, 2, running=-5.0)),
        ]
        rows = [each.row() for each in report(requests, resizes)]
        self.assertEqual(
            rows,
            [
                ["apply 1", "training-1", "0 → 8", "4.0 s", "-", "0"],
                ["apply 2", "training-1", "8 → 4", "1.5 s", "0.25 s", "0"],
            ],
        )
