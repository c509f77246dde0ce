"""Trainers of transformers and TRL, and a loop with accelerate, in real processes: learners join, leave and die, and the
parameters, the log and what the Trainer counted equal those of one learner alone."""

import importlib.util
import json
import pathlib
import re
import sys
import unittest

from harness import ScenarioTest

PROGRAM = str(pathlib.Path(__file__).with_name("transformers_program.py"))
TRL = unittest.skipUnless(importlib.util.find_spec("trl"), "pip install trl peft datasets")
TIMES = re.compile("runtime|per_second")


def logged(log):
    """By step and kind: what was logged, without times."""
    steps = {}
    for line in re.findall("^logged (.*)$", log.read_text(), re.MULTILINE):
        values = json.loads(line)
        kept = {name: value for name, value in values.items() if not TIMES.search(name)}
        kind = "eval" if "eval_loss" in kept else "end" if "train_loss" in kept else "train"
        steps.setdefault((kept["step"], kind), []).append(kept)
    return steps


class Trainers(ScenarioTest):
    def three_sizes(self, kind, epochs=10):
        job, learners = self.running_job(
            [0],
            program=[sys.executable, "-B", PROGRAM, kind],
            epochs=epochs,
            shard_milliseconds=250,
            environment={"HF_HUB_OFFLINE": "1"},
        )
        learners += job.start_learners([1, 2])
        self.assert_outlives_the_first(job, learners)
        self.assert_logs(job, learners)

    def assert_logs(self, job, learners):
        """One learner at a time logs, what the one alone does."""
        alone = logged(job.folder / "alone.log")
        self.assertTrue(all(len(lines) == 1 for lines in alone.values()))
        of_each = [logged(learner.log) for learner in learners]
        self.assertGreater(sum(bool(found) for found in of_each), 1)
        of_all = {key: [line for found in of_each for line in found.get(key, ())] for key in alone}
        self.assertLessEqual(sum(not lines for lines in of_all.values()), 1, "who dies may not write its last line")
        for key, lines in of_all.items():
            self.assertEqual(lines, alone[key] * len(lines), key)
        logs = [job.folder / "alone.log", *(learner.log for learner in learners[1:])]
        ends = {re.search("^done .*$", log.read_text(), re.MULTILINE)[0] for log in logs}
        self.assertEqual(len(ends), 1, "the same steps, learning rate and best metric")


class TrainersTest(Trainers):
    def test_trainer_with_evaluations(self):
        """It keeps the best model, and would stop early. Some shards have no label."""
        self.three_sizes("trainer")

    def test_a_loop_with_accelerate(self):
        self.three_sizes("accelerator")


@TRL
class FurtherTrainersTest(Trainers):
    """In CI the script of TRL has a trainer, in tests/reach."""

    def test_sft_with_lora_and_packing(self):
        self.three_sizes("sft")

    def test_dpo_with_lora(self):
        self.three_sizes("dpo", epochs=20)

    def test_reward(self):
        self.three_sizes("reward", epochs=20)

    def test_kto_with_lora(self):
        self.three_sizes("kto", epochs=20)


if __name__ == "__main__":
    unittest.main(verbosity=2)
