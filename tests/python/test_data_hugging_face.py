"""pliant.data.HuggingFace: each sample once, in one order, read from any place on; and what it refuses."""

import contextlib
import importlib.util
import io
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

os.environ["HF_HUB_OFFLINE"] = "1"

from pliant._data import hf_pipeline, hf_reading, kept_files
from pliant._data.positions import Positions
from pliant._learner import Plan
from pliant._streams import Streams, StreamShard
from pliant.errors import InvalidProgram

import pliant

INSTALLED = all(importlib.util.find_spec(name) for name in ("datasets", "pyarrow"))
ROWS = (70, 0, 41, 130)  # of each file
EVERY = 16  # samples between two positions here


class MissingTest(unittest.TestCase):
    def test_a_missing_package_is_named_with_its_command(self):
        with (
            mock.patch.dict(sys.modules, {"datasets": None}),
            mock.patch.object(sys, "stderr", io.StringIO()),
            self.assertRaises(InvalidProgram) as refused,
        ):
            pliant.data.HuggingFace(iter([]))
        self.assertEqual(
            str(refused.exception), "pliant.data.HuggingFace needs the package datasets: pip install datasets"
        )


@unittest.skipUnless(INSTALLED, "pip install datasets")
class HuggingFaceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-hugging-face-")
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = pathlib.Path(scratch.name)
        for patch in (
            mock.patch.dict(os.environ, {"HF_HOME": str(cls.scratch / "home")}),
            mock.patch.object(hf_reading, "EVERY", EVERY),
        ):
            patch.start()
            cls.addClassCleanup(patch.stop)
        cls.parquet = cls.write_parquet("p", ROWS)

    @classmethod
    def write_parquet(cls, name, rows, group=32):
        import pyarrow
        from pyarrow import parquet

        ids = itertools.count()
        for file, count in enumerate(rows):
            table = pyarrow.table({"id": [next(ids) for _ in range(count)]}, pyarrow.schema([("id", pyarrow.int64())]))
            parquet.write_table(table, cls.scratch / f"{name}{file}.parquet", row_group_size=group)
        return [str(cls.scratch / f"{name}{file}.parquet") for file in range(len(rows))]

    def setUp(self):
        self.said = io.StringIO()
        redirect = contextlib.redirect_stderr(self.said)
        redirect.__enter__()
        self.addCleanup(redirect.__exit__, None, None, None)
        cache = tempfile.TemporaryDirectory(dir=self.scratch)
        self.addCleanup(cache.cleanup)
        self.cache = pathlib.Path(cache.name)

    def load(self, files=None, form="parquet", **settings):
        import datasets

        cache = str(self.scratch / "cache")
        return datasets.load_dataset(
            form, data_files=files or self.parquet, split="train", streaming=True, cache_dir=cache, **settings
        )

    def kept(self):
        return sorted(self.cache.rglob("*.json"))


def order_of(data, batch=16, shards=4, epochs=1, places=None):
    """The ids in the order of the epoch's places. At places with a distance, streams are opened again."""
    size = len(data)
    streams = Streams(data, size, Plan(batch, shards, -(-size // batch), 0, seed=1), random.seed)
    read = ((epoch, place) for epoch in range(epochs) for place in places or range(size))
    return [int(streams.read([place], epoch)[0]["id"]) for epoch, place in read]


def plus_one(row):
    return {"more": row["id"] + 1}


def tokens(batch):
    return {"length": [len(str(number)) for number in batch["id"]]}


def odd(row):
    return row["id"] % 2 == 1


def numbers(files):
    for file in files:
        for number in range(60):
            yield {"id": 60 * file + number}


@unittest.skipUnless(INSTALLED, "pip install datasets")
class OrderTest(HuggingFaceTest):
    def pipelines(self):
        import datasets

        lines = self.scratch / "lines.json"
        lines.write_text("".join(json.dumps({"id": number}) + "\n" for number in range(90)))
        rows, all_rows = self.load(), sum(ROWS)
        even = self.load(self.write_parquet("even", (96,) * 4, group=24))
        source = datasets.IterableDataset.from_generator(numbers, gen_kwargs={"files": list(range(4))})
        return {
            "parquet": (rows, None, all_rows),
            "a map": (rows.map(plus_one), None, all_rows),
            "a map of batches": (rows.map(tokens, batched=True, batch_size=7), None, all_rows),
            "columns": (rows.map(plus_one).select_columns(["id"]), None, all_rows),
            "numpy": (rows.with_format("numpy"), None, all_rows),
            "the first rows": (rows, 100, 100),
            "a filter": (even.filter(odd), 190, 190),
            "a filter of batches": (even.filter(lambda b: [n % 2 == 1 for n in b["id"]], batched=True), 190, 190),
            "one file for all": (self.load([str(lines)], "json"), 90, 90),
            "a generator": (source, 200, 200),
            "skip and take": (source.skip(8).take(160), 160, 160),
            "two sources": (datasets.interleave_datasets([source, source.map(lambda r: {"id": r["id"] + 1000})]), 300, 300),
        }  # fmt: skip

    def test_each_sample_once_in_one_order_whoever_reads(self):
        for (name, (source, samples, size)), (shuffle, shards) in itertools.product(
            self.pipelines().items(), ((0, 1), (0, 4), (24, 1), (24, 8))
        ):
            if name == "skip and take" and shards == 8:
                continue  # the library gives each part an equal share of both numbers
            with self.subTest(name, shuffle=shuffle, shards=shards):
                options = {"samples": samples, "shuffle": shuffle}
                alone = order_of(pliant.data.HuggingFace(source, **options), shards=shards)
                self.assertEqual(len(alone), size)
                self.assertEqual(len(set(alone)), size, "each once")
                if name in ("parquet", "numpy"):
                    self.assertEqual(sorted(alone), list(range(size)))
                data = pliant.data.HuggingFace(source, cache=self.cache / f"{name}-{shuffle}-{shards}", **options)
                places = range(1, size, size // 10)
                order_of(data, shards=shards)  # keeps positions
                self.assertEqual(order_of(data, shards=shards, places=places), [alone[place] for place in places])

    def test_blocks_have_an_order_of_their_own_in_each_epoch(self):
        data = pliant.data.HuggingFace(self.load(), shuffle=80)
        first, second = (list(data.stream(StreamShard(0, 4, epoch, 5 + epoch), 0)) for epoch in range(2))
        first, second = ([row["id"] for row in order] for order in (first, second))
        self.assertNotEqual(first, second)
        self.assertEqual(sorted(first), sorted(second))
        self.assertEqual(sorted(first[:20]), list(range(20)), "a block of 80 samples is 20 in each of 4 shards")
        self.assertEqual(sorted(first[40:]), list(range(40, 61)), "the last block is longer by nothing")

    def test_random_numbers_do_not_depend_on_where_the_reading_began(self):
        def draw(row):
            return {"drawn": random.random()}

        def draw_for_all(batch):
            return {"drawn": [random.random() for _ in batch["id"]]}

        self.enterContext(mock.patch.object(hf_reading, "EVERY", 4))
        rows = self.load()
        filtered = self.load(self.parquet[3:]).filter(odd)
        for source, samples, shuffle in (
            (rows.map(draw), None, 0),
            (rows.map(draw), None, 40),
            (rows.map(draw_for_all, batched=True, batch_size=7), None, 0),
            (rows.map(draw_for_all, batched=True, batch_size=7), None, 40),
            (filtered.map(draw), 64, 0),
            (filtered.map(draw), 64, 40),
            (filtered.map(draw_for_all, batched=True, batch_size=7), 64, 0),
            (filtered.map(draw_for_all, batched=True, batch_size=7), 64, 40),
        ):
            data = pliant.data.HuggingFace(source, samples=samples, shuffle=shuffle, cache=self.cache)
            shard = StreamShard(1, 4, 0, 7)

            def drawn(start, data=data, shard=shard):
                for row in data.stream(shard, start):
                    yield row["id"], row["drawn"], random.random()

            whole = list(drawn(0))
            self.assertEqual(len({number for _, number, _ in whole}), len(whole))
            for start in (1, 5, 6, 7, 9, 10, 11, 15):
                self.assertEqual(list(drawn(start)), whole[start:])


class CountedTest(HuggingFaceTest):
    """Counts the rows that are read."""

    def setUp(self):
        super().setUp()
        self.read = 0
        self.rows = self.load(self.write_parquet("long", (900,), group=450))

    def count(self, row):
        self.read += 1
        return row

    def reads_at(self, data, start):
        self.read = 0
        row = next(data.stream(StreamShard(0, 2, 0, 3), start))
        return self.read, row["id"]


@unittest.skipUnless(INSTALLED, "pip install datasets")
class RowsTest(CountedTest):
    def test_a_taker_reads_its_block_and_no_row_before_it(self):
        for shuffle in (0, 60):
            data = pliant.data.HuggingFace(self.rows.map(self.count), shuffle=shuffle)
            owner = [row["id"] for row in data.stream(StreamShard(0, 2, 0, 3), 0)]
            for start in (0, 1, 29, 30, 31, 448, 449):
                self.assertEqual(self.reads_at(data, start), (max(1, shuffle // 2), owner[start]))

    def test_a_part_may_begin_in_the_middle_of_a_file(self):
        data = pliant.data.HuggingFace(self.rows.map(self.count), samples=700)
        self.assertEqual(next(data.stream(StreamShard(1, 2, 0, 3), 0))["id"], 350)
        self.assertEqual(self.read, 1)

    def test_batches_of_a_map_are_the_same_wherever_the_reading_begins(self):
        def first_of_batch(batch):
            self.read += len(batch["id"])
            return {"first": [batch["id"][0]] * len(batch["id"])}

        for sizes, most in (((20,), 20), ((20, 30), 60), ((None,), 450)):
            source = self.rows
            for size in sizes:
                source = source.map(first_of_batch, batched=True, batch_size=size)
            data = pliant.data.HuggingFace(source)
            owner = list(data.stream(StreamShard(0, 2, 0, 3), 0))
            for start in (0, 7, 77, 399):
                self.assertEqual(next(data.stream(StreamShard(0, 2, 0, 3), start)), owner[start])
                read, _ = self.reads_at(data, start)
                self.assertLessEqual(read, (most + 1) * len(sizes) + 20)


@unittest.skipUnless(INSTALLED, "pip install datasets")
class PositionsTest(CountedTest):
    def setUp(self):
        super().setUp()
        # Not by rows, because a filter may leave some out.
        self.source = self.rows.filter(lambda row: True).map(self.count)

    def open(self, shuffle=0, cache=True):
        cache = self.cache if cache else None
        return pliant.data.HuggingFace(self.source, samples=900, shuffle=shuffle, cache=cache)

    def test_a_taker_reads_at_most_the_distance_of_two_positions_and_a_block(self):
        for shuffle in (0, 60):
            owner = self.open(shuffle).stream(StreamShard(0, 2, 0, 3), 0)
            for start in range(440):
                expected = next(owner)["id"]
                if start % 7 == 0:
                    read, number = self.reads_at(self.open(shuffle), start)
                    self.assertEqual(number, expected)
                    self.assertLessEqual(read, EVERY + max(1, shuffle // 2), f"at {start}")
        self.assertGreater(self.reads_at(self.open(cache=False), 400)[0], 400, "without positions it reads from the front")

    def test_versions_whose_states_are_not_exact_are_read_from_the_front(self):
        for version, expected in (("4.8.5", False), ("5.1.0", False), ("5.2.0", True), ("5.10.1.dev0", True), ("6.0", True)):
            self.assertEqual(hf_pipeline.has_exact_states(self.source, version), expected)
        tables = self.rows.with_format("arrow").map(lambda table: table, batched=True)
        self.assertFalse(hf_pipeline.has_exact_states(tables, "5.2.0"))

    def test_positions_that_are_missing_or_wrong_cost_only_time(self):
        list(self.open().stream(StreamShard(0, 2, 0, 3), 0))
        contents = {file: file.read_bytes() for file in self.kept()}
        file = next(file for file in contents if file.name == "96.json")
        other = next(file for file in contents if file.name == "80.json")
        good = json.loads(json.loads(contents[file])["content"])

        def foreign(**change):
            kept_files.write(file, {**good, **change})
            return file.read_bytes()

        cases = {
            "missing": None,
            "empty": b"",
            "torn": contents[file][:-7],
            "nested without end": b"[" * 100_000,
            "too large": contents[file] + b" " * (1 << 20),
            "of another place": contents[other],
            "of another part": foreign(part="row-groups-1-of-2"),
            "no state": foreign(state=None),
            "an empty state": foreign(state={}),
            "a state of another form": foreign(state={"examples_iterable": 3, "epoch": 0}),
            "a state with other types": foreign(state={**good["state"], "examples_iterable": {"previous_state": [1]}}),
        }  # fmt: skip
        for what, data in cases.items():
            with self.subTest(what):
                for each, content in contents.items():
                    each.write_bytes(content)
                file.unlink()
                if data is not None:
                    file.write_bytes(data)
                read, number = self.reads_at(self.open(), 100)
                self.assertEqual(number, 100)
                self.assertIn(read, (21, 101), "from the position before, or from the front")

    def test_a_folder_that_cannot_be_written_is_not_needed(self):
        (self.cache / "positions").write_text("a file")
        self.assertEqual(self.reads_at(self.open(), 50), (51, 50))

    def test_old_positions_become_fewer(self):
        positions = Positions(self.cache)
        for number in range(4096, 4096 * 1000, 4096):
            positions.keep("part", number, dict)
        kept = sorted(int(file.stem) for file in self.kept())
        self.assertLess(len(kept), 64 * 6)
        for place in range(1, 1000, 13):
            before = max((number for number in kept if number <= place * 4096), default=0)
            age = 1000 - place
            self.assertLessEqual(place - before // 4096, 2 + age // 32, f"{age} positions ago")

    def test_a_position_belongs_to_one_pipeline(self):
        rows = self.load(self.parquet[:1]).filter(lambda row: True)
        pipelines = [self.source, rows, rows.map(plus_one), rows.map(lambda row: {"more": row["id"] + 2}),
                     rows.filter(odd), rows.filter(lambda row: row["id"] % 3), self.load(self.parquet[2:]).filter(odd)]  # fmt: skip
        for each in pipelines:
            next(pliant.data.HuggingFace(each, samples=32, cache=self.cache).stream(StreamShard(0, 1, 0, 3), 20))
        self.assertEqual(len(list((self.cache / "positions").iterdir())), len(pipelines))

    def test_another_process_finds_it(self):
        program = (
            "import datasets, sys, pliant\n"
            "from pliant._data.hf_identity import identity_of\n"
            "letters = {'a', 'b', 'c', 'd'}\n"
            "data = datasets.load_dataset('parquet', data_files=sys.argv[2], split='train', streaming=True, cache_dir=sys.argv[1])\n"
            "data = data.map(lambda row: {'x': row['id'] in {'e', 'f', 'g'} or letters}).filter(lambda row: True)\n"
            "print(identity_of(data, '1'))\n"
        )
        command = [sys.executable, "-B", "-c", program, str(self.scratch / "cache"), self.parquet[0]]
        found = {
            subprocess.run(
                command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": seed}
            ).stdout
            for seed in ("1", "2")
        }
        self.assertEqual(len(found), 1)

    def test_in_a_job_they_are_on_the_volume_and_alone_nowhere(self):
        job = {"PLIANT_COORDINATOR": "x:1", "PLIANT_CHECKPOINT_DIR": str(self.cache), "PLIANT_JOB_UID": "7"}
        for environment, expected in ((job, True), ({}, False)):
            with mock.patch.dict(os.environ, environment):
                data = pliant.data.HuggingFace(self.source, samples=900)
            next(data.stream(StreamShard(0, 1, 0, 3), 50))
            self.assertEqual(bool(list((self.cache / "7" / "data" / "positions").rglob("*.json"))), expected)
            for file in self.kept():
                file.unlink()


@unittest.skipUnless(INSTALLED, "pip install datasets")
class RefusalsTest(HuggingFaceTest):
    def test_wrong_arguments_are_named_with_the_remedy(self):
        import datasets
        from datasets.distributed import split_dataset_by_node

        rows = self.load()
        (self.scratch / "torn.parquet").write_bytes(pathlib.Path(self.parquet[0]).read_bytes()[:-3])
        torn = rows._ex_iterable.kwargs["files"][:1] + [str(self.scratch / "torn.parquet")]
        source = datasets.IterableDataset.from_generator(numbers, gen_kwargs={"files": [0, 1]})
        splits = datasets.IterableDatasetDict({"test": rows})
        empty = self.write_parquet("empty", (0,))
        cases = [
            (rows.shuffle(seed=1), {}, "take it off, and give shuffle=10000"),
            (rows.shuffle(seed=1).map(plus_one), {}, "data has .shuffle(...), whose buffer is lost"),
            (rows.shuffle(seed=1, max_buffer_input_shards=1), {}, "data has .shuffle(...)"),
            (datasets.interleave_datasets([rows, rows.shuffle(seed=1)]), {"samples": 9}, "data has .shuffle(...)"),
            (split_dataset_by_node(rows, 0, 2), {}, "divided by split_dataset_by_node(...): take it off"),
            (rows.map(lambda row, number: row, with_indices=True), {}, "Make the number a column of the files"),
            (rows.add_column("x", list(range(sum(ROWS)))), {}, "Make the number a column of the files"),
            (source, {}, "samples is missing: only parquet files without filters"),
            (rows.filter(odd), {}, "Give samples=N, the samples of an epoch"),
            (self.load(filters=[("id", "<", 10)]), {}, "samples is missing"),
            (rows.take(10), {}, "samples is missing"),
            (rows, {"samples": 242}, "samples is 242, and the files of data have 241 rows: give at most"),
            (rows, {"samples": 0}, "samples is 0: it must be a whole number from 1"),
            (rows, {"samples": True}, "samples is True: it must be a whole number"),
            (rows, {"shuffle": -1}, "shuffle is -1: it must be a whole number from 0"),
            (rows, {"shuffle": True}, "shuffle is True: it must be a whole number from 0"),
            (rows, {"cache": 3}, "cache is 3: it must be a path"),
            (splits, {}, "data is a IterableDatasetDict with 'test': give one of them"),
            (datasets.Dataset.__new__(datasets.Dataset), {}, "give it to pliant.attach itself"),
            ([1, 2], {}, "data is a list: it must be a datasets.IterableDataset"),
            (self.load(empty), {}, "the files of data have 0 rows"),
        ]  # fmt: skip
        for data, options, message in cases:
            with self.subTest(message):
                with self.assertRaises(InvalidProgram) as refused:
                    pliant.data.HuggingFace(data, **options)
                self.assertIn(message, str(refused.exception))
        with mock.patch.object(self, "parquet", torn), self.assertRaises(Exception):
            pliant.data.HuggingFace(self.load(torn))

    def test_files_that_are_too_short_are_named_with_a_number_that_fits(self):
        import datasets

        source = datasets.IterableDataset.from_generator(numbers, gen_kwargs={"files": list(range(4))})
        for shards, samples, message in (
            (4, 242, "samples is 242, so logical shard 0 of 4 takes 61, and its files have 60: give samples=240 at most"),
            (8, 242, "samples is 242, so logical shard 0 of 8 takes 31, and its files have 30: give samples=240 at most"),
        ):
            with self.subTest(shards), self.assertRaisesRegex(InvalidProgram, message):
                order_of(pliant.data.HuggingFace(source, samples=samples), shards=shards)

    def test_a_map_that_changes_the_number_of_samples_is_found(self):
        def twice(batch):
            return {"id": [number for number in batch["id"] for _ in range(2)]}

        for change, found in ((twice, "more"), (lambda batch: {"id": batch["id"][:-1]}, "31")):
            with self.subTest(found), self.assertRaisesRegex(
                InvalidProgram, f"has 32 rows in the metadata of its file, and yields {found} samples"
            ):
                order_of(pliant.data.HuggingFace(self.load().map(change, batched=True)), shards=1)

    def test_it_says_what_an_epoch_costs_or_leaves_out(self):
        import datasets

        source = datasets.IterableDataset.from_generator(numbers, gen_kwargs={"files": list(range(4))})
        for data, samples, shards, message in (
            (source, 200, 8, "each shard reads all of them and takes every 8th sample: reading costs 8 times as much"),
            (source, 202, 4, "takes the first 51 samples of its files, and does not use what follows"),
            (self.load(), 200, 4, "41 rows at the end of the data are not used"),
            (self.load(), None, 4, ""),
        ):
            with self.subTest(message):
                self.said.truncate(0)
                order_of(pliant.data.HuggingFace(data, samples=samples), shards=shards, epochs=2)
                self.assertIn(message, self.said.getvalue())
                self.assertEqual(self.said.getvalue().count("pliant:"), 1 if message else 0, "once")

    def test_it_says_what_it_is(self):
        data = pliant.data.HuggingFace(self.load(), shuffle=30)
        self.assertEqual(repr(data), "pliant.data.HuggingFace(241 samples of 11 parts of parquet files, shuffle=30)")


if __name__ == "__main__":
    unittest.main()
