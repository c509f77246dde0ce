"""State at fixed addresses, python values as bytes, and the contents of the package and its library, without a
learner."""

import ast
import collections
import contextlib
import copy
import ctypes
import inspect
import io
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import typing
import unittest
from unittest import mock

import numpy as np
import pliant
import torch
from pliant import process
from pliant._array_memory import ArrayMemory
from pliant._states import States
from pliant._plain_state import PlainMemory, decode, encode
from pliant._seeds import mix
from pliant._settings import KerasSettings, Settings, TorchSettings
from pliant._torch.mirror import Mirror
from pliant._torch.optimizer_state import OptimizerState
from pliant._torch.training_state import TrainingState
from pliant.errors import InvalidProgram
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(pliant.__file__).parent

OPTIMIZERS = {
    "Adadelta": {}, "Adagrad": {}, "Adam": {"weight_decay": 0.1}, "AdamW": {"amsgrad": True}, "Adamax": {},
    "ASGD": {}, "NAdam": {}, "RAdam": {}, "RMSprop": {"momentum": 0.9, "centered": True}, "Rprop": {},
    "SGD": {"momentum": 0.9, "dampening": 0.5},
}  # fmt: skip


def model():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def take_step(net, optimizer):
    optimizer.zero_grad()
    net(torch.arange(12.0).reshape(4, 3) / 12).square().sum().backward()
    optimizer.step()


def make(name, net):
    settings = {"lr": 0.01, **OPTIMIZERS[name]}
    return getattr(torch.optim, name)(net.parameters(), **settings)


class OptimizerStateTest(unittest.TestCase):
    def test_an_optimizer_does_what_it_does_without_us(self):
        for name in OPTIMIZERS:
            with self.subTest(name):
                plain, held = model(), model()
                plain_optimizer, held_optimizer = make(name, plain), make(name, held)
                names = {parameter: key for key, parameter in held.named_parameters()}
                state = OptimizerState(held_optimizer, names)
                for _ in range(4):
                    take_step(plain, plain_optimizer)
                    take_step(held, held_optimizer)
                    state.take_over()
                for a, b in zip(plain.parameters(), held.parameters(), strict=True):
                    self.assertTrue(torch.equal(a, b))

    def test_another_continues_from_its_memory(self):
        for name in OPTIMIZERS:
            with self.subTest(name):
                first, second = model(), model()
                optimizers = make(name, first), make(name, second)
                states = [
                    OptimizerState(optimizer, {p: key for key, p in net.named_parameters()})
                    for net, optimizer in zip((first, second), optimizers, strict=True)
                ]
                for _ in range(3):
                    take_step(first, optimizers[0])
                    states[0].take_over()
                # As from a peer: the memory, and the plain state.
                second.load_state_dict(first.state_dict())
                for (_, source), (_, target) in zip(
                    states[0].tensors(), states[1].tensors(), strict=True
                ):
                    target.registered.copy_(source.registered)
                states[1].restore(decode(encode(states[0].plain())))
                for net, optimizer, state in zip((first, second), optimizers, states, strict=True):
                    take_step(net, optimizer)
                    state.take_over()
                for a, b in zip(first.parameters(), second.parameters(), strict=True):
                    self.assertTrue(torch.equal(a, b))

    def test_an_unsupported_optimizer_is_refused(self):
        net = model()
        names = {parameter: key for key, parameter in net.named_parameters()}
        with self.assertRaisesRegex(InvalidProgram, "LBFGS cannot be used"):
            OptimizerState(torch.optim.LBFGS(net.parameters()), names)
        with self.assertRaisesRegex(InvalidProgram, "parameters that are not the model's"):
            OptimizerState(torch.optim.SGD(model().parameters(), lr=1), names)


class MirrorTest(unittest.TestCase):
    def test_memory_that_the_learner_reads_is_registered_itself(self):
        for device, cuda, contiguous, same in (
            ("cuda", True, True, True),
            ("cuda", True, False, False),
            ("xpu", False, True, False),
        ):
            with self.subTest(device=device, contiguous=contiguous):
                tensor = mock.Mock(shape=(2, 3), dtype=torch.float32, is_cuda=cuda)
                tensor.detach.return_value = tensor
                tensor.device.type = device
                tensor.is_contiguous.return_value = contiguous
                empty = torch.empty
                made = mock.Mock(side_effect=lambda shape, *, dtype, device: empty(shape))
                with (
                    mock.patch.object(torch, "empty", made),
                    mock.patch.object(Mirror, "save"),
                ):
                    mirror = Mirror(tensor)
                self.assertEqual(mirror.registered is tensor, same)
                self.assertEqual(mirror.has_copy, not same)
                if not same:
                    self.assertEqual(
                        made.call_args.kwargs["device"], tensor.device if cuda else "cpu"
                    )

    def test_a_tensor_that_is_not_contiguous_is_copied(self):
        strided = torch.zeros(2, 3).t()
        mirror = Mirror(strided)
        strided.add_(1)
        mirror.save()
        self.assertTrue(torch.equal(mirror.registered, torch.ones(3, 2)))
        mirror.registered.zero_()
        mirror.restore()
        self.assertFalse(strided.any())


class TrainingStateTest(unittest.TestCase):
    def test_wrong_models_are_refused(self):
        frozen = model().requires_grad_(False)
        with self.assertRaisesRegex(InvalidProgram, "nothing to train"):
            TrainingState(frozen, torch.optim.SGD(frozen.parameters(), lr=1))
        state = TrainingState(net := model(), make("SGD", net))
        for what, is_a in ((object(), "object"), (0.5, "float")):
            said = rf"register\('best', ...\): a {is_a} has no state_dict .* register a dict"
            with self.subTest(is_a), self.assertRaisesRegex(InvalidProgram, said):
                state.add("best", what)

    def test_models_on_several_devices_are_refused(self):
        """With fake devices: their tensors have a shape and a device, but no values."""
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode():
            elsewhere = nn.Module()
            elsewhere.weight = nn.Parameter(torch.empty(4, 3, device="cuda"))
            buffer = torch.empty(3, device="cuda")
        split = nn.Sequential(nn.Linear(2, 3), elsewhere)
        with self.assertRaisesRegex(
            InvalidProgram, "several devices .0.weight on cpu, 1.weight on cuda"
        ):
            TrainingState(split, torch.optim.SGD(split[0].parameters(), lr=1))
        strewn = nn.Linear(2, 3)
        strewn.register_buffer("scale", buffer)
        with self.assertRaisesRegex(InvalidProgram, "weight on cpu, scale on cuda"):
            TrainingState(strewn, torch.optim.SGD(strewn.parameters(), lr=1))
        empty = nn.Linear(2, 3, device="meta")
        with self.assertRaisesRegex(InvalidProgram, "weight is on the device meta"):
            TrainingState(empty, torch.optim.SGD(empty.parameters(), lr=1))


class KeptOutputTest(unittest.TestCase):
    """The output that a job keeps of a program that fails."""

    class Learner:
        def __init__(self):
            self.kept = ""
            self.failed = self.closed = False

        def job(self):
            return mock.Mock(alone=False)

        def keep_output(self, text):
            assert not self.closed
            self.kept += text

        def fail(self, message, *, wrong_input):
            self.failed = True

        def close(self):
            self.closed = True

    def setUp(self):
        self.log = io.StringIO()
        redirect = contextlib.redirect_stderr(self.log)
        redirect.__enter__()
        self.addCleanup(redirect.__exit__, None, None, None)
        self.guard = process.Guard()
        self.guard.watch(learner := self.Learner())
        self.addCleanup(self.guard.close)
        self.learner = learner

    def attach(self):
        try:
            raise InvalidProgram("the data are empty")
        except InvalidProgram as error:
            self.guard.fail(error)
            raise

    def test_a_final_error_is_kept_with_its_place(self):
        with self.assertRaises(InvalidProgram) as raised:
            self.attach()  # by the program
        self.assertTrue(self.learner.failed and self.learner.closed)
        self.assertIn("self.attach()  # by the program", self.learner.kept)
        self.assertEqual(self.learner.kept.count("InvalidProgram: the data are empty"), 1)
        self.assertEqual(self.log.getvalue(), "", "it is printed by who catches it, or Python")
        error = raised.exception
        with self.assertRaises(SystemExit) as ended:
            process._on_uncaught(type(error), error, error.__traceback__)
        self.assertEqual(ended.exception.code, 2)

    def test_an_uncaught_error_is_kept_once(self):
        try:
            raise ValueError("of the program's")
        except ValueError as error:
            with mock.patch.object(process, "_hook_before", sys.__excepthook__):
                process._on_uncaught(type(error), error, error.__traceback__)
        self.assertTrue(self.learner.failed and self.learner.closed)
        self.assertEqual(self.learner.kept.count("ValueError: of the program's"), 1)
        self.assertEqual(self.log.getvalue(), self.learner.kept)


class LanguageTest(unittest.TestCase):
    # Names that the standard library has only after Python 3.10.
    LATER = {
        "BaseExceptionGroup", "ExceptionGroup", "LiteralString", "Never", "NotRequired", "Required", "Self", "StrEnum",
        "TaskGroup", "TypeVarTuple", "UTC", "Unpack", "assert_never", "assert_type", "batched", "override",
        "reveal_type", "tomllib",
    }  # fmt: skip

    def test_the_package_is_of_python_3_10(self):
        files = sorted(PACKAGE.rglob("*.py"))
        self.assertGreater(len(files), 30)
        for file in files:
            with self.subTest(file.name):
                tree = ast.parse(file.read_text(), file.name, feature_version=(3, 10))
                names = set()
                for node in ast.walk(tree):
                    if isinstance(node, ast.ImportFrom) and node.level == 0:
                        names |= {node.module, *(each.name for each in node.names)}
                    elif isinstance(node, ast.Import):
                        names |= {each.name for each in node.names}
                    elif isinstance(node, ast.Attribute):
                        names.add(node.attr)
                self.assertFalse(names & self.LATER)

    def test_attach_shows_each_setting(self):
        """In its signature and its documentation, for which `help` and editors ask."""
        shown = inspect.signature(pliant.attach).parameters
        names = ["model", "optimizer", "train_data"]
        for kind, limit in ((Settings, ""), (TorchSettings, "PyTorch only: "), (KerasSettings, "Keras only: ")):
            for name, of_kind in inspect.signature(kind).parameters.items():
                annotation, _, meaning = typing.get_args(of_kind.annotation)
                with self.subTest(name):
                    self.assertEqual(shown[name], of_kind.replace(annotation=annotation))
                    if name not in names:
                        names.append(name)
                        self.assertIn(f"\n    {name}: {limit}{meaning}\n", re.sub(r"\n {8}", " ", f"{pliant.attach.__doc__}\n"))
        self.assertEqual(list(shown), names)
        for said in ("epochs: int | None = None", "batch_size: int | None = None", "overlap: bool = True",
                     "loss_reduction: Literal['mean', 'sum'] = 'mean'"):  # fmt: skip
            self.assertEqual(str(shown[said.partition(":")[0]]), said)

    def test_the_api_page_is_that_of_the_docstrings(self):
        made = subprocess.run(
            [sys.executable, "-B", str(PACKAGE.parent / "api_page.py")], capture_output=True, text=True, check=True
        ).stdout
        page = (ROOT / "docs" / "python-api.md").read_text()
        self.assertEqual(page, made, "python3 trainer/python/api_page.py > docs/python-api.md")


class LibraryTest(unittest.TestCase):
    """The library shares a process with frameworks, which bring other versions of its dependencies."""

    def said_by(self, *command):
        library = os.environ["PLIANT_LIBRARY"]
        return subprocess.run(
            [*command, library], capture_output=True, text=True, check=True, timeout=60
        ).stdout

    def test_it_exports_the_functions_of_its_header_and_nothing_else(self):
        header = (ROOT / "trainer" / "binding" / "pliant.h").read_text()
        declared = set(re.findall(r"^PLIANT_API .*?\b(pliant_\w+)\(", header, re.MULTILINE))
        self.assertIn("pliant_open", declared)
        lines = self.said_by("nm", "--dynamic", "--defined-only", "--format=posix").splitlines()
        self.assertEqual({line.split()[0] for line in lines}, declared)

    def test_it_links_no_framework(self):
        needed = self.said_by("ldd")
        self.assertIn("libstdc++", needed)
        self.assertNotRegex(needed, "libtorch|libc10|libtensorflow|libpython|libopenblas")


class PlainStateTest(unittest.TestCase):
    def test_values_come_back(self):
        value = {
            "none": None, "flag": True, "large": 2**70, "third": 1 / 3, "inf": float("-inf"), "tuple": (1, (2,)),
            "list": [[], {}], 7: "a number as key", "milestones": collections.Counter({30: 1, 80: 2}),
            "recent": collections.deque([1.5], 10),
        }  # fmt: skip
        back = decode(encode(value))
        self.assertEqual(back, value)
        self.assertIsInstance(back["milestones"], collections.Counter)
        self.assertEqual(back["recent"].maxlen, 10)
        tensor = torch.tensor([[0.1, 3.0]], dtype=torch.float64)
        self.assertTrue(torch.equal(decode(encode({"t": tensor}))["t"], tensor))

    def test_schedules_come_back(self):
        def schedules(optimizer):
            s = torch.optim.lr_scheduler
            return [
                s.MultiStepLR(copy.deepcopy(optimizer), [2, 4]), s.OneCycleLR(copy.deepcopy(optimizer), 0.1, 20),
                s.CosineAnnealingWarmRestarts(copy.deepcopy(optimizer), 3), s.LambdaLR(copy.deepcopy(optimizer), lambda n: 1 / n if n else 1),
            ]  # fmt: skip

        optimizer = torch.optim.SGD(model().parameters(), lr=1.0)
        for ours, theirs in zip(schedules(optimizer), schedules(optimizer), strict=True):
            for _ in range(3):
                ours.optimizer.step()
                ours.step()
            states, joined = States(), States()
            states.add("schedule", ours)
            joined.add("schedule", theirs)
            joined.restore(decode(encode(states.plain())))
            self.assertEqual(theirs.last_epoch, 3)
            self.assertEqual(theirs.state_dict()["_last_lr"], ours.state_dict()["_last_lr"])

    def test_functions_are_each_process_own(self):
        """PyTorch's OneCycleLR before 2.2 has a function in its state."""

        class Meter:
            def __init__(self, unit):
                self.count, self.unit = 0, unit

            def state_dict(self):
                return dict(vars(self))

            def load_state_dict(self, state):
                self.count, self.unit = state["count"], state["unit"]

        ours, theirs = Meter(math.floor), Meter(math.ceil)
        ours.count = 3
        states, joined = States(), States()
        states.add("meter", ours)
        joined.add("meter", theirs)
        joined.restore(decode(encode(states.plain())))
        self.assertEqual((theirs.count, theirs.unit), (3, math.ceil))

    def test_a_state_grown_too_large_is_named(self):
        class Learner:
            def register(self, name, **_):
                pass

        losses = []
        state = {
            "optimizer": {"param_groups": [{"lr": 0.1}]},
            "registered": {"meter": {"n": 1, "losses": losses}},
        }
        memory = PlainMemory()
        memory.register(Learner(), lambda: state)
        losses += [1 / 3] * 500
        memory.write(state)
        self.assertEqual(memory.read(), state)
        losses += [1 / 3] * 500
        which = rf"\(registered\.meter\.losses: {len(encode(losses))}\)"
        takes = rf"takes {len(encode(state))} bytes {which}, but its memory, .* has room for {(1 << 14) - 8}:"
        with self.assertRaisesRegex(InvalidProgram, takes):
            memory.write(state)

    def test_tensors_and_arrays_have_memory_of_their_own(self):
        """Memory that an object returns each time is not copied; arrays that it creates at each call are."""

        class Learner:
            def __init__(self):
                self.registered = {}

            def register(self, name, *, role, dtype, shape, address):
                self.registered[name] = (dtype, shape, address)

        class Meter:
            def __init__(self, fill):
                self.live = torch.full((300, 100), float(fill))
                self.strided = torch.full((20, 30), float(fill)).t()
                self.array = np.full((50, 4), fill, np.int64)
                self.odd = np.full(7, fill, np.uint16)
                self.half = torch.full((9,), fill, dtype=torch.complex64)
                self.count = fill

            def values(self):
                return {
                    "live": self.live, "again": self.live + 1, "strided": self.strided, "count": self.count,
                    "nested": [{"array": self.array}, (self.odd, self.half)], "none": np.zeros((0, 3)),
                    "scalar": torch.tensor(float(self.count)),
                }  # fmt: skip

        first, second = Meter(1), Meter(2)
        learners, memories = (Learner(), Learner()), (PlainMemory(), PlainMemory())
        for meter, learner, memory in zip((first, second), learners, memories, strict=True):
            memory.register(learner, meter.values)
        told = learners[0].registered
        self.assertEqual(told["python.live"][:2], ("float32", (300, 100)))
        self.assertEqual(told["python.live"][2], first.live.data_ptr(), "no copy")
        self.assertEqual(told["python.nested[0].array"], ("int64", (50, 4), first.array.ctypes.data))
        self.assertEqual(told["python.nested[1][0]"][:2], ("uint8", (14,)), "as bytes")
        self.assertNotEqual(told["python.strided"][2], first.strided.data_ptr())
        self.assertLess(told["python.json"][1][0], 1 << 15)

        first.live.mul_(3)
        first.array += 5
        first.odd = first.odd + np.uint16(6)
        first.half.add_(1j)
        first.strided = first.strided + 7
        first.count = 11
        memories[0].write(first.values())
        # Transferred as by a peer or a checkpoint: each memory by its name.
        self.assertEqual(list(told), list(learners[1].registered))
        for name, (_, _, address) in told.items():
            to = learners[1].registered[name][2]
            ctypes.memmove(to, address, {"python.json": told["python.json"][1][0]}.get(name) or self.bytes_of(told[name]))
        loaded = memories[1].read()
        expected = first.values()
        for name in ("live", "again", "strided", "scalar"):
            self.assertTrue(torch.equal(loaded[name], expected[name]), name)
        self.assertEqual(loaded["count"], 11)
        np.testing.assert_array_equal(loaded["nested"][0]["array"], expected["nested"][0]["array"])
        odd, half = loaded["nested"][1]
        np.testing.assert_array_equal(odd, expected["nested"][1][0])
        self.assertEqual(odd.dtype, np.uint16)
        self.assertTrue(torch.equal(half, first.half))
        loaded["live"].zero_()
        self.assertTrue(torch.equal(memories[1].read()["live"], expected["live"]), "a copy is given away")

    def bytes_of(self, told):
        dtype, shape, _ = told
        return math.prod(shape) * {"float32": 4, "float64": 8, "int64": 8, "uint8": 1}[dtype]

    def test_a_tensor_that_comes_later_goes_with_the_rest_if_it_fits(self):
        class Learner:
            def register(self, name, **_):
                pass

        state = {"meter": {"recent": torch.arange(3.0)}}
        memory = PlainMemory()
        memory.register(Learner(), lambda: state)
        state["meter"]["recent"] = torch.arange(5.0, dtype=torch.bfloat16)  # another type and shape
        state["meter"]["late"] = np.arange(4)
        memory.write(state)
        loaded = memory.read()["meter"]
        self.assertTrue(torch.equal(loaded["recent"], state["meter"]["recent"]))
        np.testing.assert_array_equal(loaded["late"], np.arange(4))
        state["meter"]["late"] = np.zeros(10_000)
        with self.assertRaisesRegex(
            InvalidProgram, r"\(meter.late: \d+\).* meter.recent is a tensor or an array that was not there, or had"
        ):
            memory.write(state)

    def test_a_tensor_that_is_not_there_is_damage(self):
        """A damaged checkpoint or a peer may name one."""
        arrays = ArrayMemory()
        arrays.add("x", torch.zeros(2), shared=False)
        for at in (1, -1):
            said = json.dumps({"__pliant__": "kept", "at": at}).encode()
            with self.assertRaisesRegex(InvalidProgram, "is damaged: no such tensor"):
                decode(said, arrays.read)
        with self.assertRaisesRegex(InvalidProgram, "is damaged: no tensors are kept"):
            decode(json.dumps({"__pliant__": "kept", "at": 0}).encode())

    def test_a_value_without_plain_memory_is_refused(self):
        for value, said in (
            (torch.eye(3).to_sparse(), "x is a tensor of the layout torch.sparse_coo"),
            (np.array([object()]), "x is an array of Python objects"),
        ):
            with self.assertRaisesRegex(InvalidProgram, said):
                encode({"x": value})

    def test_code_is_refused(self):
        with self.assertRaisesRegex(InvalidProgram, "hook is a function"):
            encode({"hook": lambda: None})


class MixTest(unittest.TestCase):
    def test_known_values(self):
        """They must not change between versions: the order of the data and random numbers of samples depend on them."""
        self.assertEqual(mix(0), 0xE220A8397B1DCDAF)  # SplitMix64's first output with seed 0
        self.assertEqual(mix(1, 2, 3), 0x6AE515C1C0AC7E37)
        self.assertEqual(mix(-1), mix((1 << 64) - 1))
        self.assertEqual(len({mix(a, b) for a in range(40) for b in range(40)}), 1600)


if __name__ == "__main__":
    unittest.main(verbosity=2)
