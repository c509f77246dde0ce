"""The decisions of the story of a queue that shares by speed."""

import unittest
from types import SimpleNamespace

from story import by_speed


def training(desired, trains):
    return SimpleNamespace(
        job=SimpleNamespace(learners_desired=desired), trains_on=lambda learners: learners == trains
    )


class BySpeedTest(unittest.TestCase):
    def test_settled_is_after_more(self):
        settled = by_speed.settled_at(1)
        self.assertFalse(settled(training(1, 1)), "it has not had more")
        self.assertFalse(settled(training(8, 8)))
        self.assertFalse(settled(training(1, 8)), "the others leave")
        self.assertTrue(settled(training(1, 1)))

    def test_speeds_with_more_learners_are_lower(self):
        for speeds, holds in (
            ({1: 60.0, 4: 38.0, 8: 18.0}, True),
            ({1: 60.0, 2: 61.0, 8: 18.0}, True),  # with two it is as fast
            ({1: 60.0, 4: 60.0}, False),
            ({1: 60.0}, False),  # nothing to compare with
            ({4: 38.0}, False),
            ({}, False),
        ):
            with self.subTest(speeds):
                self.assertEqual(by_speed.slower(speeds) == (), holds)

    def test_each_run_has_templates_of_its_own(self):
        example = {
            "metadata": {"name": "example", "namespace": "demo"},
            "spec": {
                "training": {"seed": 0},
                "template": {"spec": {"containers": [{"name": "learner", "env": []}], "volumes": []}},
            },
        }
        made = [by_speed.job(example, "scales", run) for run in ("1", "2")]
        self.assertNotEqual(made[0]["spec"]["template"], made[1]["spec"]["template"])
        self.assertEqual(made[0]["metadata"], {"name": "scales", "namespace": "demo"})
        self.assertEqual(example["metadata"]["name"], "example")


if __name__ == "__main__":
    unittest.main()
