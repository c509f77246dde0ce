"""python -m pliant doctor --gpu --job: which number of logical shards would make a job fastest."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

from pliant import _gpu_speed, doctor
from pliant._job_file import JobShards, default_shards, read
from pliant._shard_choice import choose, report
from pliant.errors import InvalidProgram

_HAS_YAML = importlib.util.find_spec("yaml") is not None


def job(**changes):
    job = {
        "kind": "ElasticTrainingJob",
        "metadata": {"namespace": "demo", "name": "digits"},
        "spec": {
            "elastic": {"minLearners": 1, "maxLearners": 8},
            "training": {"globalBatchSize": 256},
        },
    }
    for path, value in changes.items():
        *parts, last = path.split("__")
        at = job
        for part in parts:
            at = at.setdefault(part, {})
        at[last] = value
    return job


def shards_of(**changes):
    fields = {
        "name": "demo/digits", "batch": 256, "ranks_of_learner": 1, "min_learners": 1,
        "max_learners": 8, "shards": 16, "bitwise": True,
    }  # fmt: skip
    return JobShards(**{**fields, **changes})


def launches(samples):
    """A GPU that takes 8 ms to start the kernels, whatever they work on, up to 64 samples."""
    return 8e-3 * max(1, samples / 64)


def in_proportion(samples):
    """A large model: a sample takes 1 ms in any shard."""
    return 1e-3 * samples


class ChoiceTest(unittest.TestCase):
    def test_the_fastest_number_depends_on_the_machine(self):
        for name, of, seconds, shards, gains in (
            # the gain with all learners; the least and the largest with any number of them
            ("launches", {}, launches, 8, (2, 1.5, 2)),
            ("own is the fastest", {"shards": 8}, launches, 8, (1, 1, 1)),
            ("samples", {}, in_proportion, 16, (1, 1, 1)),
            ("samples, 6 learners", {"max_learners": 6, "shards": 8}, in_proportion, 64,
             (64 / 44, 1, 64 / 44)),
            ("samples, 7 learners", {"max_learners": 7, "shards": 8}, in_proportion, 128,
             (64 / 38, 1, 64 / 38)),
            ("ranks", {"max_learners": 4, "ranks_of_learner": 2}, launches, 8, (2, 1.5, 2)),
            ("few divisors", {"batch": 96, "max_learners": 5}, launches, 8, (2, 2, 2)),
            ("only one possible", {"batch": 8, "shards": 8}, launches, 8, (1, 1, 1)),
            ("more learners than shards", {"max_learners": 64}, in_proportion, 64, (4, 1, 4)),
        ):  # fmt: skip
            with self.subTest(name):
                choice = choose(shards_of(**of), seconds)
                self.assertEqual(choice.shards, shards)
                found = (choice.gain, choice.least_gain, choice.most_gain)
                for value, want in zip(found, gains, strict=True):
                    self.assertAlmostEqual(value, want, places=3)

    def test_a_line_says_the_number_and_the_gain(self):
        for of, seconds, said in (
            ({}, launches,
             "demo/digits: logicalShards 8, shards of 32 samples, would be fastest here with "
             "8 GPUs, for a network like this one: 8.0 ms for the shards of a step, 2.0 times as "
             "fast as its logicalShards 16, shards of 16 samples (1.5 to 2.0 times with 1 to 8 "
             "learners). The number stays yours to set, because the result depends on it."),
            ({"max_learners": 1, "batch": 4, "shards": 4}, launches,
             "demo/digits: logicalShards 1, shards of 4 samples, would be fastest here with 1 GPU, "
             "for a network like this one: 8.0 ms for the shards of a step, 4.0 times as fast as "
             "its logicalShards 4, shards of 1 sample. The number stays yours to set, because the "
             "result depends on it."),
            ({}, in_proportion,
             "demo/digits: its logicalShards 16, shards of 16 samples, is as fast as any number "
             "here with 8 GPUs, for a network like this one: 32.0 ms for the shards of a step."),
            ({"bitwise": False}, launches,
             "demo/digits: it is Statistical, so a learner computes its share of a batch at once, "
             "and logicalShards does not change its speed."),
        ):  # fmt: skip
            with self.subTest(said):
                self.assertEqual(report(shards_of(**of), seconds), said)

    def test_a_size_that_was_not_measured_is_between_its_neighbours(self):
        speeds = [
            _gpu_speed.Speed(size, 0, time) for size, time in ((1, 8.0), (64, 8.0), (128, 16.0))
        ]
        for samples, seconds in ((1, 8), (3, 8), (64, 8), (96, 12), (128, 16), (512, 64)):
            with self.subTest(samples=samples):
                self.assertAlmostEqual(_gpu_speed.shard_seconds(speeds, samples), seconds)


class JobFileTest(unittest.TestCase):
    def test_absent_fields_have_their_defaults(self):
        for changes, want in (
            ({}, shards_of()),
            ({"spec__training__logicalShards": 64}, shards_of(shards=64)),
            ({"spec__elastic__gpusPerLearner": 2}, shards_of(ranks_of_learner=2, shards=32)),
            ({"spec__training__reproducibility": "Statistical"}, shards_of(bitwise=False)),
            ({"status__training__logicalShards": 32}, shards_of(shards=32)),  # an older default
            ({"metadata": {}}, shards_of(name="job")),
        ):
            with self.subTest(changes):
                self.assertEqual(read(json.dumps(job(**changes))), want)
        listed = {"kind": "List", "items": [{"kind": "Pod"}, job()]}
        self.assertEqual(read(json.dumps(listed)), shards_of())

    @unittest.skipUnless(_HAS_YAML, "PyYAML is not installed")
    def test_the_examples_are_read(self):
        for file in ("examples/resnet18/job.yaml", "manifests/examples/own-program.yaml"):
            with self.subTest(file):
                text = (pathlib.Path(__file__).parents[2] / file).read_text()
                self.assertIn(read(text).shards, (16, 32))

    def test_the_default_is_that_of_the_library(self):
        """A learner that is alone, and expects this many, has the default of a job of theirs."""
        program = (
            "import sys, torch, pliant\n"
            "model = torch.nn.Linear(1, 1)\n"
            "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
            "data = torch.utils.data.TensorDataset(torch.zeros(256, 1))\n"
            "elastic = pliant.attach(model, optimizer, data, epochs=1,\n"
            "                        batch_size=int(sys.argv[1]), checkpoint_dir=sys.argv[2])\n"
            "next(elastic.steps())\n"
        )
        for batch, learners in ((256, 8), (96, 5), (100, 8), (64, 1)):
            with self.subTest(batch=batch), tempfile.TemporaryDirectory() as folder:
                ended = subprocess.run(
                    [sys.executable, "-B", "-c", program, str(batch), folder],
                    env={**os.environ, "PLIANT_MAX_LEARNERS": str(learners)},
                    capture_output=True, text=True, timeout=120,
                )  # fmt: skip
                shards = default_shards(batch, learners)
                self.assertIn(
                    f"is computed as {shards} logical shards", ended.stdout + ended.stderr
                )

    def test_bad_input_names_the_field(self):
        at = "spec__training__"
        for changes, said in (
            ({at + "globalBatchSize": 0},
             "spec.training.globalBatchSize is 0: it must be a whole number from 1 to 16777216"),
            ({at + "globalBatchSize": None}, "spec.training.globalBatchSize is None: it must be a"),
            ({at + "logicalShards": 12},
             "spec.training.logicalShards is 12: it must be a power of two"),
            ({at + "logicalShards": 512},
             "spec.training.globalBatchSize is 256: it must be divisible by logicalShards, which "
             "is 512"),
            ({at + "reproducibility": "Some"},
             "spec.training.reproducibility is 'Some': it must be 'Bitwise' or 'Statistical'"),
            ({"spec__elastic__maxLearners": "8"},
             "spec.elastic.maxLearners is '8': it must be a whole number from 1 to 1024"),
            ({"spec__elastic__minLearners": 9},
             "spec.elastic.minLearners is 9: it must be at most maxLearners, which is 8"),
            ({"spec__elastic": None}, "spec.elastic is missing: it must be an object"),
            ({"spec": 5}, "spec is 5: it must be an object"),
            ({"status": 5}, "status is 5: it must be an object"),
            ({"kind": "Pod"}, "has 0 objects of kind ElasticTrainingJob: give a file with the one"),
        ):  # fmt: skip
            with self.subTest(changes), self.assertRaises(InvalidProgram) as caught:
                read(json.dumps(job(**changes)))
            self.assertIn(said, str(caught.exception))
        with self.assertRaisesRegex(InvalidProgram, "has 2 objects of kind"):
            read(json.dumps({"kind": "List", "items": [job(), job()]}))
        with self.assertRaisesRegex(InvalidProgram, "is nested too deeply"):
            read("[" * 100_000)
        with (
            mock.patch.dict(sys.modules, {"yaml": None}),
            self.assertRaisesRegex(
                InvalidProgram, "PyYAML is not installed: pip install pyyaml, or"
            ),
        ):
            read("kind: ElasticTrainingJob")


class CommandTest(unittest.TestCase):
    def run_it(self, file):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = doctor.main(["doctor", "--gpu", "--job", str(file)])
        return code, out.getvalue()

    def test_the_line_follows_the_measurement(self):
        import torch

        speeds = [
            _gpu_speed.Speed(size, time, 1.1 * time)
            for size in (1, 8, 32, 128, 256)
            for time in (max(6e-3, size * 1e-4),)
        ]
        cuda = types.SimpleNamespace(is_available=lambda: True, get_device_name=lambda: "a GPU")
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.object(torch, "cuda", cuda),
            mock.patch.object(_gpu_speed, "measure", lambda: speeds),
        ):
            file = pathlib.Path(folder, "job.json")
            file.write_text(json.dumps(job()))
            code, out = self.run_it(file)
        self.assertEqual(code, 0, out)
        *_, cost, line = out.splitlines()
        self.assertIn("costs 10 %", cost)
        self.assertRegex(
            line, r"^demo/digits: logicalShards 8, shards of 32 samples, would be fastest"
        )
        self.assertIn("2.0 times as fast as its logicalShards 16", line)

    def test_a_bad_file_ends_it_before_the_measurement(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "job.json")
            file.write_text(json.dumps(job(spec__training__globalBatchSize=0)))
            wrong = "spec.training.globalBatchSize is 0: it must be a whole number"
            for name, said in ((file, wrong), (f"{file}.absent", "No such file or directory")):
                code, out = self.run_it(name)
                self.assertEqual(code, 1)
                self.assertIn(f"FAILED  job       {name}: {said}", out)

    def test_a_job_needs_the_measurement(self):
        for arguments in (["doctor", "--job", "x"], ["doctor", "--gpu", "--job"]):
            error = io.StringIO()
            with self.subTest(arguments), contextlib.redirect_stderr(error):
                self.assertEqual(doctor.main(arguments), 2)
            self.assertIn("usage: python -m pliant doctor [--gpu [--job FILE]]", error.getvalue())


if __name__ == "__main__":
    unittest.main(verbosity=2)
