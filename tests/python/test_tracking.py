"""What trackers share, in this process: one run, each step once, nothing lost, whatever the tracker's server does. The
packages of trackers are in the image of test_trackers.py only."""

import contextlib
import io
import json
import os
import pathlib
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

import pliant
from pliant import _background
from pliant._log_values import LogValues
from pliant._tracking import resizes, tracker
from pliant._tracking.identity import Kept, Turn, run_of
from pliant._tracking.resizes import Resizes
from pliant._tracking.tracker import Logged, Tracker
from pliant.errors import InvalidProgram


def line(step, kind="train", membership="1.1"):
    return {"kind": kind, "step": step, "loss": step / 100, "membership": membership, "unixSeconds": 5.0}


class FakeRun:
    """A server that keeps what it was given, across writers, and fails as often as `failures` says."""

    def __init__(self):
        self.logged, self.resizes, self.opened, self.closed = [], [], 0, []
        self.failures = 0  # calls of log that fail, after they have taken place
        self.values = {}  # the newest of each name
        self.reached, self.goes_on = threading.Event(), threading.Event()
        self.goes_on.set()

    def open(self, identity):
        self.opened += 1
        self.identity = identity
        steps = {kind: max((step for each, step in self.logged if each == kind), default=-1) for kind in ("train", "test")}
        return Logged(steps, max((each.membership for each in self.resizes), default=(0, 0)))

    def log(self, entries, logged):
        self.reached.set()
        self.goes_on.wait(20)
        for each in entries:
            self.values |= each.values
        self.logged += [(each.line["kind"], each.line["step"]) for each in entries]
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the server is away")

    def resized(self, resize, logged):
        self.resizes.append(resize)

    def close(self, ending):
        self.closed.append(ending)


class Toy(Tracker):
    _name, _package = "pliant.Toy", "json"


class Writers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.run_ = FakeRun()
        self.said = io.StringIO()
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        stack.enter_context(contextlib.redirect_stderr(self.said))
        stack.enter_context(mock.patch.object(tracker, "_FIRST_PAUSE_SECONDS", 0.01))

    def training(self, ending="Completed"):
        return types.SimpleNamespace(
            job=types.SimpleNamespace(checkpoint_dir=str(self.folder), name="team-a/digits"),
            plan=types.SimpleNamespace(global_batch_size=32, logical_shards=4, seed=7),
            epochs=3,
            ending=types.SimpleNamespace(reason=ending),
        )

    def writer(self, ending="Completed", config=None):
        made = Toy(self.run_, config)
        made.set_elastic(self.training(ending))
        return made

    def record(self, *lines):
        """Adds to metrics.jsonl."""
        with (self.folder / "metrics.jsonl").open("a") as file:
            file.writelines(each if isinstance(each, str) else json.dumps(each) + "\n" for each in lines)

    def write(self, *lines, **settings):
        writer = self.writer(**settings)
        for each in lines:
            writer.on_log(each)
        writer.on_train_end()


class TrackerTest(Writers):
    def test_lines_are_logged_in_order_and_once(self):
        self.write(line(5), line(6), line(6, "test"), line(6), line(4), line(9), ending="Drained")
        self.write(line(9), line(10))
        steps = [("train", 5), ("train", 6), ("test", 6), ("train", 9), ("train", 10)]
        self.assertEqual(self.run_.logged, steps)
        self.assertEqual((self.run_.opened, self.run_.closed), (2, ["Drained", "Completed"]))
        self.assertEqual(self.said.getvalue(), "")

    def test_a_writer_without_lines_opens_no_run(self):
        self.write()
        self.assertEqual((self.run_.opened, self.run_.closed), (0, []))

    def test_the_run_is_that_of_the_job(self):
        self.write(line(1), config={"rate": 0.1, "seed": 8})
        identity = self.run_.identity
        config = {"epochs": 3, "global_batch_size": 32, "logical_shards": 4, "seed": 8, "rate": 0.1}
        self.assertEqual((identity.job, identity.config), ("team-a/digits", config))
        self.assertEqual(run_of(self.folder / "tracking"), identity.run, "kept for a training alone")
        with mock.patch.dict(os.environ, PLIANT_JOB_UID="u1"):
            of_job = run_of(self.folder / "tracking")
            self.assertEqual(of_job, run_of(self.folder / "elsewhere"))
        self.assertNotEqual(of_job, identity.run)

    def test_lines_that_a_writer_lost_are_read_from_the_metrics(self):
        self.record(line(1), "no JSON\n", '{"kind": "other"}\n', line(2), line(2, "test"), line(3), line(4), line(5))
        self.run_.logged = [("train", 1)]
        self.write({**line(4), "learningRate": 0.1}, line(5))
        self.assertEqual(self.run_.values["learning_rate"], 0.1, "which the file does not have")
        lost = [("train", 2), ("test", 2), ("train", 3)]
        self.assertEqual(self.run_.logged, [("train", 1), *lost, ("train", 4), ("train", 5)])

    def test_a_server_that_is_away_delays_lines(self):
        """Its answer may be lost after it has taken the line."""
        self.run_.failures = 3
        self.record(line(1), line(2), line(3))
        self.write(line(1), line(2), line(3))
        self.assertEqual(self.run_.logged, [("train", 1), ("train", 2), ("train", 3)])
        self.assertEqual(self.said.getvalue().count("\n"), 1)
        self.assertIn("ConnectionError: the server is away", self.said.getvalue())

    def test_a_password_in_an_address_is_not_printed(self):
        error = ConnectionError("https://jane:secret@host/api: timed out")
        with mock.patch.object(self.run_, "open", side_effect=[error, Logged()]):
            self.write(line(1))
        self.assertIn("https://…@host/api: timed out", self.said.getvalue())

    def test_a_process_may_have_one_training_after_another(self):
        writer = self.writer()
        for run in (self.run_, FakeRun()):
            writer._run = run
            writer.set_elastic(self.training())
            writer.on_log(line(1))
            writer.on_train_end()
            self.assertEqual(run.logged, [("train", 1)])

    def test_lines_that_had_no_room_are_logged_later(self):
        self.run_.goes_on.clear()
        with mock.patch.object(_background, "_MAX_WAITING", 2):
            writer = self.writer()
            writer.on_log(line(1))
            self.assertTrue(self.run_.reached.wait(20))
            self.record(line(1))
            for step in range(2, 10):
                self.record(line(step))
                writer.on_log(line(step))
            self.run_.goes_on.set()
            deadline = time.monotonic() + 20
            while len(self.run_.logged) < 3 and time.monotonic() < deadline:
                time.sleep(0.01)
            self.record(line(10))
            writer.on_log(line(10))
            writer.on_train_end()
        self.assertEqual(self.run_.logged, [("train", step) for step in range(1, 11)])

    def test_a_server_that_hangs_does_not_keep_the_learner(self):
        self.run_.goes_on.clear()
        self.addCleanup(self.run_.goes_on.set)
        with mock.patch.object(_background, "END_SECONDS", 0.1):
            begun = time.monotonic()
            self.write(line(1))
        self.assertLess(time.monotonic() - begun, 5)
        self.assertIn("pliant.Toy: it is too slow", self.said.getvalue())

    def test_a_server_that_stays_away_does_not_keep_the_learner(self):
        self.run_.failures = 1000
        with mock.patch.object(tracker, "_FIRST_PAUSE_SECONDS", 60):
            begun = time.monotonic()
            self.write(line(1))
        self.assertLess(time.monotonic() - begun, 5)

    def test_a_writer_waits_for_the_one_before(self):
        self.run_.goes_on.clear()
        with mock.patch.object(_background, "END_SECONDS", 0.1):
            self.write(line(1), ending="Drained")  # still logs when its successor begins
        successor = self.writer()
        successor.on_log(line(1))
        time.sleep(0.3)
        self.run_.goes_on.set()
        successor.on_log(line(2))
        successor.on_train_end()
        self.assertEqual(self.run_.logged, [("train", 1), ("train", 2)])

    def test_wrong_use(self):
        for made, said in (
            (lambda: pliant.WandB(project="digits"), r"pliant\.WandB needs the package wandb: pip install wandb"),
            (lambda: pliant.MLflow(), r"pliant\.MLflow needs the package mlflow: pip install mlflow"),
            (lambda: Toy(FakeRun(), config=5), "config of pliant.Toy is a int: give a dict of settings"),
        ):
            with self.subTest(said), self.assertRaisesRegex(InvalidProgram, said):
                made()


class WandBTest(Writers):
    """A stand-in for the package, of which only a server tells more: test_trackers.py has the real one, offline."""

    def position(self, *, offline, summary):
        run = mock.MagicMock(offline=offline, summary=summary)
        package = types.SimpleNamespace(init=mock.Mock(return_value=run), Settings=mock.Mock(model_fields={}))
        Kept(self.folder / "tracking" / f"wandb-{run_of(self.folder / 'tracking')}.json").write({"steps": {"train": 9}})
        with (
            mock.patch.dict("sys.modules", wandb=package),
            mock.patch("pliant._tracking.tracker.find_spec", return_value=True),
        ):
            writer = pliant.WandB(project="digits")
            writer.set_elastic(self.training())
            return writer._run.open(writer._identity()).steps

    def test_the_server_says_what_it_has(self):
        """Rows that a writer passed on before it crashed may never have arrived."""
        self.assertEqual(self.position(offline=True, summary={}), {"train": 9})
        summary = {"step": 5, "evaluated_step": 4}
        self.assertEqual(self.position(offline=False, summary=summary), {"train": 5, "test": 4})
        self.assertEqual(self.position(offline=False, summary={}), {"train": -1, "test": -1})


class ResizesTest(Writers):
    def resize(self, membership, **changed):
        entry = {
            "membership": membership, "kind": "Planned", "reason": "fair share", "from": 1, "to": 3, "step": 7,
            "runningUnixSeconds": 5.0, "stepsLost": 0, "longestPauseSeconds": 0.25,
        }  # fmt: skip
        return {**entry, **changed}

    def answers(self, answer):
        stack = contextlib.ExitStack()
        stack.enter_context(mock.patch.dict(os.environ, PLIANT_COORDINATOR="127.0.0.1:1"))
        text = answer if isinstance(answer, bytes) else json.dumps({"resizes": answer}).encode()
        stack.enter_context(mock.patch.object(Resizes, "_ask", lambda _: text))
        self.addCleanup(stack.close)

    def test_each_is_logged_once_with_its_reason(self):
        self.answers([self.resize("1.1", reason=""), self.resize("1.2"), self.resize("1.3", runningUnixSeconds=None)])
        self.write(line(1), line(2, membership="1.2"), line(3, membership="1.3"), ending="Drained")
        self.write(line(4, membership="1.3"))
        said = ["step 7: 1 → 3 learners: planned", "step 7: 1 → 3 learners: fair share"]
        self.assertEqual([str(each) for each in self.run_.resizes], said)

    def test_a_bad_answer_costs_only_the_resizes(self):
        for answer in (
            b"{", b"[]", b"[" * 100_000, b'{"resizes": {}}', b'{"resizes": [5, {}, {"membership": "1"}]}',
            b'{"resizes": [{"membership": 5, "runningUnixSeconds": 1}]}', b"\xff",
        ):  # fmt: skip
            with self.subTest(answer[:40]):
                self.run_ = FakeRun()
                self.answers(answer)
                self.write(line(1))
                self.assertEqual(self.said.getvalue(), "")
                self.assertEqual((self.run_.logged, self.run_.resizes), ([("train", 1)], []))

    def test_values_of_another_type_are_left_out(self):
        self.answers([self.resize("1.1", step="7", **{"from": -1}, to=True, longestPauseSeconds="x", reason=["a"])])
        (found,) = Resizes().known()
        self.assertEqual((found.step, found.before, found.pause_seconds), (0, 0, None))

    def test_a_training_alone_has_none(self):
        with mock.patch.object(resizes.Resizes, "_ask", side_effect=AssertionError):
            self.assertEqual(Resizes({}).known(), [])


class PartsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_kept_file_that_is_damaged_reads_as_empty(self):
        kept = Kept(self.folder / "new" / "kept.json")
        self.assertEqual(kept.read(), {})
        kept.write({"steps": {"train": 5}})
        self.assertEqual(kept.read(), {"steps": {"train": 5}})
        for damaged in ("", "5", "{", "[1]", "\udcff"):
            (self.folder / "new" / "kept.json").write_text(damaged, errors="surrogateescape")
            self.assertEqual(kept.read(), {}, damaged)

    def test_a_turn_that_is_not_free_in_time_is_done_without(self):
        first, second = Turn(self.folder / "lock"), Turn(self.folder / "lock", seconds=0.2)
        first.take()
        begun = time.monotonic()
        second.take()
        self.assertGreaterEqual(time.monotonic() - begun, 0.2)
        first.end()
        second.end()
        Turn(pathlib.Path("/proc/none/lock")).take()  # where there is no lock

    def test_sums_of_the_program_are_shown_as_means(self):
        values = LogValues()
        shown = {"kind": "train", "loss": 1.5, "accuracy": 0, "samples": 8, "sums": {"norm": 4.0}}
        self.assertEqual(values.of(shown), {"loss/train": 1.5, "norm/train": 0.5})
        tokens = {**shown, "weight": 2.0, "accuracy": 0.5}
        self.assertEqual(values.of(tokens), {"loss/train": 1.5, "accuracy/train": 0.5, "norm/train": 2.0})
        self.assertEqual(values.of({"kind": "other", "loss": 1.0}), {})
        self.assertEqual(values.of({**shown, "loss": float("nan"), "samples": 0}), {"accuracy/train": 0.0})


if __name__ == "__main__":
    unittest.main(verbosity=2)
