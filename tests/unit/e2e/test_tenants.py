import unittest

from story import tenants
from story.tenants import Seen


class Unharmed(unittest.TestCase):
    BEFORE = Seen({"victim-0": "a", "victim-1": "b"}, restarts=1, step=10)

    def problems(self, **changes: object) -> tuple[str, ...]:
        after = {"pods": self.BEFORE.pods, "restarts": 1, "step": 20} | changes
        return tenants.unharmed(self.BEFORE, Seen(**after)).problems

    def test_a_training_that_continued(self) -> None:
        self.assertEqual(self.problems(), ())

    def test_a_learner_of_the_same_name_is_another_one(self) -> None:
        self.assertIn("its learners were", self.problems(pods={"victim-0": "a", "victim-1": "c"})[0])

    def test_an_operator_that_died(self) -> None:
        self.assertEqual(self.problems(restarts=3), ("the operator was restarted 2 times",))

    def test_a_training_that_stands_still(self) -> None:
        self.assertEqual(self.problems(step=10), ("it stands still at step 10",))


class Refused(unittest.TestCase):
    def test_an_answer_with_the_right_word(self) -> None:
        self.assertEqual(tenants.refused("it", 1, "Forbidden: pliant.dev", "pliant").problems, ())

    def test_another_answer(self) -> None:
        self.assertEqual(
            tenants.refused("it", 1, "no such host", "pliant").problems, ("the answer does not say 'pliant': no such host",)
        )

    def test_no_refusal(self) -> None:
        self.assertEqual(tenants.refused("it", 0, "created", "pliant").problems, ("it was taken",))


if __name__ == "__main__":
    unittest.main()
