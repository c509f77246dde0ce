"""pliant.data in real processes: two epochs over real files while learners join, leave and die. Each sample is used once
an epoch, in the same order as by one learner alone."""

import collections
import importlib.util
import json
import pathlib
import sys
import tempfile
import unittest

import data_program
from data_program import EVERY, SAMPLES, SHUFFLE
from harness import ScenarioTest, samples_used

INSTALLED = all(map(importlib.util.find_spec, ("datasets", "pyarrow")))
EPOCHS = 2
BLOCK = SHUFFLE // 8  # samples of a block in each logical shard


class DataTest(ScenarioTest):
    def three_sizes(self, kind, write):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-data-")
        self.addCleanup(scratch.cleanup)
        files, log, ledger = (pathlib.Path(scratch.name, name) for name in ("files", "log", "ledger"))
        for folder in (files, log, ledger):
            folder.mkdir()
        write(files)
        job, learners = self.running_job(
            [0],
            program=[sys.executable, "-B", data_program.__file__, kind, str(files)],
            epochs=EPOCHS,
            shard_milliseconds=100,
            environment={
                "PLIANT_TEST_SETTINGS": f"sampleLedger={ledger}",
                "PLIANT_GLOBAL_BATCH_SIZE": "64",
                "TOY_LOG": str(log),
                "HF_HUB_OFFLINE": "1",
                "XDG_CACHE_HOME": scratch.name,
            },
        )
        learners += [job.start_learner(1, TOY_WORKERS="2"), job.start_learner(2)]
        self.assert_outlives_the_first(job, learners)
        lines = [
            {**json.loads(line), "learner": path.stem}
            for path in sorted(log.iterdir())
            for line in path.read_text().splitlines()
        ]
        self.assert_each_once(lines, samples_used(ledger))
        return [line for line in lines if line["kind"] == "opened" and line["learner"] != "alone"]

    def assert_each_once(self, lines, used):
        numbers = collections.defaultdict(set)
        readers = collections.defaultdict(set)
        for line in lines:
            if line["kind"] == "batch":
                for place, number in zip(line["places"], line["numbers"], strict=True):
                    numbers[line["epoch"], place].add(number)
                    readers[line["epoch"], place].add(line["learner"])
        self.assertEqual({len(found) for found in numbers.values()}, {1}, "one order for all histories")
        self.assertTrue(all("alone" in found and len(found) > 1 for found in readers.values()))
        self.assertEqual(sorted(used), list(range(EPOCHS)))
        for epoch, places in used.items():
            self.assertEqual(set(places.values()), {1})
            found = sorted(number for place in places for number in numbers[epoch, place])
            self.assertEqual(found, list(range(SAMPLES)), "each sample once in the committed steps")
        orders = [[min(numbers[epoch, place]) for place in range(SAMPLES)] for epoch in range(EPOCHS)]
        self.assertNotEqual(orders[0], orders[1], "each epoch has its own order")

    def assert_takers_read_little(self, opened, most):
        taken = [line for line in opened if line["start"] > 0]
        self.assertGreater(len({line["learner"] for line in taken}), 1)
        for line in taken:
            self.assertLessEqual(line["read"], most, line)

    def test_web_dataset(self):
        self.assert_takers_read_little(self.three_sizes("web", data_program.write_web), 1)

    @unittest.skipUnless(INSTALLED, "pip install datasets")
    def test_hugging_face_by_rows(self):
        opened = self.three_sizes("rows", lambda folder: data_program.write_parquet(folder, data_program.FILES))
        self.assert_takers_read_little(opened, BLOCK)

    @unittest.skipUnless(INSTALLED, "pip install datasets")
    def test_hugging_face_by_positions(self):
        opened = self.three_sizes("filtered", lambda folder: data_program.write_parquet(folder, data_program.EQUAL_FILES))
        self.assert_takers_read_little(opened, EVERY + BLOCK)


if __name__ == "__main__":
    unittest.main(verbosity=2)
