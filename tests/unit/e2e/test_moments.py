import copy
import dataclasses
import json
import random
import unittest
import unittest.mock

import builders
from test_stage import JOB, container

from story import bad_jobs, churn, examples, maintenance, spoilt, tutorial
from story import container as container_of_story
from story.errors import StoryError
from story.faults import Recovery
from story.operator_pod import leader_name
from story.scene import restored_step
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


class KillTest(unittest.TestCase):
    def test_without_hands_on_the_nodes_the_pod_goes(self) -> None:
        kubectl = unittest.mock.Mock()
        container_of_story.kill(unittest.mock.Mock(dev=None), kubectl, "learner-1")
        kubectl.run.assert_called_once_with("delete", "pod", "learner-1", "--force", "--grace-period=0")


class RecoveryTest(unittest.TestCase):
    def test_a_fault_costs_what_its_resizes_cost(self) -> None:
        resizes = [builders.resize(8, 7, running=3.0, lost=0), builders.resize(7, 8, running=5.0, lost=1)]
        row = Recovery("SIGKILL", 4.25, resizes).row()
        self.assertEqual(row, ["SIGKILL", "4.2 s", f"{resizes[0].pause_seconds:.2f} s", "1"])
        self.assertEqual(Recovery("SIGKILL of the coordinator", 1.0, []).row()[2:], ["0.00 s", "0"])


class BreakTest(unittest.TestCase):
    def test_a_saved_step_must_not_be_lost(self) -> None:
        for restored, holds in ((51, True), (50, True), (49, False), (0, False)):
            with self.subTest(restored=restored):
                self.assertEqual(Break(min_step=50, step_restored=restored, time=0.0).problems() == (), holds)

    def test_learners_log_which_checkpoint_they_took_up(self) -> None:
        logs = '{"message":"entered","tick":0}\nno json\n{"message":"restored","step":40,"tick":47}\n'
        self.assertEqual(restored_step(logs), 40)
        self.assertEqual(restored_step('{"message":"starting afresh"}\n'), 0)


class BadJobsTest(unittest.TestCase):
    def test_each_spoils_the_manifest_in_its_own_way(self) -> None:
        spoilt_jobs = []
        for each in (*spoilt.BAD_JOBS, spoilt.raising_program("there/pytorch:1"), *spoilt.REFUSED_JOBS):
            job = copy.deepcopy(JOB)
            each.spoil(job)
            self.assertNotIn(job, [JOB, *spoilt_jobs], each.name)
            spoilt_jobs.append(job)
        self.assertEqual(container(JOB)["args"], ["--data=/data", "--epochs=3"])

    def test_a_job_that_loses_all_learners_was_harmed(self) -> None:
        def world(*numbers: int, phase: str = "Running") -> builders.World:
            pods = tuple(builders.learner(number, phase=phase) for number in numbers)
            return builders.world(0.0, builders.Training(builders.job("bystander"), pods, None))

        first = {builders.learner(number).name for number in (0, 1)}
        for worlds, problems in (
            ([world(0), world(0, 1), world(1, 2), world(2, 3)], 0),
            ([world(0, 1), world(2, 3)], 1),
            ([world(0, 1), world(), world(2)], 1),
            ([world(0, 1), world(0, phase="Failed")], 1),
        ):
            with self.subTest(worlds=worlds):
                self.assertEqual(len(bad_jobs.unharmed(worlds, first).problems), problems)

    def test_one_learner_raises_and_the_others_end_well(self) -> None:
        def world(*phases: str) -> builders.World:
            pods = tuple(builders.learner(number, phase=phase) for number, phase in enumerate(phases))
            return builders.world(0.0, builders.Training(builders.job("raises"), pods, None))

        for worlds, holds in (
            ([world("Running", "Running"), world("Failed", "Running"), world("Failed", "Succeeded")], True),
            ([world("Running", "Running"), world("Failed")], True),
            ([world("Running", "Running"), world("Failed", "Failed")], False),
            ([world("Running"), world("Failed")], False),
            ([world("Running", "Running")], False),
            ([builders.world(0.0)], False),
        ):
            with self.subTest(worlds=worlds):
                self.assertEqual(bad_jobs.one_fails(worlds, "raises").problems == (), holds)

    def test_a_traceback_is_looked_for_in_the_logs(self) -> None:
        bad = spoilt.raising_program("there/pytorch:1")
        said = "ValueError: the third step is a bad one"
        for logs, holds in (
            ([f"a line\nTraceback (most recent call last):\n  ...\n{said}\n"], True),
            ([said], False),
            (["Traceback (most recent call last):\n"], False),
            ([], False),
        ):
            with self.subTest(logs=logs):
                self.assertEqual(bad_jobs.has_traceback(logs, bad).problems == (), holds)

    def test_a_condition_says_it_by_status_reason_and_message(self) -> None:
        failed = next(bad for bad in spoilt.BAD_JOBS if bad.condition == "Failed")
        waits = next(bad for bad in spoilt.BAD_JOBS if bad.condition == "Progressing")
        for bad, status, reason, message, says in (
            (failed, "True", failed.reason, f"it says {failed.says}.", True),
            (failed, "False", failed.reason, failed.says, False),
            (failed, "True", "Other", failed.says, False),
            (failed, "True", failed.reason, "no", False),
            (waits, "False", waits.reason, waits.says, True),
            (waits, "True", waits.reason, waits.says, False),
        ):
            with self.subTest(bad=bad.name, status=status, reason=reason, message=message):
                job = builders.job("bad", conditions={bad.condition: Condition(status, reason, message)})
                world = builders.world(0.0, builders.Training(job, (), None))
                self.assertEqual(bad_jobs.says(world, "bad", bad), says)
        self.assertFalse(bad_jobs.says(builders.world(0.0), "bad", failed))


class ExamplesTest(unittest.TestCase):
    def test_the_examples_job_is_made_small(self) -> None:
        listed = [{"kind": "PersistentVolumeClaim"}, {"kind": "ElasticTrainingJob", **copy.deepcopy(JOB)}]
        volume = {"hostPath": {"path": "/shared"}}
        job = examples.manifest(examples.CHAR_TRANSFORMER, listed, "there/pytorch:1", volume)
        self.assertEqual(container(job)["image"], "there/pytorch:1")
        self.assertEqual(container(job)["args"][0], "train.py")
        self.assertEqual(job["spec"]["elastic"], {"minLearners": 1, "maxLearners": 1})
        self.assertEqual(job["spec"]["checkpoint"]["volume"], {"hostPath": {"path": "/shared"}})

    def test_data_sets_lie_with_the_checkpoints_or_are_made_up(self) -> None:
        claim = {"name": "datasets", "persistentVolumeClaim": {"claimName": "datasets"}}
        volume = {"hostPath": {"path": "/shared"}}
        for example, volumes in (
            (examples.RESNET18, []),
            (examples.on_cifar10("cifar"), [{"name": "datasets", **volume}]),
        ):
            spec = copy.deepcopy(JOB)
            spec["spec"]["template"]["spec"]["volumes"] = [claim]
            container(spec)["volumeMounts"] = [{"name": "datasets", "mountPath": "/datasets"}]
            job = examples.manifest(example, [{"kind": "ElasticTrainingJob", **spec}], "image", volume)
            self.assertEqual(job["spec"]["template"]["spec"]["volumes"], volumes)
            self.assertEqual(len(container(job)["volumeMounts"]), len(volumes))

    def test_objects_come_one_after_the_other_or_as_a_list(self) -> None:
        one, two = {"kind": "A"}, {"kind": "B"}
        for text in (json.dumps(one) + "\n" + json.dumps(two), json.dumps({"kind": "List", "items": [one, two]})):
            with self.subTest(text):
                self.assertEqual(examples.objects(text), [one, two])

    def test_the_curve_has_the_last_loss_of_each_epoch(self) -> None:
        def world(epoch: int | None, loss: float | None) -> builders.World:
            progress = dataclasses.replace(builders.progress(1), epoch=epoch, loss=loss)
            return builders.world(0.0, builders.Training(builders.job("resnet18"), (), progress))

        worlds = [builders.world(0.0), world(None, None), world(0, 2.0), world(0, 1.5), world(1, 0.25)]
        self.assertEqual(examples.curve(worlds, "resnet18"), "0: 1.500, 1: 0.250")


class TutorialTest(unittest.TestCase):
    def test_two_jobs_of_one_script_differ_by_name_and_seed(self) -> None:
        example = copy.deepcopy(JOB)
        container(example)["env"] = [
            {"name": "PLIANT_PARAMETER_EPOCHS", "value": "30"},
            {"name": "PLIANT_PARAMETER_LEARNING_RATE", "value": "0.05"},
        ]
        for size, epochs, data in (
            (tutorial.MADE_UP, ("20", "48"), "/datasets"),
            (tutorial.on_cifar10("cifar"), ("5", "12"), "/datasets/cifar"),
        ):
            listed = [{"kind": "ElasticTrainingJob", **copy.deepcopy(example)}]
            job = examples.manifest(size.example, listed, "there/pytorch:1", {"hostPath": {"path": "/shared"}})
            first, second = (tutorial.one_of(job, size, number) for number in (1, 2))
            for number, each in enumerate((first, second), 1):
                self.assertEqual(each["metadata"]["name"], f"tutorial-{number}")
                self.assertEqual(each["spec"]["elastic"], {"minLearners": 1, "maxLearners": 8})
                training = {"globalBatchSize": 32, "logicalShards": 32, "seed": number}
                self.assertEqual(each["spec"]["training"], training)
                self.assertEqual(
                    {each["name"]: each["value"] for each in container(each)["env"]},
                    {
                        "DATA_DIR": data,
                        "PLIANT_PARAMETER_EPOCHS": epochs[number - 1],
                        "PLIANT_PARAMETER_LEARNING_RATE": "0.05",
                    },
                )
        self.assertEqual(len(container(example)["env"]), 2)


class MaintenanceTest(unittest.TestCase):
    def test_an_eviction_names_its_pod(self) -> None:
        self.assertEqual(
            maintenance.eviction("moved-1"),
            {"apiVersion": "policy/v1", "kind": "Eviction",
             "metadata": {"name": "moved-1", "namespace": "pliant-demo"}},
        )  # fmt: skip

    def test_failures_that_were_counted_are_reported(self) -> None:
        for status, found in (
            ({}, 0),
            ({"restarts": 0, "failures": {"count": 0}}, 0),
            ({"restarts": 1}, 1),
            ({"restarts": 1, "failures": {"count": 1, "counted": [3]}}, 2),
        ):
            with self.subTest(status=status):
                self.assertEqual(len(maintenance.counted(status)), found)


class ChurnTest(unittest.TestCase):
    def test_growth_is_reported(self) -> None:
        first = churn.Look(60.0, "op-a", 20.0, 40, 10)
        for last, found in (
            (dataclasses.replace(first, mib=27.0, descriptors=48), 0),
            (dataclasses.replace(first, mib=29.0), 1),
            (dataclasses.replace(first, mib=29.0, descriptors=49), 2),
            (dataclasses.replace(first, pod="op-b", mib=5.0), 1),
        ):
            with self.subTest(last=last):
                self.assertEqual(len(churn.problems([first, last])), found)

    def test_an_ended_job_is_deleted_and_replaced(self) -> None:
        kubectl = unittest.mock.Mock()
        kubectl.attempt.return_value.returncode = 0
        stage = unittest.mock.Mock(kubectl=kubectl, manifest=lambda name: copy.deepcopy(JOB))
        crowd = churn.Crowd(stage, random.Random(1))
        crowd.stir(None)
        self.assertEqual(crowd.made, 1)
        ended = builders.Training(builders.job("churn-1", phase="Succeeded"), (), None)
        crowd.stir(builders.world(0.0, ended))
        kubectl.attempt.assert_called_once_with("delete", "elastictrainingjobs", "churn-1", "--wait=false")
        self.assertEqual(crowd.done, {"make": 1, "delete a job that ended": 1})
