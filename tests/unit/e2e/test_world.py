import unittest

import builders
from story.world import Pod, Progress, coordinator_of, make_world, node_without_coordinator


def pod_json(name: str, role: str, *, node: str = "node-1", phase: str = "Running", uid: str = "u1") -> dict:
    return {
        "metadata": {"name": name, "uid": name, "labels": {"pliant.dev/job-uid": uid, "pliant.dev/role": role}},
        "spec": {"nodeName": node} if node else {"schedulingGates": [{"name": "pliant.dev/gpu"}]},
        "status": {"phase": phase},
    }


JOB_JSON = {
    "metadata": {"name": "training-1", "uid": "u1"},
    "spec": {"priority": 5000, "elastic": {"minLearners": 1, "maxLearners": 8}},
    "status": {
        "phase": "Running",
        "desiredLearners": 2,
        "conditions": [{"type": "Running", "status": "True", "reason": "Training", "message": "2 learners"}],
    },
}

PROGRESS_JSON = {
    "term": 1,
    "membership": {"id": "1.2", "learners": ["a", "b"]},
    "state": "Running",
    "step": 7,
    "resizes": [
        {"membership": "1.2", "kind": "Planned", "from": 1, "to": 2, "requestedUnixSeconds": 10.0,
         "runningUnixSeconds": 11.5, "longestPauseSeconds": 0.1, "stepsLost": 0, "step": 5},
        {"membership": "1.3", "kind": "Planned", "from": 2, "to": 3, "requestedUnixSeconds": 12.0, "step": 7},
    ],
}  # fmt: skip


class WorldTest(unittest.TestCase):
    def test_puts_jobs_pods_and_progress_together(self) -> None:
        pods = [
            pod_json("a", "learner"),
            pod_json("b", "learner"),
            pod_json("c", "coordinator"),
            pod_json("x", "learner", uid="u2"),
        ]
        world = make_world(1.0, [JOB_JSON], pods, {"u1": Progress.parse(PROGRESS_JSON)})
        training = world.trainings["training-1"]
        self.assertEqual([pod.name for pod in training.learner_pods()], ["a", "b"])
        self.assertEqual(training.gpus_held, 2)
        self.assertTrue(training.job.is_true("Running"))
        self.assertFalse(training.job.is_true("Complete"))
        self.assertTrue(training.trains_on(2))
        self.assertFalse(training.trains_on(3))

    def test_a_gpu_is_held_by_a_bound_pod_until_it_has_ended(self) -> None:
        for node, phase, holds in (
            ("", "Pending", False),
            ("n", "Pending", True),
            ("n", "Running", True),
            ("n", "Succeeded", False),
        ):
            with self.subTest(node=node, phase=phase):
                self.assertEqual(Pod.parse(pod_json("a", "learner", node=node, phase=phase)).holds_gpu, holds)
        self.assertFalse(Pod.parse(pod_json("a", "coordinator")).holds_gpu)

    def test_trains_only_when_members_plan_and_pods_agree(self) -> None:
        steady = builders.training(4)
        self.assertTrue(steady.trains_on(4))
        more_pods = builders.Training(steady.job, (*steady.pods, builders.learner(9)), steady.progress)
        self.assertFalse(more_pods.trains_on(4))
        resizing = builders.Training(steady.job, steady.pods, builders.progress(4, state="Resizing"))
        self.assertFalse(resizing.trains_on(4))
        self.assertFalse(builders.training(4, phase="Succeeded").trains_on(4))

    def test_resizes_that_do_not_run_yet_are_left_out(self) -> None:
        self.assertEqual([each.membership for each in Progress.parse(PROGRESS_JSON).resizes], ["1.2"])

    def test_a_fact_unknown_to_the_coordinator_is_none(self) -> None:
        progress = Progress.parse({"term": 1, "membership": None, "state": "Waiting"})
        self.assertEqual((progress.members, progress.step, progress.loss), ((), None, None))

    def test_the_coordinator_is_the_running_one_of_the_highest_term(self) -> None:
        pods = [
            Pod.parse(pod_json(f"j-u1-coordinator-{term}", "coordinator", phase=phase))
            for term, phase in ((2, "Running"), (10, "Running"), (11, "Pending"))
        ]
        self.assertEqual(coordinator_of(builders.job(), pods).name, "j-u1-coordinator-10")
        self.assertIsNone(coordinator_of(builders.job(uid="u2"), pods))

    def test_the_node_without_the_coordinator_has_learners(self) -> None:
        learners = (
            builders.learner(0, node="node-1", phase="Failed"),
            builders.learner(1, node="node-2"),
            builders.learner(2, node="node-3"),
        )
        for coordinators, node in (((), "node-2"), (("node-1",), "node-2"), (("node-2",), "node-3")):
            with self.subTest(coordinators=coordinators):
                pods = [Pod.parse(pod_json("j-u1-coordinator-1", "coordinator", node=each)) for each in coordinators]
                training = builders.Training(builders.job(), (*learners, *pods), None)
                self.assertEqual(node_without_coordinator(training), node)
