"""Runs of Weights & Biases (offline) and MLflow (a database in a file) of jobs in real processes: learners join, leave and
die, and each job has one run with each step once. Only the image of ./dev's tests has their packages."""

import json
import os
import pathlib
import struct
import sys
import tempfile
import unittest
from unittest import mock

from harness import UID, ScenarioTest
from mlflow import MlflowClient
from pliant._tracking.identity import run_of_job
from wandb.proto.wandb_internal_pb2 import Record

PROGRAM = str(pathlib.Path(__file__).with_name("trackers_program.py"))
GROWS = "2 GPUs became free"
_BLOCK, _HEADER = 32768, 7  # bytes, of the log that an offline run is written as
_WHOLE, _LAST = 1, 4  # kinds of its pieces


def records(file):
    """The records of an offline run, up to where its writer died."""
    data, at, parts = file.read_bytes(), _HEADER, b""
    while at + _HEADER <= len(data):
        if _BLOCK - at % _BLOCK < _HEADER:
            at += _BLOCK - at % _BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        parts += data[at + _HEADER : at + _HEADER + length]
        at += _HEADER + length
        if kind in (_WHOLE, _LAST):
            record = Record()
            record.ParseFromString(parts)
            yield record
            parts = b""


def rows(file):
    """The history of an offline run."""
    for record in records(file):
        if record.WhichOneof("record_type") == "history":
            items = record.history.item
            yield {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in items}


class Trackers(ScenarioTest):
    def train(self, kind):
        """A job of one learner, then of three, then of the two that outlive the first. Sets its folder, its lines of
        metrics.jsonl, the rows of its run of W&B, and its run of MLflow."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        database = f"sqlite:///{folder.name}/mlflow.db"
        job, learners = self.running_job(
            [0],
            program=[sys.executable, "-B", PROGRAM, kind],
            epochs=40,
            shard_milliseconds=100,
            environment={
                "HF_HUB_OFFLINE": "1",
                "WANDB_MODE": "offline",
                "WANDB_DIR": folder.name,
                "MLFLOW_TRACKING_URI": database,
                "MLFLOW_EXPERIMENT_NAME": "toy",
            },
        )
        learners += job.start_learners([1, 2])
        self.assert_outlives_the_first(job, learners, reason=GROWS)
        lines = (job.folder / "checkpoints" / UID / "metrics.jsonl").read_text().splitlines()
        self.lines = [json.loads(line) for line in lines]
        with mock.patch.dict(os.environ, PLIANT_JOB_UID=UID):
            name = run_of_job()
        files = [*pathlib.Path(folder.name).rglob("*.wandb"), *job.folder.rglob("checkpoints/**/*.wandb")]
        of_job = sorted({each.resolve() for each in files if each.name == f"run-{name}.wandb"})
        self.assertGreater(len(of_job), 1, "one of each writer")
        self.rows = [row for file in of_job for row in rows(file)]
        client = MlflowClient(database)
        (self.run,) = client.search_runs(
            [client.get_experiment_by_name("toy").experiment_id], f"tags.`pliant.dev/run` = '{name}'"
        )
        self.history = lambda metric: [
            (each.step, each.value) for each in client.get_metric_history(self.run.info.run_id, metric)
        ]

    def assert_each_once(self, found, expected, lost):
        """Pairs of a step and a value; `lost`: how many may be missing."""
        self.assertEqual(len(dict(found)), len(found), "no step twice")
        self.assertEqual([step for step, _ in found], sorted(dict(found)), "in order")
        self.assertEqual(set(found) - set(expected), set())
        self.assertLessEqual(len(set(expected) - set(found)), lost)


class TrackersTest(Trackers):
    def test_a_loop_with_callbacks(self):
        self.train("loop")
        for kind in ("train", "test"):
            expected = [(line["step"], line["loss"]) for line in self.lines if line["kind"] == kind]
            self.assertGreater(len(expected), 10)
            metric = f"loss/{kind}"
            logged = [(row["step"], row[metric]) for row in self.rows if metric in row]
            with self.subTest(metric):
                self.assert_each_once(logged, expected, lost=2)
                self.assert_each_once(self.history(metric), expected, lost=1)
        self.assertTrue(all(value > 0 for _, value in self.history("length/train")))
        self.assertEqual((self.run.info.status, self.run.data.params["rate"]), ("FINISHED", "0.05"))
        logged = [row for row in self.rows if "resize/to" in row]
        self.assertEqual([(row["resize/from"], row["resize/to"]) for row in logged], [(0, 1), (1, 3), (3, 2)])
        self.assertEqual([row["resize/reason"] for row in logged[1:]], [GROWS, "learner toy-0 was lost"])
        tags = self.run.data.tags
        said = [tags[each] for each in sorted(tags) if each.startswith("pliant.resize.")]
        self.assertEqual(len(said), 3)
        for line, change, reason in zip(said[1:], ("1 → 3", "3 → 2"), (GROWS, "learner toy-0 was lost")):
            self.assertRegex(line, rf"\Astep \d+: {change} learners: {reason}\Z")


class FurtherTrackersTest(Trackers):
    def test_a_trainer_reports_to_the_same_runs(self):
        self.train("trainer")
        last = max(line["step"] for line in self.lines)
        logged = [(row["train/global_step"], row["train/loss"]) for row in self.rows if "train/loss" in row]
        self.assert_each_once(logged, [(step, dict(logged).get(step)) for step in range(1, last + 1)], lost=3)
        history = self.history("loss")
        self.assert_each_once(history, [(step, dict(history).get(step)) for step in range(1, last + 1)], lost=1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
