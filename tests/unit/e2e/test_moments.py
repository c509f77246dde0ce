import copy
import unittest

import builders
from test_stage import JOB, container

from story import bad_jobs
from story.errors import StoryError
from story.operator_pod import leader_name
from story.survivor import Break
from story.world import Condition


def named(*names: str) -> dict:
    return {"items": [{"metadata": {"name": name}} for name in names]}


def held_by(*holders: str) -> dict:
    return {"items": [{"spec": {"holderIdentity": holder}} for holder in holders]}


class OperatorTest(unittest.TestCase):
    def test_the_leader_is_the_pod_that_holds_the_lease(self) -> None:
        self.assertEqual(leader_name(held_by("op-b_7f"), named("op-a", "op-b")), "op-b")
        with self.assertRaisesRegex(StoryError, "no pod of the operator holds its lease"):
            leader_name(held_by("op-c_7f"), named("op-a", "op-b"))


class BreakTest(unittest.TestCase):
    def test_a_graceful_break_loses_nothing_another_one_back_to_the_checkpoint(self) -> None:
        for after, graceful, sudden in ((50, True, True), (49, False, True), (40, False, True), (39, False, False)):
            with self.subTest(after=after):
                found = Break(step_before=50, checkpoint_step=40, step_after=after, time=0.0)
                self.assertEqual(found.problems(exactly=True) == (), graceful)
                self.assertEqual(found.problems(exactly=False) == (), sudden)


class BadJobsTest(unittest.TestCase):
    def test_each_spoils_the_manifest_in_its_own_way(self) -> None:
        spoilt = []
        for bad in bad_jobs.BAD_JOBS:
            job = copy.deepcopy(JOB)
            bad.spoil(job)
            self.assertNotIn(job, [JOB, *spoilt], bad.name)
            spoilt.append(job)
        self.assertEqual(container(JOB)["args"], ["--data=/data", "--epochs=3"])

    def test_a_job_says_what_is_wrong_by_a_condition_and_fails_where_it_should(self) -> None:
        crash = next(bad for bad in bad_jobs.BAD_JOBS if bad.fails)
        for status, message, says in (
            ("True", f"exit code {crash.says}", True),
            ("True", "no", False),
            ("False", crash.says, False),
        ):
            with self.subTest(status=status, message=message):
                job = builders.job("bad", conditions={"Failed": Condition(status, "Failures", message)})
                world = builders.world(0.0, builders.Training(job, (), None))
                self.assertEqual(bad_jobs.says(world, crash), says)
        self.assertFalse(bad_jobs.says(builders.world(0.0), crash))
