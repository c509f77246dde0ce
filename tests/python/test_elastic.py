"""A PyTorch script in real processes: learners join, leave and die, and the parameters equal those of one learner
alone."""

import json
import pathlib
import re
import shutil
import sys
import tempfile
import unittest
import urllib.request

from harness import UID, ScenarioTest, samples_used

PROGRAM = str(pathlib.Path(__file__).with_name("program.py"))
PAIRS = str(pathlib.Path(__file__).with_name("pairs_program.py"))


def program(model):
    return [sys.executable, "-B", PROGRAM, model]


class ElasticTest(ScenarioTest):
    def resize_and_kill(self, command, *, ends=True):
        job, learners = self.running_job([0], program=command, epochs=10, shard_milliseconds=250)
        learners += [job.start_learner(1), job.start_learner(2, TOY_WORKERS="2")]
        job.plan(learners)
        job.wait_for_members(learners)
        self.assert_waits_for_data(job)
        learners[0].kill()  # rank 0
        job.wait_for_members(learners[1:])
        self.report_pauses(job)
        if not ends:
            return job
        self.assert_completes(job, learners[1:])
        for learner in learners[1:]:
            self.assertIn("done ", learner.log.read_text(), "what follows the loop runs")
        tests = [line for line in job.metric_lines() if line["kind"] == "test"]
        self.assertEqual(
            [line["epoch"] for line in tests], list(range(10)), "evaluated after each epoch"
        )
        self.assertGreater(tests[-1]["accuracy"], 0.9, "it learns")
        return job

    def assert_waits_for_data(self, job):
        """Its images are made when they are read, which takes part of each step's time."""

        def told():
            times = [learner.get("times") for learner in job.progress()["learners"]]
            # The times of a learner that has just joined may be from ticks in which it had no shards yet.
            return times if all(each and each["computeSeconds"] > 0 for each in times) else None

        for times in job.wait("every learner tells where its time goes", told):
            self.assertGreater(times["dataWaitSeconds"], 0)
            self.assertLess(times["dataWaitSeconds"], times["computeSeconds"])

    def test_cnn_with_batch_norm_dropout_and_augmentation(self):
        self.resize_and_kill(program("cnn"))

    def test_steps_in_place_of_epochs(self):
        """1 -> 3 -> 2 learners; the first one dies. A checkpoint that the program asks for is written once, and
        the best model is that of one learner alone."""
        job, learners = self.running_job([0], program=program("steps"), epochs=10, shard_milliseconds=250)
        learners += job.start_learners([1, 2])
        job.plan(learners)
        job.wait_for_members(learners)
        learners[0].kill()
        job.wait_for_members(learners[1:])
        self.assert_completes(job, learners[1:])
        tests = [line["step"] for line in job.metric_lines() if line["kind"] == "test"]
        self.assertEqual(tests, [9, 18, 27, 36, 45, 54, 63, 70])
        self.assertEqual({line["totalSteps"] for line in job.metric_lines()}, {70})
        saved = [line["step"] for learner in learners for line in learner.logged("checkpoint")]
        asked = [step for step in saved if step % 20 == 11]
        self.assertEqual(sorted(set(asked)), sorted(asked), "by one learner each")
        self.assertIn(51, asked)
        evaluations = {line["step"]: line["loss"] for line in job.metric_lines() if line["kind"] == "test"}
        best = job.folder / "checkpoints" / UID / "best"
        note = json.loads((best / "best.json").read_text())
        self.assertEqual(note["step"], min(evaluations, key=evaluations.get))
        self.assertEqual(json.loads((best / "manifest.json").read_text())["step"], note["step"])
        alone = job.folder / "alone" / "local" / "best"
        self.assertEqual((best / "model.safetensors").read_bytes(), (alone / "model.safetensors").read_bytes())
        self.assertEqual((best / "best.json").read_text(), (alone / "best.json").read_text())

    def test_state_that_is_replaced(self):
        """Replaced in the model or in registered state: it reaches joining learners, the others when one is lost, and
        checkpoints."""
        job = self.resize_and_kill(program("replaced"), ends=False)
        members = [learner for learner in job.learners.values() if learner.running()]
        job.plan([])
        for learner in members:
            self.assert_drained(learner)
        resumed = job.start_learners([4, 5])
        job.plan(resumed)
        job.wait_for_members(resumed)
        self.assert_completes(job, resumed)

        def registered(log):
            return re.search("^registered (.*)$", log.read_text(), re.MULTILINE)[1]

        alone = registered(job.folder / "alone.log")
        self.assertEqual({registered(learner.log) for learner in resumed}, {alone})

    def test_losses_by_tokens(self):
        """Some shards have no token with a label. Losses and named sums of a step are the same on each learner that
        took it, and alone; one of them is the first."""
        job = self.resize_and_kill(program("tokens"))
        pattern = re.compile(r"^step (.*) first (True|False)$", re.MULTILINE)
        steps, firsts = {}, {}
        for log in [job.folder / "alone.log", *(each.log for each in job.learners.values())]:
            for result, first in pattern.findall(log.read_text()):
                number = json.loads(result)[0]
                steps.setdefault(number, set()).add(result)
                if log.name != "alone.log":
                    firsts.setdefault(number, []).append(first == "True")
        self.assertEqual(len(steps), 80)
        self.assertEqual({len(results) for results in steps.values()}, {1}, "no two differ")
        self.assertTrue(all(first.count(True) <= 1 for first in firsts.values()), firsts)
        self.assertTrue(any(len(first) > 1 and any(first) for first in firsts.values()))
        tests = [line for line in job.metric_lines() if line["kind"] == "test"]
        tokens = {(line["weight"], line["samples"]) for line in tests}
        self.assertEqual(len(tokens), 1)
        self.assertGreater(*tokens.pop(), "more tokens than texts")
        self.assertLess(tests[-1]["sums"]["entropy"], tests[0]["sums"]["entropy"])

    def test_features_that_meet(self):
        """The average of the weights and the scale of the loss are those of one learner alone, too."""
        job = self.resize_and_kill([sys.executable, "-B", PAIRS])

        def said(log):
            return re.findall("^average .*$", log.read_text(), re.MULTILINE)

        alone = said(job.folder / "alone.log")
        self.assertEqual(len(alone), 1)
        ended = [said(learner.log) for learner in job.learners.values() if learner.exit_code() == 0]
        self.assertEqual(ended, [alone] * 2)

    def test_a_frozen_part_stays_at_home(self):
        """Learners that join receive less than a hundredth of its 104 MB, and one with another is refused."""
        job, learners = self.running_job([0], program=program("adapter"), epochs=10, shard_milliseconds=250)
        learners += [job.start_learner(number, PLIANT_METRICS_PORT="0") for number in (1, 2)]
        job.plan(learners)
        job.wait_for_members(learners)
        for learner in learners[1:]:
            (started,) = learner.logged("learner starts")
            with urllib.request.urlopen(f"http://127.0.0.1:{started['metricsPort']}/metrics", timeout=10) as answer:
                text = answer.read().decode()
            received = re.search(r"^pliant_learner_received_bytes_total\{.*\} (\S+)$", text, re.MULTILINE)[1]
            self.assertGreater(float(received), 0)
            self.assertLess(float(received), 1 << 20)
        other = job.start_learner(3, TOY_FAULT="other base")
        self.assertNotEqual(other.exit_code(), 0)
        self.assertIn("base", other.termination()["message"])
        learners[0].kill()  # rank 0
        job.wait_for_members(learners[1:])
        self.assert_completes(job, learners[1:])
        checkpoints = job.folder / "checkpoints" / UID
        self.assertIn("table.weight", tensors_of(checkpoints / "final" / "model.safetensors"))
        for kept in checkpoints.glob("step-*/model-*"):
            self.assertNotIn("table.weight", tensors_of(kept))

    def test_a_stream_that_ends_early(self):
        """Each sample is read once per epoch, and all learners end after the same evaluation. A failure of one learner
        does not end the others."""
        ledger = pathlib.Path(tempfile.mkdtemp(prefix="pliant-ledger-"))
        self.addCleanup(shutil.rmtree, ledger)
        job, learners = self.running_job(
            [0],
            program=program("stream"),
            epochs=40,
            shard_milliseconds=250,
            environment={"PLIANT_TEST_SETTINGS": f"sampleLedger={ledger}"},
        )
        learners += [job.start_learner(1, TOY_WORKERS="2"), job.start_learner(2)]
        bad = job.start_learner(3, TOY_FAULT="exception")
        job.plan([*learners, bad])
        self.assertEqual(bad.exit_code(), 1)
        self.assertIn("ValueError: the third step is a bad one", bad.termination()["message"])
        job.plan([*learners, (bad, "Ended")])
        job.wait_for_members(learners)
        problem = job.progress()["problem"]
        self.assertEqual(problem["reason"], "LearnerFailed")
        self.assertIn("ValueError: the third step is a bad one", problem["message"])
        learners[0].kill()  # rank 0
        job.wait_for_members(learners[1:])
        self.assert_completes(job, learners[1:])
        self.assertEqual({learner.termination()["step"] for learner in learners[1:]}, {64})
        self.assertEqual(job.progress()["totalSteps"], 64)
        used = samples_used(ledger)
        self.assertEqual(sorted(used), list(range(8)))
        for epoch, samples in used.items():
            self.assertEqual(samples, {sample: 1 for sample in range(250)}, f"epoch {epoch}")
        tests = [line["epoch"] for line in job.metric_lines() if line["kind"] == "test"]
        self.assertEqual(tests, list(range(8)))

    def test_transformer_from_a_checkpoint(self):
        job, learners = self.running_job(
            [0, 1], program=program("transformer"), epochs=6, shard_milliseconds=250
        )
        learners[1].terminate()
        self.assert_drained(learners[1])
        job.wait_for_members(learners[:1])
        job.plan([])
        self.assert_drained(learners[0])
        self.assertNotIn(
            "done ", learners[0].log.read_text(), "a learner that leaves does nothing more"
        )
        logs = job.folder / "checkpoints" / UID / "logs"
        for learner in learners:
            kept = (logs / f"{learner.name}-{learner.uid}.log").read_text()
            for line in kept.splitlines():
                self.assertIn(line, learner.log.read_text())
            self.assertIn("the transformer begins", kept, "what Python prints")
            self.assertIn("learner ends", kept, "to the end")
        resumed = job.start_learners([2])
        job.plan(resumed)
        job.wait_for_members(resumed)
        self.assert_resumed_at(resumed, learners[0].termination()["step"])
        self.assert_completes(job, resumed)
        late = job.start_learner(3)
        self.assertEqual(late.exit_code(), 0, "one that comes after the end has the final model")
        self.assertIn("done ", late.log.read_text())
        folder = job.folder / "checkpoints" / UID
        names = tensors_of(folder / "final" / "model.safetensors")
        self.assertIn("position", names)
        self.assertIn("frozen", names)
        self.assertNotIn("mask", names, "what torch does not save")


class RequestTest(ScenarioTest):
    def test_a_program_asks_for_fewer_learners(self):
        """It also reports that it cannot use the GPUs of its container."""
        job, learners = self.running_job(
            [0],
            program=[*program("cnn"), "asks"],
            epochs=10,
            shard_milliseconds=100,
            environment={"TOY_GPUS": "2"},
        )
        job.wait(
            "its GPUs are reported",
            lambda: job.progress()["problem"]["reason"] == "GpusUnusable",
        )

        def asked():
            return job.progress().get("learnersAsked") == 2

        job.wait("the coordinator knows", asked)
        # A learner that joins later, and becomes the first of them, requests the same.
        learners.append(job.start_learner(1))
        job.plan(learners)
        job.wait_for_members(learners)
        learners[0].kill()
        job.wait_for_members(learners[1:])
        job.wait("the coordinator knows still", asked)
        self.assert_completes(job, learners[1:])


def tensors_of(path):
    data = path.read_bytes()
    return set(json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
