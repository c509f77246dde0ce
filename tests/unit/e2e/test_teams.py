import copy
import unittest

import builders
from test_stage import JOB, container

from story import teams
from story.dashboards import Answer, Query, Series


class ManifestTest(unittest.TestCase):
    def test_a_team_has_a_queue_that_only_its_namespaces_may_use(self) -> None:
        queue = teams.queue("team-a")
        self.assertEqual(queue["spec"]["namespaceSelector"]["matchLabels"], {"pliant-demo/team": "team-a"})
        self.assertEqual(queue["spec"]["guaranteed"], 4)

    def test_a_member_is_in_its_teams_namespace_and_queue(self) -> None:
        before = copy.deepcopy(JOB)
        job = teams.member(JOB, "team-b", 9)
        self.assertEqual((job["metadata"]["namespace"], job["spec"]["queue"]), ("team-b", "team-b"))
        self.assertEqual(container(job)["args"], ["--data=/data", "--epochs=9"])
        self.assertEqual(JOB, before)


class ReturnTest(unittest.TestCase):
    def test_a_late_return_is_a_problem(self) -> None:
        for shrunk, holds in ((2.5, True), (30.0, True), (30.5, False)):
            with self.subTest(shrunk=shrunk):
                self.assertEqual(teams.Return(shrunk, 40.0).problems() == (), holds)


class QueuesTest(unittest.TestCase):
    def test_each_number_that_differs_is_named(self) -> None:
        wanted = {"team-a": {"allocated": 8, "borrowed": 4}, "team-b": {"lent": 4}}
        statuses = {"team-a": {"allocated": 8, "borrowed": 4}, "team-b": {"lent": 4, "waiting": 0}}
        self.assertEqual(teams.differences(statuses, wanted), ())
        statuses = {"team-a": {"allocated": 8, "borrowed": 0}, "team-b": {}}
        self.assertEqual(
            teams.differences(statuses, wanted),
            ("team-a.status.borrowed is 0, not 4", "team-b.status.lent is None, not 4"),
        )


class InterruptionsTest(unittest.TestCase):
    def test_a_job_that_shrinks_is_not_interrupted(self) -> None:
        phases = ("Queued", "Starting", "Running", "Resizing", "Running", "Succeeded")
        self.assertEqual(self.interruptions(phases, {}), ())

    def test_an_eviction_and_failed_learners_are_reported(self) -> None:
        for phases, status, told in (
            (("Running", "Queued", "Queued", "Starting", "Running"), {},
             ("training-1 was Queued: why", "training-1 was Starting: why")),
            (("Running", "Recovering", "Running"), {}, ("training-1 was Recovering: why",)),
            (("Running", "Failed"), {}, ("training-1 was Failed: why",)),
            (("Running",), {"restarts": 1}, ("training-1: 1 learners are said to have failed",)),
        ):  # fmt: skip
            with self.subTest(phases=phases):
                self.assertEqual(self.interruptions(phases, status), told)

    def interruptions(self, phases: tuple[str, ...], status: dict) -> tuple[str, ...]:
        worlds = [builders.world(0.0, builders.training(4, phase=phase, reason="why")) for phase in phases]
        return teams.interruptions(worlds, {"training-1": status})


class DashboardTest(unittest.TestCase):
    def test_both_queues_and_the_loans_are_shown(self) -> None:
        a, b = Series("default/team-a borrowed", 0.0, 4.0), Series("default/team-b borrowed", 0.0, 0.0)
        lent = (Series("default/team-a lent", 0.0, 0.0), Series("default/team-b lent", 0.0, 4.0))
        loans = Query("Loans", "max(pliant_queue_borrowed_gpus)", ""), Query("Loans", "max(pliant_queue_lent_gpus)", "")
        other = Answer(Query("Loss", "max(pliant_train_loss)", ""), (Series("team-a/training-1", 0.1, 2.0),))
        for borrowed, problems in (
            ((a, b), ()),
            ((a,), ("Loans: nothing about team-b for max(pliant_queue_borrowed_gpus)",)),
            ((Series(a.name, 0.0, 3.0), b), ("default/team-a borrowed was never 4, but 3.0",)),
        ):
            with self.subTest(problems=problems):
                answers = [Answer(loans[0], borrowed), Answer(loans[1], lent), other]
                self.assertEqual(teams.check_dashboard(answers).problems, problems)
        self.assertFalse(teams.check_dashboard([other]).holds)
