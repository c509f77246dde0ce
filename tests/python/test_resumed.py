"""State that a learner which joins must have, seen in one process: a training that is left in the middle, and resumes
in another object. And data that a program changes while it trains."""

import contextlib
import io
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import types
import unittest
from unittest import mock

import torch
from pliant._data_changes import DataChanges, apply
from pliant._learner import Loaded, Shard
from pliant._workers import Workers
from pliant.errors import InvalidProgram
from torch import nn
from torch.utils.data import Subset, TensorDataset

import pliant


class Resumed(unittest.TestCase):
    """A training that is left in the middle, and continues in another object: what a learner that joins goes through."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-quiet-")
        self.addCleanup(scratch.cleanup)
        self.folders = (pathlib.Path(scratch.name) / str(i) for i in range(100))
        self.enterContext(mock.patch.dict(os.environ, {"PLIANT_CHECKPOINT_EVERY_STEPS": "1"}))
        self.told = io.StringIO()
        self.enterContext(contextlib.redirect_stderr(self.told))

    def make(self, folder, **settings):
        torch.manual_seed(4)
        self.model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.4), nn.Linear(8, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        inputs = torch.randn(64, 6)
        data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
        given = {"epochs": 3, "batch_size": 16, "logical_shards": 4, "checkpoint_dir": folder, **settings}
        self.elastic = pliant.attach(self.model, self.optimizer, data, **given)
        self.addCleanup(self.elastic.close)

    def loss(self, batch):
        return nn.functional.cross_entropy(self.model(batch[0]), batch[1])

    def train(self, *, after=lambda step: None, passes=lambda step: 1, stop_at=None):
        """The parameters, or None if it stopped earlier."""
        for step in self.elastic.steps():
            for batch in step:
                for _ in range(passes(step)):
                    step.backward(self.loss(batch))
            step.commit()
            after(step)
            if step.number == stop_at:
                self.elastic.close()
                return None
        return [value.clone() for value in self.model.state_dict().values()]

    def assert_goes_on(self, prepare=lambda: {}, stops=(4, 5)):
        """`prepare` is called after each `make` and returns the arguments of `train`."""
        self.make(next(self.folders))
        expected = self.train(**prepare())
        for stop_at in stops:
            folder = next(self.folders)
            self.make(folder)
            self.train(**prepare(), stop_at=stop_at)
            self.make(folder)
            again = self.train(**prepare())
            for a, b in zip(again, expected, strict=True):
                self.assertTrue(torch.equal(a, b), stop_at)


class StateTest(Resumed):
    def test_a_schedule_that_is_not_registered_continues(self):
        def prepare():
            schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)
            return {"after": lambda step: schedule.step()}

        self.assert_goes_on(prepare)
        self.assertIn("pliant: the schedule StepLR of the optimizer is part of", self.told.getvalue())

    def test_a_schedule_of_schedules_is_one(self):
        def prepare():
            kinds = torch.optim.lr_scheduler
            parts = [kinds.ConstantLR(self.optimizer, 0.1, 3), kinds.ExponentialLR(self.optimizer, 0.9)]
            schedule = kinds.SequentialLR(self.optimizer, parts, milestones=[5])
            return {"after": lambda step: schedule.step()}

        self.assert_goes_on(prepare)
        self.assertIn("the schedule SequentialLR", self.told.getvalue())
        self.assertNotIn("ConstantLR", self.told.getvalue())

    def test_several_schedules_must_be_registered(self):
        kinds = torch.optim.lr_scheduler

        def both():
            return kinds.StepLR(self.optimizer, 2), kinds.ReduceLROnPlateau(self.optimizer)

        self.make(next(self.folders))
        schedules = both()
        with self.assertRaisesRegex(InvalidProgram, r"2 schedules .* not registered \(ReduceLROnPlateau, StepLR\)"):
            self.train()
        self.make(next(self.folders))
        schedules = both()
        for i, schedule in enumerate(schedules):
            self.elastic.register(f"schedule {i}", schedule)
        self.train()
        self.make(next(self.folders))
        schedules = both()
        elsewhere = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1)
        schedules = kinds.StepLR(elsewhere, 2), kinds.StepLR(self.optimizer, 2)
        self.train()  # those before are gone, and one is of another optimizer
        del schedules

    def test_modes_continue(self):
        def leave_evaluating(step):
            if step.number == 2:
                self.model.eval()
            if step.number == 7:
                self.model[1].train()

        self.assert_goes_on(lambda: {"after": leave_evaluating}, stops=(4, 8))

    def test_passes_are_those_of_the_first_step(self):
        """Another learner begins with a step that has one."""
        self.assert_goes_on(lambda: {"passes": lambda step: 2 - step.number % 2}, stops=(4, 5))

    def test_evaluate_has_registered_modules_in_evaluation_mode(self):
        average = torch.optim.swa_utils.AveragedModel(nn.Sequential(nn.BatchNorm1d(6)))
        average.module[0].eval()
        seen = []

        def evaluate(batch):
            seen.append([module.training for module in average.modules()])
            return 0.0

        self.make(next(self.folders), test_data=TensorDataset(torch.zeros(8, 6)), evaluate=evaluate)
        self.elastic.register("average", average)
        self.train()
        self.assertFalse(any(map(any, seen)))
        self.assertEqual([module.training for module in average.modules()], [True, True, False])

    def test_registered_state_that_the_inner_loop_changes(self):
        class State(dict):
            def state_dict(self):
                return dict(self)

            load_state_dict = dict.update

        module = nn.BatchNorm1d(6)
        changes = {
            "n": lambda state: state.update(n=state["n"] + 1),
            r"seen\[0\]": lambda state: state["seen"].insert(0, 1),
            "sums": lambda state: state["sums"].add_(1),
            "large": lambda state: state["large"].add_(1),
            "best": lambda state: state.update(best=1.5),
            "running_mean": lambda state: module(torch.ones(4, 6)),
        }
        for name, change in changes.items():
            self.make(next(self.folders))
            state = State(n=0, seen=[], sums=torch.zeros(3), large=torch.zeros(1 << 19), best=float("inf"))
            self.elastic.register("state", state)
            self.elastic.register("module", module)
            with self.subTest(name), self.assertRaisesRegex(InvalidProgram, rf"(state|module)\.{name} was changed by the"):
                for step in self.elastic.steps():
                    for batch in step:
                        step.backward(self.loss(batch))
                        change(state)
                    step.commit()
        self.make(next(self.folders))
        self.elastic.register("state", State(n=0))
        self.train()

    def test_a_state_that_is_loaded_in_mid_step_begins_a_step_again(self):
        """As in a learner that did not hear of the last commit of one that died: what the loop sets before a step fits
        the state, and what it does after a step without a result is undone."""

        def run(at=None):
            self.make(next(self.folders))
            schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)
            self.elastic.register("schedule", schedule)
            learner, works, seen = self.elastic._learner, [], []
            take, answer = learner.next, learner.loaded

            def next_work():
                works.append(Loaded() if len(works) == at else take())
                return works[-1]

            answered = mock.Mock()
            with mock.patch.multiple(learner, next=next_work, loaded=answered if at else answer):
                for step in self.elastic.steps():
                    self.optimizer.param_groups[0]["momentum"] = 0.9 - 0.01 * step.number
                    for batch in step:
                        step.backward(self.loss(batch), texts=len(batch[0]))
                    seen.append((step.number, step.commit(), step.loss == step.loss, step.accuracy == 0, step.sums["texts"] / step.weight == 1))
                    schedule.step()
            self.assertEqual(answered.call_count, 1 if at else 0)
            return [value.clone() for value in self.model.state_dict().values()], seen

        expected, seen = run()
        again, seen_again = run(7)  # in the second step, after two of its shards
        self.assertEqual(seen_again, [*seen[:1], (1, False, False, False, False), *seen[1:]])
        for a, b in zip(again, expected, strict=True):
            self.assertTrue(torch.equal(a, b))

    def test_a_name_that_only_the_inner_loop_sets(self):
        script = textwrap.dedent(
            """
            import sys
            import test_resumed
            from pliant._learner import Shard

            test = test_resumed.Resumed()
            test.folders = iter([sys.argv[1]])
            test.make(sys.argv[1])
            elastic = test.elastic
            take = elastic._next_of_step

            def without_shards():
                while isinstance(work := take(), Shard):
                    elastic._begin_shard(work)
                    elastic._backward(test.loss(elastic._begin_batch(work)), None, None)
                    elastic._end_shard(work)
                return work

            elastic._next_of_step = without_shards
            for step in elastic.steps():
                for batch in step:
                    mine = len(batch)
                step.commit()
                print(mine)
            """
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(pathlib.Path(__file__).parent), *sys.path])}
        ended = subprocess.run(
            [sys.executable, "-c", script, str(next(self.folders))], env=environment, capture_output=True, text=True
        )
        self.assertEqual(ended.returncode, 2, ended.stderr)
        self.assertIn("NameError: name 'mine' is not defined", ended.stderr)
        self.assertIn("pliant: this learner had no shard of step 0, as any learner may", ended.stderr)


class Changing:
    """Data of a program, with things of every sort that a program may change."""

    def __init__(self):
        self.epoch = 0
        self.limits = [1, 2]
        self.weights = torch.zeros(3)
        self.parts = [types.SimpleNamespace(scale=1), types.SimpleNamespace(scale=2)]
        self.table = {"a": 1}
        self.file = None
        self.shared = torch.zeros(1).share_memory_()
        self.value = multiprocessing.Value("i", 0)

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return [
            self.epoch, sum(self.limits), float(self.weights.sum()), sum(part.scale for part in self.parts),
            self.table["a"], float(self.shared), self.value.value,
        ]  # fmt: skip


class DataTest(unittest.TestCase):
    def workers(self, data):
        def load(samples, epoch):
            return [data[index] for index in samples]

        batches = types.SimpleNamespace(in_order=False, sources={"data": data}, load=load)
        workers = Workers(2, batches, None, context=torch.multiprocessing.get_context("fork"))
        self.addCleanup(workers.close)
        shards = [
            Shard(epoch=0, step=i, index=i, samples=(i,), seed=0, training=True) for i in range(40)
        ]

        def take(i, *, ahead=True):
            """The batch of a shard, which a worker loads."""
            in_place = []
            batch = workers.load(shards[i], lambda: in_place.append(i) or load(shards[i].samples, 0))
            workers.ask_ahead(lambda ahead: shards[i + 1 + ahead])
            self.assertEqual(bool(in_place), not ahead)
            return batch[0]

        return take

    def test_workers_have_what_the_program_sets(self):
        data = Changing()
        inside = Subset(data, range(64))
        inside.dataset = data
        take = self.workers(data)
        take(0, ahead=False)
        changes = [
            lambda: setattr(data, "epoch", 7),
            lambda: data.limits.append(3),
            lambda: data.weights.add_(1),
            lambda: setattr(data.parts[1], "scale", 9),
            lambda: data.parts.append(types.SimpleNamespace(scale=30)),
            lambda: data.table.update(a=5),
            lambda: data.shared.add_(2),
            lambda: setattr(data.value, "value", 4),
            lambda: setattr(data, "parts", data.parts[:1]),
        ]
        i = 1
        for change in changes:
            self.assertEqual(take(i), data[0])
            change()
            self.assertEqual(take(i + 1, ahead=False), data[0], "what was loaded ahead is of the past")
            self.assertEqual(take(i + 2), data[0])
            i += 3

    def test_a_sample_may_change_the_data_of_its_process(self):
        """A cache, or a file that is opened when the first sample is read: each process has its own."""

        class Opens(Changing):
            def __getitem__(self, index):
                if self.file is None:
                    self.file = open(os.devnull)
                    self.addresses = {}
                self.addresses[index] = os.getpid()
                return super().__getitem__(index)

        data = Opens()
        self.addCleanup(lambda: data.file.close())
        take = self.workers(data)
        take(0, ahead=False)
        for i in range(1, 6):
            take(i)
        other = Opens()
        self.addCleanup(lambda: other.file.close())
        take = self.workers(other)
        other[0]  # by the program
        take(0, ahead=False)
        take(1)

    def test_a_change_that_cannot_be_sent_is_refused(self):
        for change, said in (
            (lambda data: setattr(data, "collate", lambda: None), "training data.collate was changed .*num_workers=0"),
            (lambda data: data.parts[0].__dict__.update(scale=open(os.devnull)), r"training data.parts.0.scale was"),
            (lambda data: setattr(data, "weights", torch.zeros(5 << 20)), "data.weights .* too large.* share_memory_"),
        ):
            data = Changing()
            data.collate = len
            changes = DataChanges({"training data": data})
            change(data)
            with self.subTest(said), self.assertRaisesRegex(InvalidProgram, said):
                changes.look()

    def test_changes_reach_a_copy(self):
        data, copy = Changing(), Changing()
        changes = DataChanges({"data": data})
        changes.look()
        self.assertEqual(changes.version, 0)
        data.parts[0].scale = 5
        changes.look()
        data.epoch = 3
        changes.look()
        self.assertEqual(changes.version, 2)
        apply(changes.packed, {"data": copy})
        self.assertEqual(copy[0], data[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
