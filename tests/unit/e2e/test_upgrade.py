import dataclasses
import unittest

from story import upgrade
from story.upgrade import Seen


class WentOn(unittest.TestCase):
    BEFORE = Seen({"alpha-0": "a", "alpha-1": "b"}, term=1, restarts=0, step=10)
    AFTER = Seen({"alpha-0": "a", "alpha-1": "b"}, term=1, restarts=0, step=30)

    def problems(self, **changes: object) -> tuple[str, ...]:
        return upgrade.went_on("alpha", self.BEFORE, dataclasses.replace(self.AFTER, **changes)).problems

    def test_a_training_that_continued(self) -> None:
        self.assertEqual(self.problems(), ())

    def test_each_problem_is_reported(self) -> None:
        for changes, problem in (
            ({"learners": {"alpha-0": "a", "alpha-1": "c"}}, "its learners were"),
            ({"restarts": 1}, "1 restarts are counted"),
            ({"term": 2}, "its coordinator's term was 1 and is 2"),
            ({"step": 10}, "it stood at step 10 and stands at 10"),
        ):
            with self.subTest(changes):
                (found,) = self.problems(**changes)
                self.assertIn(problem, found)


class SameHash(unittest.TestCase):
    def test_one_ended_with_another(self) -> None:
        self.assertEqual(upgrade.same_hash({"alpha": "x", "beta": "x"}, "x").problems, ())
        self.assertEqual(upgrade.same_hash({"alpha": "x", "beta": ""}, "x").problems, ("beta ended with ",))


if __name__ == "__main__":
    unittest.main()
