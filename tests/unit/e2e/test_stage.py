import copy
import json
import unittest
import unittest.mock

from story import pace, reference, stage
from story.errors import StoryError

JOB = {
    "metadata": {"name": "training-1"},
    "spec": {
        "elastic": {"minLearners": 1, "maxLearners": 8},
        "training": {"globalBatchSize": 256, "logicalShards": 32, "seed": 1},
        "checkpoint": {"volume": {"hostPath": {"path": "/shared"}}},
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "learner",
                        "image": "pliant/learner",
                        "args": ["--data=/data", "--epochs=3"],
                        "volumeMounts": [],
                    }
                ],
                "volumes": [],
            }
        },
    },
}


def container(job: dict) -> dict:
    return job["spec"]["template"]["spec"]["containers"][0]


class ManifestTest(unittest.TestCase):
    def test_image_and_epochs_are_replaced_in_a_copy(self) -> None:
        changed = stage.with_epochs(stage.with_image(JOB, "there/learner:1"), 7)
        self.assertEqual(container(changed)["image"], "there/learner:1")
        self.assertEqual(container(changed)["args"], ["--data=/data", "--epochs=7"])
        self.assertEqual(container(JOB)["args"], ["--data=/data", "--epochs=3"])


class PaceTest(unittest.TestCase):
    def test_a_job_reads_its_pace_from_a_file_of_its_own(self) -> None:
        first = pace.paced(JOB)
        renamed = copy.deepcopy(first)
        renamed["metadata"]["name"] = "other"
        for job, file in ((first, "/pace/training-1"), (pace.paced(first), "/pace/training-1"),
                          (pace.paced(renamed), "/pace/other")):  # fmt: skip
            with self.subTest(file):
                learner, spec = container(job), job["spec"]["template"]["spec"]
                self.assertEqual(learner["env"], [{"name": "PLIANT_PACE_FILE", "value": file}])
                self.assertEqual([each["mountPath"] for each in learner["volumeMounts"]], ["/pace"])
                self.assertEqual(spec["volumes"], [{"name": "pace", "configMap": {"name": "pace"}}])
        self.assertEqual(container(pace.unpaced(first))["env"], [])
        self.assertNotIn("env", container(JOB))

    def test_learners_let_go_are_notified_at_once(self) -> None:
        kubectl = unittest.mock.Mock()
        pace.let_go(kubectl, "training-1")
        kubectl.run.assert_called_once_with(
            "patch", "configmap", "pace", "--type=merge", "-p", '{"data": {"training-1": "0"}}'
        )
        self.assertIn("--selector=pliant.dev/job=training-1,pliant.dev/role=learner", kubectl.attempt.call_args.args)


class ReferenceTest(unittest.TestCase):
    def test_the_pod_trains_what_the_job_trains_alone(self) -> None:
        spec = reference.pod(JOB)["spec"]
        environment = {each["name"]: each.get("value") for each in spec["containers"][0]["env"]}
        self.assertEqual(environment["PLIANT_SEED"], "1")
        self.assertEqual(environment["PLIANT_LOGICAL_SHARDS"], "32")
        self.assertNotIn("PLIANT_COORDINATOR", environment)
        self.assertEqual(environment["PLIANT_TERMINATION_LOG"], "/dev/termination-log")
        self.assertEqual(spec["volumes"], [{"name": "checkpoints", "hostPath": {"path": "/shared"}}])
        self.assertEqual(reference.pod(pace.paced(JOB))["spec"]["containers"][0]["env"], spec["containers"][0]["env"])

    def test_the_reference_has_the_environment_of_the_job(self) -> None:
        job = copy.deepcopy(JOB)
        said = {"name": "PLIANT_PARAMETER_EPOCHS", "value": "3"}
        container(job)["env"] = [said]
        (alone,) = reference.pod(job)["spec"]["containers"]
        self.assertIn(said, alone["env"])
        self.assertEqual(container(job)["env"], [said])

    def test_a_reference_runs_once_and_is_waited_for(self) -> None:
        self.addCleanup(reference._known.clear)
        kubectl = unittest.mock.Mock()
        message = json.dumps({"reason": "Completed", "parametersSha256": "ab"})
        terminated = {"containerStatuses": [{"state": {"terminated": {"message": message, "exitCode": 0}}}]}
        kubectl.json.return_value = {"status": {"phase": "Succeeded", **terminated}}
        other = copy.deepcopy(JOB)
        other["spec"]["training"]["seed"] = 2
        reference.begin(kubectl, [JOB])
        self.assertEqual(reference.parameter_hashes(kubectl, [JOB, other]), ["ab", "ab"])
        self.assertEqual(kubectl.apply.call_count, 2)
        self.assertEqual(reference.parameter_hashes(kubectl, [pace.paced(other)]), ["ab"])
        self.assertEqual(kubectl.apply.call_count, 2)
        third = copy.deepcopy(JOB)
        third["spec"]["training"]["seed"] = 3
        reference.begin(kubectl, [third])
        reference.forget()
        reference.parameter_hashes(kubectl, [third])
        self.assertEqual(kubectl.apply.call_count, 4, "its pod was deleted meanwhile")

    def test_one_that_goes_with_its_node_is_run_again_and_one_that_fails_is_not(self) -> None:
        self.addCleanup(reference._known.clear)
        lost = {"containerStatuses": [{"state": {"terminated": {"exitCode": 255}}}]}
        message = json.dumps({"reason": "Completed", "parametersSha256": "ab"})
        ended = {"containerStatuses": [{"state": {"terminated": {"message": message, "exitCode": 0}}}]}
        job = copy.deepcopy(JOB)
        job["spec"]["training"]["seed"] = 4
        kubectl = unittest.mock.Mock()
        kubectl.json.side_effect = [
            {"status": {"phase": "Failed", **lost}},
            {"status": {"phase": "Running"}},
            {"status": {"phase": "Succeeded", **ended}},
        ]
        with unittest.mock.patch.object(reference.time, "sleep"):
            self.assertEqual(reference.parameter_hashes(kubectl, [job]), ["ab"])
        self.assertEqual(kubectl.apply.call_count, 2)
        killed = {"containerStatuses": [{"state": {"terminated": {"exitCode": 137}}}]}
        self.assertFalse(reference.was_lost(killed))
        self.assertFalse(reference.was_lost({}))

    def test_the_hash_comes_from_the_termination_message(self) -> None:
        def status(message: str, code: int) -> dict:
            return {"containerStatuses": [{"state": {"terminated": {"message": message, "exitCode": code}}}]}

        message = json.dumps({"reason": "Completed", "parametersSha256": "ab"})
        self.assertEqual(reference.hash_of("r", status(message, 0)), "ab")
        with self.assertRaisesRegex(StoryError, "ended with exit code 2: no data"):
            reference.hash_of("r", status("no data", 2))
