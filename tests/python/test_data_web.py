"""pliant.data.WebDataset: which samples it finds, in which order it reads them, and what it refuses."""

import contextlib
import io
import itertools
import json
import os
import pathlib
import random
import sys
import tarfile
import tempfile
import tracemalloc
import unittest
from unittest import mock

from pliant._data import kept_files
from pliant._data.file_names import names_of
from pliant._data.tar_members import BadTar
from pliant._data.tar_samples import sample_in, spans_of
from pliant._learner import Plan
from pliant._streams import Streams, StreamShard, is_stream
from pliant._torch.batches import size_of
from pliant.errors import InvalidProgram

import pliant


def tar(files, format=tarfile.PAX_FORMAT, **attributes):
    """The bytes of a tar file with these files: pairs of name and content."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=format) as archive:
        for name, content in files:
            member = tarfile.TarInfo(name)
            for attribute, value in attributes.items():
                setattr(member, attribute, value)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def header(name=b"a.txt", size=b"%011o\0" % 0, kind=b"0"):
    """A header with a right checksum, whatever its fields contain."""
    block = bytearray(512)
    block[0 : len(name)], block[124:136], block[156:157] = name, size.ljust(12, b"\0"), kind
    block[257:265] = b"ustar\x0000"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


ZEROS = bytes(1024)


class WebTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-web-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.said = io.StringIO()
        for patch in (mock.patch.object(sys, "stderr", self.said),
                      mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(self.folder / "home")})):
            patch.start()
            self.addCleanup(patch.stop)

    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return str(path)

    def write_numbered(self, *counts):
        """Files 0.tar, 1.tar, ... with these numbers of samples, which contain their number."""
        number = itertools.count()
        for file, count in enumerate(counts):
            numbers = [next(number) for _ in range(count)]
            self.write(f"{file}.tar", tar([(f"{n:06}.id", str(n).encode()) for n in numbers]))
        return f"{self.folder}/{{0..{len(counts) - 1}}}.tar"

    def assert_refused(self, message, *arguments, **named):
        with self.assertRaises(InvalidProgram) as refused:
            pliant.data.WebDataset(*arguments, **named)
        self.assertIn(message, str(refused.exception))
        return str(refused.exception)


def of_id(sample):
    return int(sample["id"])


class SamplesTest(WebTest):
    def test_samples_are_files_with_the_same_name_up_to_the_first_dot(self):
        long = "deep/" * 40 + "x" * 90
        cases = [
            ("one file each", ["a.txt", "b.txt"], [("a", ["txt"]), ("b", ["txt"])]),
            ("several files", ["a.jpg", "a.cls", "b.jpg", "b.cls"], [("a", ["jpg", "cls"]), ("b", ["jpg", "cls"])]),
            ("further dots are the extension's", ["a.seg.png", "a.PNG"], [("a", ["seg.png", "png"])]),
            ("folders", ["x/a.b", "y/a.b", "y.z/a.c"], [("x/a", ["b"]), ("y/a", ["b"]), ("y.z/a", ["c"])]),
            ("files that belong to none", ["README", ".hidden", "a.b", "note", "a.c", "end"], [("a", ["b", "c"])]),
            ("only neighbours", ["a.x", "b.x", "a.y"], [("a", ["x"]), ("b", ["x"]), ("a", ["y"])]),
            ("a long name", [f"{long}.txt"], [(long, ["txt"])]),
            ("a name that is not Latin", ["ä/猫.txt"], [("ä/猫", ["txt"])]),
        ]  # fmt: skip
        formats = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
        for (what, names, expected), format in itertools.product(cases, formats):
            if what == "a long name" and format == tarfile.USTAR_FORMAT:
                continue  # it has no room for it
            with self.subTest(what, format=format):
                path = self.write("x.tar", tar([(name, name.encode()) for name in names], format))
                samples = list(pliant.data.WebDataset(path))
                found = [(s["__key__"], [k for k in s if k[0] != "_"]) for s in samples]
                self.assertEqual(found, expected)
                for sample in samples:
                    for extension in found[0][1] if len(found) == 1 else []:
                        content = f"{sample['__key__']}.{extension}".lower().encode()
                        self.assertEqual(sample[extension].lower(), content)
                    self.assertEqual(sample["__url__"], path)

    def test_members_that_are_no_files_are_left_out(self):
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w") as archive:
            for name, kind in (("d.d", tarfile.DIRTYPE), ("l.l", tarfile.SYMTYPE), ("h.h", tarfile.LNKTYPE)):
                member = tarfile.TarInfo(name)
                member.type, member.linkname = kind, "a.txt"
                archive.addfile(member)
            member = tarfile.TarInfo("a.txt")
            member.size = 3
            archive.addfile(member, io.BytesIO(b"abc"))
        data = pliant.data.WebDataset(self.write("x.tar", made.getvalue()))
        self.assertEqual([(s["__key__"], s["txt"]) for s in data], [("a", b"abc")])

    def test_sizes_of_every_form_are_read(self):
        for what, size in (("octal", b"%011o\0" % 700), ("spaces", b"       1274 "), ("binary", b"\x80" + (700).to_bytes(11, "big"))):
            with self.subTest(what):
                made = header(size=size) + b"7" * 700 + bytes(324) + header(b"b.txt") + ZEROS
                data = pliant.data.WebDataset(self.write("x.tar", made))
                self.assertEqual([len(sample["txt"]) for sample in data], [700, 0])

    def test_decode_makes_the_sample(self):
        data = pliant.data.WebDataset(self.write_numbered(3), decode=of_id)
        self.assertEqual([data[0], data[-1], *data], [0, 2, 0, 1, 2])
        for number in (3, -4):
            with self.assertRaises(IndexError):
                data[number]

    def test_it_says_what_it_is(self):
        data = pliant.data.WebDataset(self.write_numbered(3, 4), shuffle=5)
        self.assertEqual(
            repr(data), f"pliant.data.WebDataset(7 samples in 2 files from '{self.folder}/0.tar' on, shuffle=5)"
        )


class NamesTest(unittest.TestCase):
    def test_braces_stand_for_several_names(self):
        cases = [
            ("a.tar", ["a.tar"]),
            (pathlib.Path("a.tar"), ["a.tar"]),
            (["b.tar", pathlib.Path("a.tar")], ["b.tar", "a.tar"]),
            ("{08..11}.tar", ["08.tar", "09.tar", "10.tar", "11.tar"]),
            ("{8..10}.tar", ["8.tar", "9.tar", "10.tar"]),
            ("{a,b}/{0..1}", ["a/0", "a/1", "b/0", "b/1"]),
        ]
        for files, expected in cases:
            with self.subTest(files):
                self.assertEqual(names_of(files), expected)

    def test_wrong_names_are_refused_with_the_remedy(self):
        class ResampledShards:
            pass

        class Dataset:
            resampled = True

        cases = [
            ([], "files is empty: give names of tar files"),
            (3, "files is a builtins.int: it must be a name or a list of names"),
            (iter(["a"]), "it must be a name or a list of names, for example \"folder/{000..127}.tar\""),
            ([3], "files has 3: it must be the name of a tar file"),
            (b"a.tar", "files has b'a.tar': it must be the name"),
            ("", "files has '': it must be the name"),
            (["a", "b", "a"], "files has 'a' twice: give each file once"),
            ("a{}.tar", "{} must be {first..last} or {one,other}"),
            ("{5..3}.tar", "{5..3} counts down: exchange them"),
            ("{x}.tar", "{x} must be {first..last} or {one,other}"),
            ("{0..99999999}.tar", "at most 1000000 names are accepted"),
            ("pipe:aws s3 cp s3://a/b -", "Copy the files to a volume, or mount the bucket"),
            ("s3://bucket/a.tar", "samples are read by their place in a local file"),
            ("a.tar::b.tar", "samples are read by their place"),
            ("-", "samples are read by their place"),
            (ResampledShards(), "files is a ResampledShards, which draws files again and again: it has no epoch"),
            (Dataset(), "files is a Dataset, which draws files again and again: it has no epoch"),
        ]  # fmt: skip
        for files, message in cases:
            with self.subTest(files):
                with self.assertRaises(InvalidProgram) as refused:
                    names_of(files)
                self.assertIn(message, str(refused.exception))


class HostileTest(WebTest):
    def test_damaged_files_are_refused_with_their_place(self):
        good = tar([("a.txt", b"abc"), ("b.txt", bytes(2000))])
        pax = b"19 path=" + b"x" * 10 + b"\n"
        cases = [
            ("nothing", b"", "ends at byte 0 without the blocks of zeros"),
            ("text", b"hello " * 200, "there is no header at byte 0"),
            ("a short text", b"hello", "it ends at byte 5, in the header at byte 0"),
            ("compressed", b"\x1f\x8b\x08" + bytes(2000), "it is compressed: unpack it"),
            ("cut in a header", good[:1100], "it ends at byte 1100, in the header at byte 1024"),
            ("cut in a content", good[:2000], "'b.txt' at byte 1024 has 2000 bytes, and the file ends at byte 2000"),
            ("cut between two members", good[:1024], "ends at byte 1024 without the blocks of zeros"),
            ("a wrong bit", good[:3] + b"!" + good[4:], "there is no header at byte 0"),
            ("a size beyond the file", header(size=b"77777777777\0") + ZEROS, "has 8589934591 bytes"),
            ("a huge size", header(size=b"\x80" + b"\xff" * 11) + ZEROS, "bytes, and the file ends"),
            ("a negative size", header(size=b"\xff" * 12) + ZEROS, "there is no header"),
            ("a size with a sign", header(size=b"-0000000512\0") + ZEROS, "there is no header"),
            ("a size with an underscore", header(size=b"1_0\0") + ZEROS, "there is no header"),
            ("a huge long name", header(size=b"77777777777\0", kind=b"L") + ZEROS, "has 8589934591 bytes"),
            ("a cut long name", header(size=b"2000\0", kind=b"L") + ZEROS, "it ends at byte 1536"),
            ("long names without end", header(size=b"0\0", kind=b"L") * 3, "it ends at byte 1536"),
            ("records that are none", header(size=b"24\0", kind=b"x") + pax.ljust(512, b"\0") + header() + ZEROS, "damaged"),
            ("a record of length 0", header(size=b"5\0", kind=b"x") + b"0 a=\n".ljust(512, b"\0") + header() + ZEROS, "damaged"),
            ("a size that is no number", header(size=b"15\0", kind=b"x") + b"13 size=1e99\n".ljust(512, b"\0") + header() + ZEROS, "is no number"),
            ("two files that are joined", good + good, "it ends at byte 3584, and other bytes follow"),
            ("a sparse file", header(kind=b"S") + ZEROS, "write it without --sparse"),
        ]  # fmt: skip
        for what, data, message in cases:
            with self.subTest(what):
                path = self.write("x.tar", data)
                refused = self.assert_refused(message, path)
                self.assertIn(f"files: {path!r} is not a tar file that can be read", refused)

    def test_any_bytes_are_samples_or_refused(self):
        good = tar([("ä" * 90 + f"{n}.txt", bytes(n * 300)) for n in range(4)])
        for seed in range(400):
            draw, data = random.Random(seed), bytearray(good)
            for _ in range(draw.randrange(1, 4)):
                block = 512 * draw.randrange(len(data) // 512)
                data[block + draw.choice((0, 124, 125, 135, 148, 156, 257, draw.randrange(512)))] = draw.randrange(256)
                if draw.random() < 0.7:  # with a right checksum
                    data[block + 148 : block + 156] = b" " * 8
                    data[block + 148 : block + 156] = b"%06o\0 " % sum(data[block : block + 512])
            data = bytes(data[: draw.choice((len(data), draw.randrange(len(data))))])
            with self.subTest(seed), contextlib.suppress(BadTar):
                spans = spans_of(lambda at, length, data=data: data[at : at + length], len(data))
                for begin, end in zip(spans[::2], spans[1::2], strict=True):
                    with contextlib.suppress(BadTar):
                        sample_in(data[512 * begin : 512 * end])

    def test_files_that_are_none_are_refused(self):
        os.mkfifo(self.folder / "pipe")
        for name, message in (("", "is not a file"), ("pipe", "is not a file"), ("none", "cannot be opened (No such file")):
            with self.subTest(name):
                self.assert_refused(message, str(self.folder / name))

    def test_samples_that_are_none_are_refused(self):
        twice = self.write("twice.tar", tar([("a.TXT", b"1"), ("a.txt", b"2")]))
        with self.assertRaisesRegex(InvalidProgram, "the sample 'a' has two files 'txt'"):
            pliant.data.WebDataset(twice)[0]
        self.assert_refused("contain no sample", self.write("none.tar", tar([("README", b"")])))

    def test_memory_is_bounded(self):
        """The header promises a name of 8 GiB, and the file has a hole of that size."""
        path = self.write("x.tar", header(size=b"77777777777\0", kind=b"L"))
        os.truncate(path, 9 << 30)
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        self.assert_refused("the extended header at byte 0 has 8589934591 bytes", path)
        self.assertLess(tracemalloc.get_traced_memory()[1], 4 << 20)

    def test_a_sample_is_not_larger_than_memory(self):
        path = self.write("x.tar", header(size=b"\x80" + (3 << 30).to_bytes(11, "big")))
        os.truncate(path, 4 << 30)
        self.assert_refused("the sample 'a' has more than 2 GiB", path)

    def test_a_file_that_changes_is_not_read(self):
        path = self.write_numbered(3).replace("{0..0}", "0")
        data = pliant.data.WebDataset(path)
        self.write("0.tar", tar([("z.id", b"9")]))
        with self.assertRaisesRegex(InvalidProgram, "was changed after its index was made"):
            data[0]


class ArgumentsTest(WebTest):
    def test_wrong_ones_are_named_with_the_accepted_values(self):
        files = self.write_numbered(2)
        for named, message in (
            ({"decode": 3}, "decode is 3: it must be a function"),
            ({"shuffle": -1}, "shuffle is -1: it must be a whole number from 0"),
            ({"shuffle": "yes"}, "shuffle is 'yes': it must be a whole number from 0"),
            ({"shuffle": 1.5}, "shuffle is 1.5: it must be a whole number"),
            ({"cache": 3}, "cache is 3: it must be a path"),
        ):
            with self.subTest(**named):
                self.assert_refused(message, files, **named)


class AttachTest(unittest.TestCase):
    def test_data_of_other_libraries_are_refused_with_what_to_give(self):
        for module, remedy in (
            ("datasets.iterable_dataset", "have no __len__: give pliant.data.HuggingFace(data)"),
            ("webdataset.compat", 'have no __len__: give pliant.data.WebDataset("names of its files")'),
            ("__main__", "have no __len__: samples are assigned to learners by their index"),
        ):
            with self.subTest(module), self.assertRaises(InvalidProgram) as refused:
                size_of(type("Given", (), {"__module__": module})(), "training")
            self.assertIn(remedy, str(refused.exception))


class IndexTest(WebTest):
    def indices(self):
        return sorted((self.folder / "cache" / "index").glob("*"))

    def open(self, **named):
        self.said.truncate(0)
        data = pliant.data.WebDataset(f"{self.folder}/{{0..1}}.tar", decode=of_id, cache=self.folder / "cache", **named)
        self.assertEqual(list(data), list(range(5)))
        return self.said.getvalue()

    def test_it_is_made_once(self):
        self.write_numbered(2, 3)
        self.assertIn("reads the headers of 2 tar files for their index, which", self.open())
        self.assertEqual(len(self.indices()), 2)
        self.assertEqual(self.open(), "")
        os.utime(self.folder / "1.tar", (1, 1))
        self.assertIn("reads the headers of 1 tar files", self.open())

    def test_a_damaged_one_is_made_again(self):
        self.write_numbered(2, 3)
        self.open()
        first, second = self.indices()
        good = first.read_bytes()

        def foreign(change):
            content = json.loads(json.loads(good)["content"])
            change(content)
            kept_files.write(first, content)
            return first.read_bytes()

        cases = {
            "empty": b"",
            "torn": good[:-9],
            "no JSON": b"\xff" * 90,
            "nested without end": b"[" * 100_000,
            "another thing": b"[1]",
            "another format": good.replace(b'"format": 1', b'"format": 2'),
            "another hash": good.replace(b'"sha256": "', b'"sha256": "0'),
            "of another file": second.read_bytes(),
            "no places": foreign(lambda content: content.pop("spans")),
            "places that are none": foreign(lambda content: content.update(spans="01")),
            "places in a wrong order": foreign(lambda content: content["spans"].reverse()),
            "an odd number of places": foreign(lambda content: content["spans"].pop()),
            "places beyond the file": foreign(lambda content: content["spans"].extend([1 << 50, 1 << 51])),
            "huge places": foreign(lambda content: content["spans"].extend([1 << 80, 1 << 81])),
        }  # fmt: skip
        for what, data in cases.items():
            with self.subTest(what):
                first.write_bytes(data)
                self.assertIn("reads the headers of 1 tar files", self.open())
                self.assertEqual(first.read_bytes(), good)

    def test_no_index_can_be_kept(self):
        self.write_numbered(2, 3)
        (self.folder / "cache").write_text("a file")
        for _ in range(2):
            self.assertIn("reads the headers of 2 tar files", self.open())

    def test_in_a_job_it_is_on_the_volume(self):
        self.write_numbered(2)
        job = {"PLIANT_COORDINATOR": "x:1", "PLIANT_CHECKPOINT_DIR": str(self.folder / "volume"), "PLIANT_JOB_UID": "7"}
        with mock.patch.dict(os.environ, job):
            pliant.data.WebDataset(f"{self.folder}/0.tar")
        self.assertEqual(len(list((self.folder / "volume" / "7" / "data" / "index").glob("*.json"))), 1)
        self.assertFalse((self.folder / "home").exists())
        pliant.data.WebDataset(f"{self.folder}/0.tar")
        self.assertEqual(len(list((self.folder / "home" / "pliant" / "index").glob("*.json"))), 1)


class OrderTest(WebTest):
    def test_each_sample_once_whoever_reads(self):
        counts = (5, 0, 13, 1, 37)
        files, size = self.write_numbered(*counts), sum(counts)
        for shuffle, batch, shards in itertools.product((0, 4, 16, 1000), (8, 16), (1, 4, 8)):
            plan = Plan(batch, shards, -(-size // batch), 0, seed=1)
            orders = []
            for readers in (1, 3):  # several: another one at each place, which opens the stream there
                data = pliant.data.WebDataset(files, decode=of_id, shuffle=shuffle)
                streams = [Streams(data, size, plan, lambda _: None) for _ in range(readers)]
                orders.append([
                    [streams[place % readers].read([place], epoch)[0] for place in range(size)] for epoch in range(2)
                ])
            with self.subTest(shuffle=shuffle, batch=batch, shards=shards):
                self.assertEqual(orders[0], orders[1])
                for order in orders[0]:
                    self.assertEqual(sorted(order), list(range(size)))
                self.assertEqual(orders[0][0] == orders[0][1], shuffle <= shards, "each epoch has its own order")

    def test_without_shuffle_each_shard_reads_its_part_from_front_to_back(self):
        data = pliant.data.WebDataset(self.write_numbered(3, 7), decode=of_id)
        parts = [list(data.stream(StreamShard(index, 4, 0, 1), 0)) for index in range(4)]
        self.assertEqual(parts, [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]])

    def test_samples_change_places_within_their_block(self):
        data = pliant.data.WebDataset(self.write_numbered(40), decode=of_id, shuffle=20)
        shard = StreamShard(index=1, count=2, epoch=0, seed=3)
        order = list(data.stream(shard, 0))
        self.assertNotEqual(order[:10], sorted(order[:10]))
        self.assertEqual([sorted(order[:10]), sorted(order[10:])], [list(range(20, 30)), list(range(30, 40))])
        self.assertNotEqual([n - 20 for n in order[:10]], [n - 30 for n in order[10:]])
        self.assertEqual(list(data.stream(shard, 13)), order[13:])

    def test_a_learner_reads_only_its_own_samples(self):
        data = pliant.data.WebDataset(self.write_numbered(200), decode=of_id, shuffle=100)
        with mock.patch("os.pread", wraps=os.pread) as read:
            next(data.stream(StreamShard(0, 4, 0, 1), 37))
        self.assertEqual(read.call_count, 1)

    def test_the_jobs_random_order_needs_no_streams(self):
        self.assertFalse(is_stream(pliant.data.WebDataset(self.write_numbered(4), shuffle=True)))
        self.assertTrue(is_stream(pliant.data.WebDataset(self.write_numbered(4), shuffle=1)))


if __name__ == "__main__":
    unittest.main()
