"""What the torch binding hands to a learner whose gradients are on a GPU. Tensors of the CPU stand for those of the GPU
here; ./dev test gpu trains on a real one."""

import unittest
from unittest import mock

import torch
from torch import nn

from pliant import _native
from pliant._learner import Commit, Shard, Totals
from pliant._loop import Elastic
from pliant._shard_report import ShardReport
from pliant._torch import elastic as torch_elastic
from pliant._torch import gradients
from pliant.errors import InvalidProgram


class RecordingLearner:
    def __init__(self):
        self.put = []  # of each call: the type, and the values by parameter
        self.sums = None

    def put_gradients(self, addresses, scale, *, device, dtype):
        assert device == _native.CUDA
        self.put.append((dtype, scale, [index for index, address in enumerate(addresses) if address]))

    def report_sums(self, weight, sums):
        self.reported = weight, sums

    def shard_done_on_gpu(self, *, samples, sums):
        count = 2 + len(self.reported[1])
        self.sums = samples, list((_native.ctypes.c_double * count).from_address(sums))


def shard(*, early):
    return Shard(epoch=0, step=0, index=0, samples=(0, 1), seed=0, training=True, travels_early=early, on_gpu=True)


class GpuGradientsTest(unittest.TestCase):
    def setUp(self):
        self.learner = RecordingLearner()
        self.model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2, dtype=torch.float32))
        self.parameters = list(self.model.parameters())
        self.stream = mock.Mock()
        host = {
            "_device": lambda gradient: _native.CUDA,
            "_floats_at": lambda address, elements, gpu: torch.frombuffer(
                _native.floats_at(address, elements), dtype=torch.float32),
        }
        for name, replacement in host.items():
            self.enterContext(mock.patch.object(gradients, name, replacement))
        self.enterContext(mock.patch.object(torch.cuda, "current_stream", lambda device: self.stream))

    def loss(self):
        return self.model(torch.ones(2, 4)).sum()

    def train(self, early):
        self.gradients.begin(shard(early=early), 2.0)
        self.gradients.backward(self.loss())
        return self.gradients.hand_in()

    def make(self, **options):
        self.gradients = gradients.Gradients(self.learner, self.parameters, **options)

    def test_all_in_one_call_where_they_wait_for_another_shard(self):
        self.make(overlap=True)
        self.assertTrue(self.train(early=False))
        self.assertEqual(self.learner.put, [("float32", 2.0, [0, 1, 2, 3])])
        self.assertTrue(all(parameter.grad is None for parameter in self.parameters))

    def test_as_they_come_where_they_travel_early(self):
        self.make(overlap=True)
        self.train(early=False)  # finds out that each batch has one backward pass
        self.learner.put.clear()
        with mock.patch.object(gradients, "_BYTES_OF_A_CALL", 4 * (6 + 2)):
            self.assertTrue(self.train(early=True))
        together = [indices for _, _, indices in self.learner.put]
        self.assertEqual(sorted(sum(together, [])), [0, 1, 2, 3])
        self.assertEqual(together[0], [2, 3], "the last layer's are first")
        self.assertEqual(len(together), 2)

    def test_after_the_pass_where_it_runs_on_another_stream(self):
        self.make(overlap=True)
        self.train(early=False)
        self.learner.put.clear()
        self.gradients.begin(shard(early=True), 2.0)
        loss = self.loss()
        named, self.stream = self.stream, mock.Mock()
        self.gradients.backward(loss)
        self.stream = named
        self.assertEqual(self.learner.put, [])
        self.assertTrue(self.gradients.hand_in())
        self.assertEqual(self.learner.put, [("float32", 2.0, [0, 1, 2, 3])])

    def test_a_second_pass_is_refused(self):
        self.make(overlap=True)
        self.train(early=False)
        self.gradients.begin(shard(early=True), 2.0)
        self.gradients.backward(self.loss())
        with self.assertRaisesRegex(InvalidProgram, "a second backward pass"):
            self.gradients.backward(self.loss())

    def test_types_that_a_gpu_adds_are_kept(self):
        half = torch.ones(3, dtype=torch.bfloat16)
        double = torch.ones(3, dtype=torch.float64)
        on_gpu = mock.patch.object(torch.Tensor, "is_cuda", True)
        with on_gpu:
            self.assertEqual(gradients._dense(half, keep_type=True).dtype, torch.bfloat16)
            self.assertEqual(gradients._dense(half).dtype, torch.float32)
            self.assertEqual(gradients._dense(double, keep_type=True).dtype, torch.float32)
        self.assertEqual(gradients._dense(half, keep_type=True).dtype, torch.float32, "the CPU has float32 only")

    def test_each_type_has_its_call(self):
        self.make(overlap=False)
        self.gradients.begin(shard(early=False), 1.0)
        tensors = {0: torch.ones(12), 2: torch.ones(6, dtype=torch.bfloat16), 3: torch.ones(2)}
        with mock.patch.object(torch.Tensor, "is_cuda", True):
            self.gradients._put(tensors)
        self.assertEqual(self.learner.put, [("float32", 1.0, [0, 3]), ("bfloat16", 1.0, [2])])

    def test_the_mean_gradient_stays_where_it_is(self):
        self.make(overlap=True)
        elements = sum(parameter.numel() for parameter in self.parameters)
        reduced = torch.arange(elements, dtype=torch.float32)
        commit = Commit(epoch=0, step=0, gradient=reduced.data_ptr(), gradient_elements=elements,
                        totals=Totals(samples=2, weight=2, loss=1, correct=0), on_gpu=True)
        self.gradients.set_reduced(commit)
        self.assertEqual(self.parameters[0].grad.data_ptr(), reduced.data_ptr())
        self.assertEqual(self.parameters[3].grad.tolist(), reduced[-2:].tolist())
        self.assertTrue(self.gradients.finite())
        reduced[4] = float("inf")
        self.assertFalse(self.gradients.finite())

    def test_the_mean_over_weights_is_made_in_memory_of_its_own(self):
        self.make(overlap=True)
        elements = sum(parameter.numel() for parameter in self.parameters)
        reduced = torch.arange(elements, dtype=torch.float32)
        commit = Commit(epoch=0, step=0, gradient=reduced.data_ptr(), gradient_elements=elements, mean_factor=0.5,
                        totals=Totals(samples=2, weight=4, loss=1, correct=0), on_gpu=True)
        for _ in range(2):
            self.gradients.set_reduced(commit)
            self.assertEqual(self.parameters[3].grad.tolist(), (reduced[-2:] / 2).tolist())
        self.assertEqual(reduced.tolist(), list(range(elements)), "the learner's memory is only read")

    def test_a_shard_of_weight_zero_hands_in_nothing(self):
        for early in (True, False):
            self.make(overlap=True)
            self.gradients.begin(shard(early=early), 2.0)
            self.gradients.scale(0.0, loss_is_mean=True)
            self.loss().backward()  # the program's own
            self.assertTrue(self.gradients.hand_in(), "it has a gradient: zero")
            self.assertEqual(self.learner.put, [])
            self.assertTrue(all(parameter.grad is None for parameter in self.parameters))


class GpuSumsTest(unittest.TestCase):
    """The loss of a GPU is not read."""

    def answer(self, loss, correct, weight=None, **sums):
        answering = mock.Mock(spec=torch_elastic.TorchElastic)
        answering._learner = RecordingLearner()
        report = ShardReport(correct=correct, weight=weight, sums=sums)
        torch_elastic.TorchElastic._shard_done(answering, 2, loss, report)
        self.reported = answering._learner.reported
        return answering._learner.sums

    def test_tensors_and_numbers(self):
        on_gpu = torch.tensor(1.5, dtype=torch.float64)
        self.assertEqual(self.answer(on_gpu, 3.0), (2, [1.5, 3.0]))
        self.assertEqual(self.answer(0.5, on_gpu), (2, [0.5, 1.5]))

    def test_named_sums_follow_in_the_order_of_their_names(self):
        on_gpu = torch.tensor(1.5, dtype=torch.float64)
        self.assertEqual(self.answer(0.5, 1.0, 7.0, b=on_gpu, a=2.0), (2, [0.5, 1.0, 2.0, 1.5]))
        self.assertEqual(self.reported, (7.0, ["a", "b"]))

    def test_a_tensor_of_a_gpu_stays_there(self):
        number = torch_elastic.TorchElastic._number
        loss = torch.tensor([0.1], requires_grad=True)
        self.assertIsInstance(number(mock.Mock(spec=Elastic), "the loss", loss), float)
        with mock.patch.object(torch.Tensor, "is_cuda", True):
            kept = number(mock.Mock(spec=Elastic), "the loss", loss)
        self.assertEqual((kept.dtype, kept.shape, kept.requires_grad), (torch.float64, (), False))
        with self.assertRaisesRegex(InvalidProgram, "the loss is a Tensor: it must be one number"):
            number(mock.Mock(spec=Elastic), "the loss", torch.ones(2))


if __name__ == "__main__":
    unittest.main(verbosity=2)
