"""Features of a loop, in one process: data that are read sequentially, an early end, callbacks, state that the program
registers, and the final model read by other tools."""

import contextlib
import dataclasses
import errno
import importlib.util
import io
import json
import math
import multiprocessing
import os
import pathlib
import signal
import struct
import sys
import tempfile
import threading
import types
import unittest
from unittest import mock

import torch
from pliant import _background
from pliant._learner import Ending, Plan, Shard
from pliant._streams import Streams
from pliant._workers import DataWorkerError, Workers, _key
from pliant.errors import InvalidProgram, PliantError, TrainingFailed
from torch import nn
from torch.utils.data import IterableDataset, TensorDataset

import pliant

from small_data import data


def net():
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Linear(8, 3))


class Cards(IterableDataset):
    """Streams the samples of another dataset, in a different order for each epoch."""

    def __init__(self, samples):
        self.samples = samples
        self.opened = []

    def __len__(self):
        return len(self.samples)

    def __iter__(self):
        return iter(self.samples)

    def stream(self, shard, start):
        self.opened.append((shard.epoch, shard.index, start))
        generator = torch.Generator().manual_seed(shard.epoch)
        order = torch.randperm(len(self.samples), generator=generator).tolist()
        for index in order[shard.index + start * shard.count :: shard.count]:
            yield self.samples[index]


class Loop(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-loop-")
        self.addCleanup(scratch.cleanup)
        self.folders = (pathlib.Path(scratch.name) / str(i) for i in range(100))
        environment = mock.patch.dict(os.environ, {"PLIANT_CHECKPOINT_EVERY_STEPS": "1"})
        environment.start()
        self.addCleanup(environment.stop)

    def make(self, train=None, folder=None, **settings):
        self.folder = folder or next(self.folders)
        self.model = net()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        settings = {"epochs": 2, "batch_size": 16, "logical_shards": 4, **settings}
        self.elastic = pliant.attach(
            self.model,
            self.optimizer,
            data() if train is None else train,
            checkpoint_dir=self.folder,
            **settings,
        )
        self.addCleanup(self.elastic.close)
        return self.elastic

    def loss(self, batch):
        inputs, targets = batch
        return nn.functional.cross_entropy(self.model(inputs), targets)

    def evaluate(self, batch):
        return self.loss(batch), (self.model(batch[0]).argmax(1) == batch[1]).sum()

    def train(self, after=lambda step: None, stop_at=None, **how):
        """The parameters at the end, or None if it stopped earlier."""
        for step in self.elastic.steps():
            for batch in step:
                step.backward(self.loss(batch))
            step.commit(**how)
            after(step)
            if step.number == stop_at:
                self.elastic.close()
                return None
        return [value.clone() for value in self.model.state_dict().values()]

    def assert_same(self, first, second):
        for a, b in zip(first, second, strict=True):
            self.assertTrue(torch.equal(a, b))


class BatchesTest(Loop):
    def test_a_subclass_of_a_tensor_dataset_makes_its_samples_itself(self):
        class Doubled(TensorDataset):
            def __getitem__(self, index):
                inputs, target = super().__getitem__(index)
                return 2 * inputs, target

        tensors = data(8).tensors
        for of, factor in ((TensorDataset, 1), (Doubled, 2)):
            self.make(of(*tensors), batch_size=8, logical_shards=1)
            inputs, targets = self.elastic._train.load([3, 1], 0)
            self.assertTrue(torch.equal(inputs, factor * tensors[0][[3, 1]]))
            self.assertTrue(torch.equal(targets, tensors[1][[3, 1]]))


class StreamTest(Loop):
    def test_streams_of_shards_that_left_are_closed(self):
        closed = []

        class Closing:
            def __len__(self):
                return 96

            def stream(self, shard, start):
                try:
                    yield from range(start, 96)
                finally:
                    closed.append((shard.index, shard.epoch))

        reader = Streams(Closing(), 96, Plan(16, 4, 6, 0, seed=1), lambda _: None)
        for step, shards, expected in (
            (0, [0, 1, 2, 3], []),
            (1, [0, 1], []),  # 2 and 3 may come back: their learner may be lost in this step
            (1, [2], []),
            (2, [0, 1], [(3, 0)]),
            (3, [0, 1], [(2, 0)]),
            (6, [1], [(0, 0), (1, 0)]),  # the next epoch
        ):
            for shard in shards:
                epoch, within = divmod(step, 6)
                reader.read([16 * within + 4 * shard + i for i in range(4)], epoch)
            self.assertEqual(sorted(closed), expected, f"step {step}")
            closed.clear()

    def test_each_sample_is_read_once_whoever_reads(self):
        for size, batch, shards in ((56, 16, 4), (50, 16, 16), (3, 8, 4), (64, 64, 1), (33, 8, 8)):
            plan = Plan(batch, shards, -(-size // batch), 0, seed=1)
            cards = Cards(list(range(size)))
            readers = [Streams(cards, size, plan, lambda _: None) for _ in range(3)]
            for epoch in range(2):
                seen = []
                for place in range(size):  # by another reader each time, which opens the stream at this place
                    seen += readers[place % 3].read([place], epoch)
                self.assertEqual(sorted(seen), list(range(size)), (size, batch, shards))
                self.assertEqual(seen, readers[0].read(range(size), epoch), "in the same order")

    def test_a_stream_continues_where_the_committed_steps_left_it(self):
        test = Cards(data(20))
        settings = {"test_data": test, "evaluate": self.evaluate}
        self.make(train := Cards(data()), **settings)
        expected = self.train()
        once_an_epoch = [(epoch, shard, 0) for epoch in range(2) for shard in range(4)]
        self.assertEqual(train.opened, once_an_epoch, "read through")
        self.assertEqual(test.opened, once_an_epoch)
        folder = next(self.folders)
        self.make(Cards(data()), folder, **settings)
        self.train(stop_at=5)
        self.make(train := Cards(data()), folder, num_workers=2, **settings)
        self.assert_same(self.train(), expected)

    def test_a_wrong_stream_is_refused_with_the_reason(self):
        class Short(Cards):
            def __len__(self):
                return 60

        class Unsized:
            def stream(self, shard, start):
                yield from data()

        class Plain(Cards):
            stream = None

        self.make(Short(data()))
        with self.assertRaisesRegex(InvalidProgram, "ended after 14 samples in epoch 0: with the 60"):
            self.train()
        for wrong, what in ((Unsized(), "no __len__"), (Plain([1]), "nor stream")):
            with self.assertRaisesRegex(InvalidProgram, what):
                self.make(wrong)


class EarlyEndTest(Loop):
    def test_a_program_ends_with_the_step_that_it_likes(self):
        self.make()
        self.train(after=lambda step: step.number == 4 and self.elastic.stop())
        self.assertEqual((self.elastic.ending.reason, self.elastic.ending.step), ("Completed", 5))
        ended_with = [value.clone() for value in self.model.state_dict().values()]
        manifest = json.loads((self.folder / "local" / "final" / "manifest.json").read_text())
        self.assertEqual((manifest["step"], manifest["epoch"]), (5, 1))
        self.make(folder=self.folder)
        self.assert_same(self.train(), ended_with)  # a learner that joins later gets the final model

    def test_early_stopping_is_state(self):
        def run(folder, stop_at=None):
            settings = {"test_data": data(20), "evaluate": self.evaluate, "epochs": 40}
            self.make(folder=folder, **settings)
            heard = []
            self.elastic.add_callback(pliant.LambdaCallback(on_test_end=heard.append))
            self.elastic.add_callback(pliant.EarlyStopping(patience=2))
            self.train(stop_at=stop_at)
            return heard, self.elastic.ending

        heard, ending = run(next(self.folders))
        self.assertEqual(ending.reason, "Completed")
        self.assertEqual(ending.step, 4 * len(heard), "with an evaluation")
        self.assertLess(len(heard), 40)
        losses = [evaluation.loss for evaluation in heard]
        self.assertEqual(losses.index(min(losses)), len(losses) - 3)
        self.assertEqual([evaluation.epoch for evaluation in heard], list(range(len(heard))))
        self.assertGreater(heard[-1].accuracy, 0.5)
        folder = next(self.folders)
        run(folder, stop_at=ending.step - 6)
        _, again = run(folder)
        self.assertEqual(
            (again.step, again.parameters_sha256), (ending.step, ending.parameters_sha256)
        )

    def test_early_stopping_monitors_a_value(self):
        """The accuracy of this program rises, and a sum falls, until it does not."""

        def evaluate(batch):
            self.seen += 1
            level = min(self.seen, 3)
            return {"loss": 1.0, "correct": level, "left": 9 - level, "weight": 10}

        cases = (
            ({"monitor": "accuracy"}, 5),
            ({"monitor": "left", "mode": "min"}, 5),
            ({"monitor": "left"}, 3),
            ({"monitor": "accuracy", "min_delta": 0.25}, 3),
            ({}, 3),
        )
        for settings, evaluations in cases:
            with self.subTest(settings):
                self.seen = 0
                self.make(test_data=data(4), evaluate=evaluate, epochs=9, batch_size=56, logical_shards=1)
                self.elastic.add_callback(pliant.EarlyStopping(patience=2, **settings))
                self.train()
                self.assertEqual(self.elastic.ending.step, evaluations)

    def test_a_wrong_early_stopping_is_said(self):
        for settings, said in (
            ({"patience": 0}, "patience is 0: it must be a whole number from 1"),
            ({"min_delta": -1}, "min_delta is -1: it must be a number ≥ 0"),
            ({"mode": "best"}, "mode is 'best': it must be 'min' or 'max'"),
        ):
            with self.assertRaisesRegex(InvalidProgram, said):
                pliant.EarlyStopping(**settings)
        self.make(test_data=data(4), evaluate=self.evaluate)
        self.elastic.add_callback(pliant.EarlyStopping(monitor="f1"))
        with self.assertRaisesRegex(InvalidProgram, "monitor is 'f1': the evaluation has loss, accuracy"):
            self.train()

    def test_it_needs_evaluations(self):
        self.make()
        with self.assertRaisesRegex(InvalidProgram, "give test data"):
            self.elastic.add_callback(pliant.EarlyStopping())

    def test_the_wish_is_loaded_with_the_state(self):
        """As in a learner that joins when the others have taken the last step."""

        def stop(step):
            if step.number == 2:
                self.elastic.stop()

        self.make()
        self.train(after=stop)
        ended_with = self.elastic.ending.parameters_sha256
        self.make(folder=next(self.folders))
        with mock.patch.object(self.elastic._learner, "stop", lambda: None):
            self.train(after=stop, stop_at=3)
        self.make(folder=self.folder)
        self.train(after=stop)
        self.assertEqual(self.elastic.ending.step, 3)
        self.assertEqual(self.elastic.ending.parameters_sha256, ended_with)


class EndInMidStepTest(Loop):
    def run_to(self, ending):
        """Runs the loop with this ending after the second shard of the second step. Returns how far it came."""
        take, given, seen = self.elastic._learner.next, [], []

        def next_work():
            given.append(work := ending if len(given) == 7 else take())
            return work

        patch = mock.patch.object(self.elastic._learner, "next", next_work)
        patch.start()
        self.addCleanup(patch.stop)
        for step in self.elastic.steps():
            for batch in step:
                step.backward(self.loss(batch))
            seen.append((step.number, step.loss, step.accuracy, step.commit()))
        self.assertEqual(len(given), 8)
        return seen

    def test_it_is_how_the_training_ended(self):
        for reason, code, error in (
            ("Drained", 0, SystemExit),
            ("Interrupted", 130, KeyboardInterrupt),
            ("Failed", 2, TrainingFailed),
        ):
            with self.subTest(reason):
                self.make()
                with self.assertRaises(error) as ended:
                    self.run_to(Ending(reason, code, 1, "its peer is lost", ""))
                self.assertEqual(self.elastic.ending.reason, reason)
                if reason == "Drained":
                    self.assertEqual(ended.exception.code, 0)
                if reason == "Failed":
                    self.assertEqual(ended.exception.exit_code, 2)
                    self.assertIn("its peer is lost", str(ended.exception))

    def test_a_step_that_others_completed_has_no_loss_here(self):
        self.make()
        _, (number, loss, accuracy, taken) = self.run_to(Ending("Completed", 0, 1, "", ""))
        self.assertEqual((number, taken), (1, False))
        self.assertTrue(math.isnan(loss) and math.isnan(accuracy))


class EvaluationTest(Loop):
    def test_each_module_is_in_the_mode_that_it_was_in(self):
        def modes():
            return [module.training for module in self.model.modules()]

        def evaluate(batch):
            seen.append(any(modes()))
            return self.loss(batch)

        seen = []
        self.make(test_data=data(20), evaluate=evaluate)
        self.model[1].eval()  # its statistics stay frozen
        frozen = modes()
        for step in self.elastic.steps():
            for batch in step:
                self.assertEqual(modes(), frozen)
                step.backward(self.loss(batch))
            step.commit()
        self.assertTrue(seen)
        self.assertFalse(any(seen))
        self.assertEqual(modes(), frozen)


class CallbackTest(Loop):
    def test_a_progress_bar(self):
        for terminal in (True, False):
            shown = io.StringIO()
            shown.isatty = lambda terminal=terminal: terminal
            self.make(test_data=data(20), evaluate=self.evaluate)
            with contextlib.redirect_stderr(shown):
                self.elastic.add_callback(pliant.ProgressBar())
                self.train()
            text = shown.getvalue()
            self.assertRegex(text, r"epoch 1/2  \[#+\.+\] 4/8  loss ")
            self.assertRegex(text, r"epoch 2/2  \[#+\] 8/8  tested:  loss [\d.]+  accuracy 0")
            self.assertEqual(terminal, "\r" in text)
            self.assertTrue(text.endswith("\n"))

    def tensorboard(self, flush=lambda: None):
        """Replaces the package tensorboard by a fake that records its calls. Returns the recorded files."""
        files = []

        class Writer:
            def __init__(self, folder):
                self.folder, self.events, self.open = folder, [], True
                files.append(self)

            def add_event(self, event):
                self.events.append(event)

            def flush(self):
                flush()

            def close(self):
                self.open = False

        record = types.SimpleNamespace
        summary = type("Summary", (record,), {"Value": record})
        modules = {
            name: types.ModuleType(name)
            for name in (
                "tensorboard", "tensorboard.compat", "tensorboard.compat.proto", "tensorboard.summary", "tensorboard.summary.writer",
            )
        }  # fmt: skip
        modules |= {
            "tensorboard.compat.proto.event_pb2": record(Event=record, SessionLog=type("SessionLog", (record,), {"START": 1})),
            "tensorboard.compat.proto.summary_pb2": record(Summary=summary),
            "tensorboard.summary.writer.event_file_writer": record(EventFileWriter=Writer),
        }  # fmt: skip
        patch = mock.patch.dict(sys.modules, modules)
        patch.start()
        self.addCleanup(patch.stop)
        return files

    def test_events_for_tensorboard(self):
        files = self.tensorboard()
        self.make(test_data=data(20), evaluate=self.evaluate)
        self.elastic.add_callback(board := pliant.TensorBoard())
        self.train()
        (file,) = files
        self.assertEqual(file.folder, str(self.folder / "local" / "tensorboard"))
        self.assertFalse(file.open)
        version, start, *events = file.events
        self.assertEqual((version.file_version, version.step), ("brain.Event:2", 4))
        self.assertEqual((start.session_log.status, start.step), (1, 4))
        values = {
            (value.tag, event.step): value.simple_value
            for event in events
            for value in event.summary.value
        }
        self.assertEqual(
            {tag for tag, step in values if step == 8},
            {"loss/train", "learning_rate", "learners", "loss/test", "accuracy/test", "samples_per_second",
             "step_seconds", "batch_size"},
        )  # fmt: skip
        self.assertEqual(values["learning_rate", 8], 0.1)
        self.assertAlmostEqual(values["step_seconds", 8] * values["samples_per_second", 8], 16)
        # Another membership: events of later steps by earlier learners do not count. Training events of the
        # evaluation's own step do.
        for kind, membership in (
            ("train", "1.1"),
            ("train", "1.1"),
            ("train", "1.2"),
            ("test", "1.3"),
        ):
            line = {"kind": kind, "step": 6, "loss": 1.0, "unixSeconds": 1.0}
            board.on_log({**line, "membership": membership})
        board.on_train_end()
        self.assertEqual([len(file.events) for file in files[1:]], [4, 3, 3])
        self.assertEqual([file.events[1].step for file in files[1:]], [6, 6, 7])
        self.assertEqual([file.events[2].step for file in files[1:]], [6, 6, 6])

    def test_an_accuracy_that_no_program_reports_is_not_drawn(self):
        """metrics.jsonl has 0 in this case."""
        files = self.tensorboard()
        self.make()
        self.elastic.add_callback(board := pliant.TensorBoard())
        for accuracy in (0.0, 0.5, 0.0):
            line = {"kind": "train", "step": 1, "loss": 1.0, "accuracy": accuracy}
            board.on_log({**line, "unixSeconds": 1.0})
        board.on_train_end()
        self.assertEqual([len(event.summary.value) for event in files[0].events[2:]], [1, 2, 2])

    def test_an_optimizer_without_a_learning_rate(self):
        for settings in ({"lr": None}, {}):
            lines = []
            self.make()
            self.elastic.add_callback(pliant.LambdaCallback(on_log=lines.append))
            (group,) = self.optimizer.param_groups
            del group["lr"]
            group.update(settings)

            def step(group=group, settings=settings):
                group["lr"] = 0.1
                type(self.optimizer).step(self.optimizer)
                del group["lr"]
                group.update(settings)

            with mock.patch.object(self.optimizer, "step", step):
                self.assertIsNotNone(self.train())
            self.assertTrue(lines)
            self.assertFalse([line for line in lines if "learningRate" in line])

    def test_a_volume_that_takes_no_events_does_not_stop_the_training(self):
        reached, goes_on = threading.Event(), threading.Event()
        self.addCleanup(goes_on.set)

        def full():
            reached.set()
            raise OSError(errno.ENOSPC, "No space left on device")

        def hangs():
            reached.set()
            goes_on.wait()

        for flush, most, seconds, said in (
            (full, 1000, 60.0, "no further events are written: OSError.*No space left"),
            (hangs, 8, 0.1, "too slow"),
        ):
            reached.clear()
            with self.subTest(said):
                files = self.tensorboard(flush)
                self.make(test_data=data(20), evaluate=self.evaluate)
                self.elastic.add_callback(board := pliant.TensorBoard())
                shown = io.StringIO()
                with (
                    contextlib.redirect_stderr(shown),
                    mock.patch.multiple(
                        _background, END_SECONDS=seconds, _MAX_WAITING=most
                    ),
                ):
                    self.assertIsNotNone(self.train())
                    for step in range(20):
                        line = {"kind": "train", "step": step, "loss": 1.0, "unixSeconds": 1.0}
                        board.on_log(line)
                    board.on_train_end()
                self.assertTrue(reached.wait(60))
                self.assertEqual(len(files[0].events), 3, "up to the first line")
                for text in shown.getvalue().splitlines():
                    self.assertRegex(text, said)
                self.assertEqual(shown.getvalue().count("\n"), 2, "once by each thread")

    def test_callbacks_are_called_in_their_order(self):
        told = []

        class Told(pliant.Callback):
            def set_elastic(self, elastic):
                told.append("added")

            def on_train_begin(self):
                told.append("begin")

            def on_train_batch_end(self, step):
                told.append(step.number)

            def on_epoch_end(self, epoch):
                told.append(f"epoch {epoch}")

            def on_test_end(self, evaluation):
                told.append(f"test {evaluation.epoch}")

            def on_train_end(self):
                told.append("end")

        self.make(test_data=data(20), evaluate=self.evaluate, batch_size=28)
        self.elastic.add_callback(Told())
        self.elastic.add_callback(pliant.LambdaCallback(on_epoch_end=lambda epoch: told.append("second")))
        self.train(after=lambda step: told.append("loop"))
        self.assertEqual(
            told,
            ["added", "begin", "loop", 0, "loop", 1, "epoch 0", "second", "test 0",
             "loop", 2, "loop", 3, "epoch 1", "second", "test 1", "end"],
        )  # fmt: skip

    def test_a_resumed_run_keeps_what_a_callback_begins_with(self):
        """As in Keras, `on_train_begin` sets the callback's numbers; a state that is loaded comes after it."""

        class Best(pliant.Callback):
            def set_elastic(self, elastic):
                elastic.register("best", self)

            def on_train_begin(self):
                self.best = math.inf

            def on_train_batch_end(self, step):
                self.best = min(self.best, step.loss)

            def state_dict(self):
                return {"best": self.best}

            def load_state_dict(self, state):
                self.best = state["best"]

        def run(folder, stop_at=None):
            self.make(folder=folder)
            self.elastic.add_callback(best := Best())
            self.train(stop_at=stop_at)
            return best.best

        expected = run(next(self.folders))
        folder = next(self.folders)
        run(folder, stop_at=6)
        self.assertEqual(run(folder), expected)

    def test_two_early_stoppings_have_their_own_state(self):
        self.make(test_data=data(20), evaluate=self.evaluate)
        for monitor in ("loss", "accuracy"):
            self.elastic.add_callback(pliant.EarlyStopping(monitor=monitor))
        self.assertIsNotNone(self.train())

    def test_other_things_than_callbacks_are_refused(self):
        self.make()
        with self.assertRaisesRegex(InvalidProgram, "was given a function: it must be a pliant.Callback"):
            self.elastic.add_callback(lambda line: None)
        with self.assertRaisesRegex(InvalidProgram, "LambdaCallback has no on_batch: it has on_epoch_end"):
            pliant.LambdaCallback(on_batch=print)
        with self.assertRaisesRegex(InvalidProgram, "on_log of LambdaCallback is 3: give a function"):
            pliant.LambdaCallback(on_log=3)

    def test_all_is_let_go_whatever_a_callback_raises(self):
        ended = []

        class Bad(pliant.Callback):
            def on_train_end(self):
                ended.append(self)
                raise OSError("of the callback's")

        self.make()
        bad = [Bad(), Bad()]
        for callback in bad:
            self.elastic.add_callback(callback)
        with self.assertRaisesRegex(OSError, "of the callback's"):
            self.train()
        self.assertEqual(ended, bad)
        self.assertTrue(self.elastic._learner.closed)
        self.assertFalse(self.elastic._gradients._hooks)

    def test_a_learner_that_leaves_ends_well_whatever_a_callback_raises(self):
        class Bad(pliant.Callback):
            def on_train_end(self):
                raise OSError("of the callback's")

        self.make()
        self.elastic.add_callback(Bad())
        shown = io.StringIO()
        with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(shown):
            self.train(after=lambda step: os.kill(os.getpid(), signal.SIGTERM))
        self.assertEqual(ended.exception.code, 0)
        self.assertIn("of the callback's", shown.getvalue())

    def test_without_tensorboard_a_line_says_so(self):
        shown = io.StringIO()
        self.make()
        with mock.patch.dict(sys.modules, {"tensorboard": None}), contextlib.redirect_stderr(shown):
            self.elastic.add_callback(pliant.TensorBoard())
            self.assertIsNotNone(self.train())
        self.assertEqual(shown.getvalue().count("pip install tensorboard"), 1)
        with self.assertRaisesRegex(PliantError, "before the first step"):
            self.elastic.add_callback(pliant.ProgressBar())


class RegisteredStateTest(Loop):
    class Mean:
        """A metric of the program: a moving mean of the loss."""

        def __init__(self):
            self.value = torch.zeros(())
            self.seen = []

        def state_dict(self):
            return vars(self)

        def load_state_dict(self, state_dict):
            vars(self).update(state_dict)

    def test_schedules_and_metrics_continue(self):
        def run(folder, stop_at=None):
            self.make(folder=folder, epochs=3)
            schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 0.2, 12)
            self.elastic.register("schedule", schedule)
            self.elastic.register("mean", mean := self.Mean())
            self.elastic.register("mine", mine := {"best": math.inf})

            def after(step):
                schedule.step()
                mean.value = 0.9 * mean.value + 0.1 * step.loss
                mean.seen = [*mean.seen, step.number][-3:]
                if step.loss < mine["best"]:
                    mine.update({"best": step.loss, "at": step.number})

            return self.train(after, stop_at), mean, mine, schedule.get_last_lr()

        expected, mean, mine, rate = run(next(self.folders))
        folder = next(self.folders)
        run(folder, stop_at=6)
        again, mean_again, mine_again, rate_again = run(folder)
        self.assert_same(again, expected)
        self.assertEqual((mean_again.value, mine_again, rate_again), (mean.value, mine, rate))
        self.assertIn("at", mine)
        self.assertEqual(mean_again.seen, [9, 10, 11])

    def test_clipping_is_of_the_reduced_gradient(self):
        """The norm of the reduced gradient is clipped, not that of a shard: the distance that parameters move shows
        it."""
        self.make()
        self.optimizer.param_groups[0]["momentum"] = 0.0
        before = [parameter.detach().clone() for parameter in self.model.parameters()]
        norms = []
        for step in self.elastic.steps():
            for batch in step:
                step.backward(100 * self.loss(batch))
            whole = torch.cat([parameter.grad.flatten() for parameter in self.model.parameters()])
            norms.append(float(whole.norm()))
            step.commit(max_norm=0.5)
            after = [parameter.detach().clone() for parameter in self.model.parameters()]
            moved = torch.cat([(a - b).flatten() for a, b in zip(after, before, strict=True)])
            self.assertAlmostEqual(float(moved.norm()), 0.1 * 0.5, places=5)
            before = after
        self.assertGreater(min(norms), 0.5)

    def test_mixed_precision_continues(self):
        def run(folder, stop_at=None):
            self.make(folder=folder)
            plain_loss = self.loss
            with mock.patch.object(self, "loss") as loss:

                def in_half(batch):
                    with torch.autocast("cpu", dtype=torch.bfloat16):
                        return plain_loss(batch)

                loss.side_effect = in_half
                return self.train(stop_at=stop_at)

        self.make()
        plain = self.train()
        expected = run(next(self.folders))
        self.assertFalse(all(torch.equal(a, b) for a, b in zip(plain, expected, strict=True)))
        run(folder := next(self.folders), stop_at=3)
        self.assert_same(run(folder), expected)


class FinalModelTest(Loop):
    def test_plain_torch_reads_it(self):
        self.make()
        ended_with = self.train()
        path = self.folder / "local" / "final" / "model.safetensors"
        if importlib.util.find_spec("safetensors"):
            from safetensors.torch import load_file

            tensors = load_file(path)
        else:  # read as that package does: a length, a header, the bytes
            raw = path.read_bytes()
            (length,) = struct.unpack("<Q", raw[:8])
            kinds = {"F32": torch.float32, "I64": torch.int64}
            tensors = {}
            for name, entry in json.loads(raw[8 : 8 + length]).items():
                if name == "__metadata__":
                    continue
                first, last = (8 + length + offset for offset in entry["data_offsets"])
                flat = torch.frombuffer(bytearray(raw[first:last]), dtype=kinds[entry["dtype"]])
                tensors[name] = flat.reshape(entry["shape"])
        plain = net()
        plain.load_state_dict(tensors, strict=True)
        self.assert_same(plain.state_dict().values(), ended_with)


@dataclasses.dataclass
class Parts:
    """A batch of a type that no library knows."""

    inputs: object
    targets: object


class Full:
    """A batch for which there is no room."""

    def __reduce__(self):
        raise OSError(errno.ENOSPC, "No space left on device")


class WorkersTest(unittest.TestCase):
    def test_batches_loaded_ahead_have_a_limit_in_bytes(self):
        batches = types.SimpleNamespace(in_order=False, sources={}, load=lambda samples, epoch: None)
        context = multiprocessing.get_context("fork")
        workers = Workers(3, batches, None, context=context)
        self.addCleanup(workers.close)
        for size, depth in ((0, 1), (1 << 20, 6), (300 << 20, 3), (5 << 30, 1)):
            workers._batch_bytes = size
            self.assertEqual(workers._depth(), depth, size)

    def shard(self, samples, training=True, epoch=0):
        return Shard(epoch, step=3, index=1, samples=samples, seed=0, training=training)

    def through(self, batch):
        """The batch as received from a worker, and the workers."""
        batches = types.SimpleNamespace(in_order=False, sources={}, load=lambda samples, epoch: batch)
        workers = Workers(2, batches, None, context=torch.multiprocessing.get_context("fork"))
        self.addCleanup(workers.close)
        shards = [self.shard((sample,)) for sample in range(9)]
        workers.ask_ahead(lambda ahead: shards[ahead])
        self.assertEqual(workers._asked, {_key(shards[0], 0)}, "what one weighs is not known yet")
        return workers.load(shards[0], lambda: self.fail("it was asked for")), workers

    def test_a_batch_weighs_as_much_as_its_tensors(self):
        tensor = torch.arange(100_000.0)
        for name, batch, of in (
            ("tensors", [tensor, {"labels": tensor}], lambda batch: batch[1]["labels"]),
            ("a class of the program's", Parts(tensor, tensor), lambda batch: batch.targets),
            ("an array", [tensor.numpy(), tensor.numpy()], lambda batch: torch.tensor(batch[1])),
            ("bytes", Parts(bytes(400_000), bytes(400_000)), lambda batch: tensor),
        ):
            with self.subTest(name):
                there, workers = self.through(batch)
                self.assertTrue(torch.equal(of(there), tensor))
                self.assertGreaterEqual(workers._batch_bytes, 400_000)
                self.assertLess(workers._batch_bytes, 900_000)
        there, _ = self.through(torch.eye(3).to_sparse())
        self.assertTrue(torch.equal(there.to_dense(), torch.eye(3)))

    def test_a_batch_that_cannot_be_sent_is_an_error(self):
        """The learner must not wait for it forever."""
        for batch, said in (
            ([torch.zeros(2), lambda: None], "samples 0 cannot leave .*lambda"),
            (Full(), "samples 0 cannot leave .*OSError: .*No space left on device"),
        ):
            log = io.StringIO()
            with self.subTest(said), contextlib.redirect_stderr(log):
                with self.assertRaisesRegex(DataWorkerError, said):
                    self.through(batch)
                self.assertIn("Traceback", log.getvalue(), "by the parent, whose output is kept")

    def test_a_batch_is_of_the_samples_that_are_wanted(self):
        """After a resize a forecast may have the right step and shard but other samples: in another order, or of
        another evaluation tick of the same step."""
        batches = types.SimpleNamespace(
            in_order=False, sources={}, load=lambda samples, epoch: (epoch, list(samples), os.getpid())
        )
        workers = Workers(1, batches, batches, context=multiprocessing.get_context("fork"))
        self.addCleanup(workers.close)
        workers._batch_bytes = 1  # known, so two batches are loaded ahead
        shard = self.shard
        asked = [shard((1, 2)), shard((7, 8), training=False)]
        workers.ask_ahead(lambda ahead: asked[ahead] if ahead < len(asked) else None)
        for wanted in (shard((5, 6)), shard((9,), training=False), shard((1, 2), epoch=1)):
            loaded = workers.load(
                wanted, lambda wanted=wanted: batches.load(wanted.samples, wanted.epoch)
            )
            there = (wanted.epoch, list(wanted.samples), os.getpid())
            self.assertEqual(loaded, there, "loaded in place")
        for wanted in asked:
            epoch, samples, process = workers.load(wanted, lambda: self.fail("it was asked for"))
            self.assertEqual((epoch, samples), (wanted.epoch, list(wanted.samples)))
            self.assertNotEqual(process, os.getpid())


if __name__ == "__main__":
    unittest.main(verbosity=2)
