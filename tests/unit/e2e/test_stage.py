import copy
import json
import unittest

from story import reference, stage
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

    def test_more_cpus_make_longer_trainings_up_to_one_a_learner(self) -> None:
        for cpus, epochs in ((1, 3), (2, 3), (4, 6), (8, 12), (64, 12)):
            with self.subTest(cpus=cpus):
                self.assertEqual(container(stage.for_cpus(JOB, cpus))["args"], ["--data=/data", f"--epochs={epochs}"])


class ReferenceTest(unittest.TestCase):
    def test_the_pod_trains_what_the_job_trains_alone(self) -> None:
        spec = reference.pod(JOB)["spec"]
        environment = {each["name"]: each.get("value") for each in spec["containers"][0]["env"]}
        self.assertEqual(environment["PLIANT_SEED"], "1")
        self.assertEqual(environment["PLIANT_LOGICAL_SHARDS"], "32")
        self.assertNotIn("PLIANT_COORDINATOR", environment)
        self.assertEqual(environment["PLIANT_TERMINATION_LOG"], "/dev/termination-log")
        self.assertEqual(spec["volumes"], [{"name": "checkpoints", "hostPath": {"path": "/shared"}}])

    def test_what_the_job_says_to_its_program_is_said_there_too(self) -> None:
        job = copy.deepcopy(JOB)
        said = {"name": "PLIANT_PARAMETER_EPOCHS", "value": "3"}
        container(job)["env"] = [said]
        (alone,) = reference.pod(job)["spec"]["containers"]
        self.assertIn(said, alone["env"])
        self.assertEqual(container(job)["env"], [said])

    def test_the_hash_comes_from_the_termination_message(self) -> None:
        def status(message: str, code: int) -> dict:
            return {"containerStatuses": [{"state": {"terminated": {"message": message, "exitCode": code}}}]}

        message = json.dumps({"reason": "Completed", "parametersSha256": "ab"})
        self.assertEqual(reference.hash_of("r", status(message, 0)), "ab")
        with self.assertRaisesRegex(StoryError, "ended with exit code 2: no data"):
            reference.hash_of("r", status("no data", 2))
