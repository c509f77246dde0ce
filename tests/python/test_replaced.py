"""State that a program replaces instead of writing to it: a buffer that `forward` assigns, `p.data = ...`, an average
of the parameters. It still belongs to the training's state, or an error names the line to change."""

import contextlib
import copy
import io
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import torch
from pliant._torch.mirror import Mirror, RareChanges
from pliant.errors import InvalidProgram
from torch import nn

import pliant

from small_data import data


class Net(nn.Module):
    """`write`: changes the buffers in forward."""

    def __init__(self, write):
        super().__init__()
        torch.manual_seed(2)
        self.layer = nn.Linear(6, 3)
        self.tail = nn.Linear(3, 3)
        self.register_buffer("mean", torch.zeros(6))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.write = write

    def forward(self, inputs):
        if self.training:
            self.write(self, inputs.detach())
        return self.tail(self.layer(inputs - self.mean))


def in_place(net, inputs):
    net.mean.mul_(0.9).add_(0.1 * inputs.mean(0))
    net.seen += len(inputs)


def assigned(net, inputs):
    net.mean = 0.9 * net.mean + 0.1 * inputs.mean(0)
    net.seen = net.seen + len(inputs)


def by_data(net, inputs):
    net.mean.data = 0.9 * net.mean.data + 0.1 * inputs.mean(0)
    net.seen.data = net.seen.data + len(inputs)


def shrink_in_place(net):
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(0.99)


def shrink_by_data(net):
    for parameter in net.parameters():
        parameter.data = parameter.data * 0.99


def shrink_by_vector(net):
    vector = nn.utils.parameters_to_vector(net.parameters()).detach()
    nn.utils.vector_to_parameters(vector * 0.99, net.parameters())


def shrink_transposed(net):
    """Replaces parameters by other memory with another layout."""
    for parameter in net.parameters():
        parameter.data = (parameter.data.t().contiguous() * 0.99).t()


class ReplacedTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-replaced-")
        self.addCleanup(scratch.cleanup)
        self.folders = (pathlib.Path(scratch.name) / str(i) for i in range(100))
        environment = mock.patch.dict(os.environ, {"PLIANT_CHECKPOINT_EVERY_STEPS": "1"})
        environment.start()
        self.addCleanup(environment.stop)
        log = contextlib.redirect_stderr(io.StringIO())
        log.__enter__()
        self.addCleanup(log.__exit__, None, None, None)

    def train(self, net, after=lambda net: None, *, folder=None, stop_at=None, batch=None):
        """Trains and returns the model's state, or None if it stopped earlier. At the end it also checks the final
        model."""
        folder = folder or next(self.folders)
        optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
        elastic = pliant.attach(
            net, optimizer, data(), epochs=2, batch_size=16, logical_shards=4, checkpoint_dir=folder
        )
        self.addCleanup(elastic.close)
        for step in elastic.steps():
            for inputs, targets in step:
                if batch:
                    batch(net, step)
                step.backward(nn.functional.cross_entropy(net(inputs), targets))
            step.commit()
            after(net)
            if step.number == stop_at:
                elastic.close()
                return None
        final = load_file(folder / "local" / "final" / "model.safetensors")
        for name, value in net.state_dict().items():
            if name in final:  # a tied tensor is written under one name only
                self.assertTrue(torch.equal(value, final[name]), f"{name}: the final model is the program's")
        return {name: value.clone() for name, value in net.state_dict().items()}

    def assert_same(self, first, second):
        for name, value in first.items():
            self.assertTrue(torch.equal(value, second[name]), name)

    def assert_same_restored(self, make, after, expected):
        """The same when another process resumes from a checkpoint."""
        folder = next(self.folders)
        self.assertIsNone(self.train(make(), after, folder=folder, stop_at=4))
        self.assert_same(self.train(make(), after, folder=folder), expected)

    def test_buffers_that_forward_replaces(self):
        expected = self.train(Net(in_place))
        self.assertGreater(float(expected["mean"].abs().sum()), 0)
        for write in (assigned, by_data):
            with self.subTest(write.__name__):
                self.assert_same(self.train(Net(write)), expected)
                self.assert_same_restored(lambda write=write: Net(write), lambda net: None, expected)

    def test_parameters_that_are_replaced_after_the_commit(self):
        expected = self.train(Net(in_place), shrink_in_place)
        for shrink in (shrink_by_data, shrink_by_vector, shrink_transposed):
            with self.subTest(shrink.__name__):
                self.assert_same(self.train(Net(in_place), shrink), expected)
                self.assert_same_restored(lambda: Net(in_place), shrink, expected)

    def test_an_average_that_is_a_frozen_part_of_the_model(self):
        """With its buffers: the values averaged after a commit are those of the step."""

        class Averaged(Net):
            def __init__(self, write):
                super().__init__(write)
                self.norm = nn.BatchNorm1d(6)
                self.average = copy.deepcopy(nn.ModuleList([self.layer, self.norm]))
                self.average.requires_grad_(False)

            def forward(self, inputs):
                return super().forward(self.norm(inputs))

        def pairs(net):
            ours = nn.ModuleList([net.layer, net.norm])
            yield from zip(net.average.parameters(), ours.parameters(), strict=True)
            yield from zip(net.average.buffers(), ours.buffers(), strict=True)

        batches = []

        def lerp(net):
            batches.append(int(net.norm.num_batches_tracked))
            for average, value in pairs(net):
                average.data.copy_((average.float() * 0.9 + value.detach().float() * 0.1))

        def replace(net):
            for average, value in pairs(net):
                average.data = (average.float() * 0.9 + value.detach().float() * 0.1).to(average)

        expected = self.train(Averaged(in_place), lerp)
        self.assertEqual(batches, list(range(1, 9)), "one shard's batch of each step, this one's too")
        moved = expected["average.1.running_mean"]
        self.assertGreater(float(moved.abs().sum()), 0)
        for average in (lerp, replace):
            with self.subTest(average.__name__):
                self.assert_same(self.train(Averaged(in_place), average), expected)
                self.assert_same_restored(lambda: Averaged(in_place), average, expected)

    def test_an_average_that_has_a_copy_in_host_memory(self):
        """As on a GPU: only frozen tensors that changed are copied."""
        tensors = [torch.randn(4, 3).t(), torch.randn(5, 2).half().t(), torch.zeros(2, 2, dtype=torch.bool).t()]
        mirrors = [Mirror(tensor) for tensor in tensors]
        rare = RareChanges(mirrors)
        before = [mirror.registered.clone() for mirror in mirrors]
        tensors[1].data[1, 1] += 1
        with mock.patch.object(Mirror, "save", autospec=True, side_effect=Mirror.save) as saved:
            rare.save()
            self.assertEqual([call.args[0] for call in saved.call_args_list], [mirrors[1]])
            rare.save()
            self.assertEqual(saved.call_count, 1)
        self.assertTrue(torch.equal(mirrors[1].registered, tensors[1]))
        self.assertFalse(torch.equal(mirrors[1].registered, before[1]))
        for mirror, was in zip(mirrors, before, strict=True):
            mirror.registered.copy_(was)
        rare.restore()
        rare.save()
        self.assertTrue(torch.equal(tensors[1], before[1]))

    def test_a_replacement_that_cannot_fit_is_refused(self):
        def double(net):
            net.double()

        def larger(net):
            net.mean = torch.zeros(7)

        def new_parameter(net):
            net.tail.weight = nn.Parameter(net.tail.weight * 2)

        def new_layer(net):
            net.head = nn.Linear(3, 3)

        def new_buffer(net):
            net.register_buffer("late", torch.zeros(1))

        def delete(net):
            del net.mean

        def no_more(net):
            net.seen = None

        def parametrize(net):
            nn.utils.parametrizations.weight_norm(net.tail)

        cases = {
            double: "the parameter layer.weight of the model had the shape .3, 6. and the type torch.float32 when the "
            "training was attached, and has .3, 6. and torch.float64 now: convert the model before pliant.attach",
            larger: "the buffer mean of the model had the shape .6,. .* and has .7,. and torch.float32 now",
            new_parameter: "the parameter tail.weight of the model was replaced after .*with torch.no_grad",
            new_layer: "head was added to the model after the training was attached: .* Make it before pliant.attach",
            new_buffer: "late was added to the model",
            delete: "the buffer mean of the model was removed after|mean was removed from the model",
            no_more: "the buffer seen of the model was removed after the training was attached",
            parametrize: "parametrizations of tail was added to|weight.*of tail was removed|the parameter tail.weight of",
        }
        for after, said in cases.items():
            with self.subTest(after.__name__), self.assertRaisesRegex(InvalidProgram, said):
                self.train(Net(in_place), after)
            if after in (new_layer, new_buffer, no_more):
                with self.subTest("in forward", after=after.__name__), self.assertRaisesRegex(InvalidProgram, said):
                    self.train(Net(lambda net, _, after=after: after(net)))

    def test_a_buffer_without_a_value(self):
        """The buffer is registered but gets its shape too late."""

        class Lazily(Net):
            def __init__(self, write):
                super().__init__(write)
                self.register_buffer("codes", None)

        def fill(net, inputs):
            net.codes = inputs.mean(0)

        with self.assertRaisesRegex(InvalidProgram, "codes was added to the model after the training"):
            self.train(Lazily(fill))

    def test_a_model_without_shapes(self):
        lazy = nn.Sequential(nn.LazyLinear(3))
        with self.assertRaisesRegex(InvalidProgram, "0.weight has no shape yet: call the model once"):
            pliant.attach(
                lazy, torch.optim.SGD(lazy.parameters(), lr=1), data(), epochs=1,
                checkpoint_dir=next(self.folders),
            )  # fmt: skip

    def test_parameters_do_not_change_in_mid_step(self):
        def clamp(net, step):
            with torch.no_grad():
                net.layer.weight.clamp_(-0.1, 0.1)

        def replace(net, step):
            net.tail.weight.data = net.tail.weight.data * 0.9

        for name, batch in (("layer.weight", clamp), ("tail.weight", replace)):
            with self.subTest(name), self.assertRaisesRegex(
                InvalidProgram, f"the parameter {name} of the model was changed in mid step, .* after step.commit"
            ):
                self.train(Net(in_place), batch=batch)

    def test_a_buffer_of_two_places(self):
        class Shared(Net):
            def __init__(self, write):
                super().__init__(write)
                self.other = nn.Module()
                self.other.register_buffer("mean", self.mean)

        self.train(Shared(in_place))
        with self.assertRaisesRegex(InvalidProgram, "the buffer mean of the model is in several places"):
            self.train(Shared(assigned))

    def test_averaged_parameters_while_it_is_evaluated(self):
        """They replace the parameters during an evaluation only."""
        net = Net(assigned)
        held = []

        def evaluate(batch):
            mine = [parameter.data for parameter in net.parameters()]
            for parameter in net.parameters():
                parameter.data = parameter.data * 0.5
            loss = nn.functional.cross_entropy(net(batch[0]), batch[1])
            for parameter, value in zip(net.parameters(), mine, strict=True):
                parameter.data = value
            held.append(float(loss))
            return loss

        elastic = pliant.attach(
            net, torch.optim.SGD(net.parameters(), lr=0.1), data(), epochs=1, batch_size=16, test_data=data(),
            evaluate=evaluate, checkpoint_dir=next(self.folders),
        )  # fmt: skip
        self.addCleanup(elastic.close)
        for step in elastic.steps():
            for inputs, targets in step:
                step.backward(nn.functional.cross_entropy(net(inputs), targets))
            step.commit()
        self.assertEqual(elastic.ending.reason, "Completed")
        self.assertTrue(held)


def load_file(path):
    from pliant._torch.final_model import read_safetensors

    return read_safetensors(path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
