"""Frozen parameters at home: what the state, checkpoints and the final model have of them, and what happens when they
differ or change."""

import json
import unittest
from unittest import mock

import torch
from pliant import _learner
from pliant._torch.final_model import read_safetensors
from pliant.errors import InvalidProgram
from torch import nn

import pliant

from resumable import ResumableTest
from small_data import data


class Adapted(nn.Module):
    """A frozen base of several types, and a small part that is trained."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.base = nn.Linear(6, 64).requires_grad_(False)
        self.tables = nn.ParameterList(
            nn.Parameter(torch.arange(-8, 8, dtype=torch.float32).to(dtype), requires_grad=False)
            for dtype in (torch.int8, torch.int16, torch.float8_e4m3fn, torch.float8_e5m2)
        )
        self.turned = nn.Parameter(torch.randn(3, 64).t(), requires_grad=False)  # not contiguous
        self.norm = nn.BatchNorm1d(3)
        self.out = nn.Linear(3, 2)

    def forward(self, inputs):
        scale = sum(table.float().sum() for table in self.tables)
        return self.out(self.norm(self.base(inputs).tanh() @ self.turned + 0.01 * scale))


def bytes_of(tensor):
    return tensor.reshape(-1).view(torch.uint8)


FROZEN = {"base.weight", "base.bias", "turned", *(f"tables.{i}" for i in range(4))}


class Frozen(ResumableTest):
    def make(self, folder="one", model=None, **settings):
        self.model = Adapted() if model is None else model
        optimizer = torch.optim.SGD(
            [each for each in self.model.parameters() if each.requires_grad], lr=0.1, momentum=0.9
        )
        self.elastic = pliant.attach(
            self.model,
            optimizer,
            data(32),
            **{"epochs": 2, "batch_size": 8, "logical_shards": 2, "frozen": "at_home", **settings},
            checkpoint_dir=self.scratch / folder,
        )
        self.addCleanup(self.elastic.close)

    def train(self, stop_at=None, after=lambda step: None):
        for step in self.elastic.steps():
            for inputs, labels in step:
                step.backward(nn.functional.cross_entropy(self.model(inputs), labels))
            step.commit()
            after(step)
            if step.number == stop_at:
                self.elastic.close()
                return None
        return self.elastic.ending.parameters_sha256

    def folder(self, folder="one"):
        return self.scratch / folder / "local"

    def newest(self, folder="one"):
        return max(self.folder(folder).glob("step-*"))


class AtHomeTest(Frozen):
    def test_neither_checkpoints_nor_the_state_have_them(self):
        self.make()
        self.train(stop_at=3)
        kept = read_safetensors(self.newest() / "model-00001-of-00001.safetensors")
        self.assertFalse(FROZEN & set(kept))
        self.assertIn("norm.running_mean", kept)
        base = json.loads((self.newest() / "manifest.json").read_text())["base"]
        self.assertEqual((len(base["sha256"]), base["name"]), (64, ""))
        self.make("two", frozen="sent")
        self.train(stop_at=3)
        kept = read_safetensors(self.newest("two") / "model-00001-of-00001.safetensors")
        self.assertLess(FROZEN, set(kept))
        self.assertIsNone(json.loads((self.newest("two") / "manifest.json").read_text())["base"])

    def test_the_final_model_is_whole_and_the_same(self):
        self.make("home")
        self.train()
        self.make("sent", frozen="sent")
        self.train()
        home, sent = (
            read_safetensors(self.folder(each) / "final" / "model.safetensors")
            for each in ("home", "sent")
        )
        self.assertEqual(set(home), set(sent))
        for name, value in home.items():
            self.assertTrue(torch.equal(bytes_of(value), bytes_of(sent[name])), name)

    def test_a_run_resumes_on_the_same_base(self):
        self.make("whole")
        expected = self.train()
        self.make()
        self.train(stop_at=3)
        self.make()
        self.assertEqual(self.train(), expected)
        late = Adapted()
        with torch.no_grad():
            late.out.weight.zero_()
        self.make(model=late)
        self.train()  # the training is complete: this process gets the final model
        for name, value in read_safetensors(self.folder() / "final" / "model.safetensors").items():
            self.assertTrue(torch.equal(late.state_dict()[name].float(), value.float()), name)

    def test_another_base_is_refused(self):
        """Also if one weight of it differs in its last bit."""
        self.make()
        self.train(stop_at=3)
        other = Adapted()
        with torch.no_grad():
            weights = other.base.weight.view(torch.int32)
            weights[5, 3] ^= 1
        self.make(model=other)
        with self.assertRaisesRegex(pliant.TrainingFailed, "was written with the base model [0-9a-f]+; this job has the base"):
            self.train()
        self.make(frozen="sent")
        with self.assertRaisesRegex(pliant.TrainingFailed, "this job has all parameters"):
            self.train()

    def test_a_change_is_an_error(self):
        def in_place(step):
            with torch.no_grad():
                self.model.base.weight.add_(1)

        def replaced(step):
            self.model.base.weight = nn.Parameter(torch.zeros(64, 6), requires_grad=False)

        def moved(step):
            self.model.base.bias.data = torch.zeros(64)

        def behind_the_counter(step):
            """As PEFT merges an adapter: found at the end of the epoch."""
            self.model.base.weight.data[5, 3] += 1

        for change in (in_place, replaced, moved, behind_the_counter):
            self.make(change.__name__)
            with self.subTest(change.__name__), self.assertRaisesRegex(
                InvalidProgram,
                r"the frozen parameter base.\w+ was changed, .*: give frozen='sent' to pliant.attach",
            ):
                self.train(after=change)

    def test_a_change_before_an_early_end_is_an_error(self):
        """Also behind the version counter: the final model would be that of another base."""

        def change_and_stop(step):
            if step.number == 1:
                self.model.base.weight.data[5, 3] += 1
                self.elastic.stop()

        self.make()
        with self.assertRaisesRegex(InvalidProgram, "the frozen parameter base.weight was changed"):
            self.train(after=change_and_stop)
        self.assertFalse((self.folder() / "final").exists())

    def test_a_final_model_of_another_base_is_not_loaded(self):
        self.make()
        self.train()
        other = Adapted()
        with torch.no_grad():
            other.base.bias[0] += 1
        self.make(model=other)
        with self.assertRaisesRegex(pliant.TrainingFailed, "the final model was written with the base model .*; this job has the base"):
            self.train()

    def test_a_large_final_model_has_several_files(self):
        with mock.patch.object(_learner, "FINAL_FILE_BYTES", 1000):
            self.make()
            self.train()
        final = self.folder() / "final"
        index = json.loads((final / "model.safetensors.index.json").read_text())
        files = {path.name for path in final.glob("model-*.safetensors")}
        self.assertGreater(len(files), 2)
        self.assertEqual(set(index["weight_map"].values()), files)
        state = self.model.state_dict()
        self.assertEqual(set(index["weight_map"]), set(state))
        self.assertEqual(index["metadata"]["total_size"], sum(each.nbytes for each in state.values()))
        for name, file in index["weight_map"].items():
            value = read_safetensors(final / file)[name]
            self.assertTrue(torch.equal(value.float(), state[name].float()), name)
        late = Adapted()
        self.make(model=late)
        self.train()
        self.assertTrue(torch.equal(late.out.weight, state["out.weight"]))


class NamesTest(Frozen):
    def test_a_compiled_model_has_the_names_of_the_plain_one(self):
        """Compiled as a whole or in part, without a compiler of its own (backend eager)."""

        def whole(model):
            return torch.compile(model, backend="eager")

        def part(model):
            model.base = torch.compile(model.base, backend="eager")
            return model

        self.make("plain")
        expected = self.train()
        for compiled in (whole, part):
            with self.subTest(compiled.__name__):
                self.make(compiled.__name__, model=compiled(Adapted()))
                self.train(stop_at=3)
                self.make(compiled.__name__)  # and resumes without
                self.assertEqual(self.train(), expected)

    def test_wrappers_are_refused(self):
        with self.assertRaisesRegex(InvalidProgram, "is a DataParallel, .* give the model inside"):
            self.make(model=nn.DataParallel(Adapted()))

    def test_tensors_that_cannot_be_held_are_named(self):
        expanded, turning = Adapted(), Adapted()
        expanded.register_buffer("mask", torch.zeros(1).expand(5))
        turning.register_buffer("rotations", torch.ones(3, dtype=torch.complex64))
        for model, said in ((expanded, "mask is expanded: .*clone"), (turning, "model.rotations is of type complex64: .*view_as_real")):
            with self.assertRaisesRegex(InvalidProgram, said):
                self.make(model=model)
                self.train()


if __name__ == "__main__":
    unittest.main(verbosity=2)
