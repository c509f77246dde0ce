"""Errors in programs, their messages, and how the process ends: at a prompt, in a script, alone."""

import contextlib
import inspect
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import numpy as np
import torch
from pliant import _foreign
from pliant.errors import InvalidProgram, PliantError
from torch import nn
from torch.utils.data import TensorDataset

import pliant

from small_data import data


class Misuse(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-misuse-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.folders = (self.scratch / str(i) for i in range(1000))
        self.told = io.StringIO()
        redirect = contextlib.redirect_stderr(self.told)
        redirect.__enter__()
        self.addCleanup(redirect.__exit__, None, None, None)

    def make(self, **settings):
        self.net = settings.pop("model", None) or nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 3))
        self.optimizer = settings.pop("optimizer", None) or torch.optim.SGD(self.net.parameters(), lr=0.1)
        given = {"epochs": 1, "batch_size": 16, "checkpoint_dir": next(self.folders), **settings}
        train = given.pop("train_data", None)
        self.elastic = pliant.attach(self.net, self.optimizer, data() if train is None else train, **given)
        self.addCleanup(self.elastic.close)
        return self.elastic

    def loss(self, batch):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def train(self):
        for step in self.elastic.steps():
            for batch in step:
                step.backward(self.loss(batch))
            step.commit()


class SettingsTest(Misuse):
    def test_wrong_ones_are_named_with_what_is_accepted(self):
        whole = "it must be a whole number from"
        methods = dict.fromkeys(("scale", "unscale_", "update", "get_scale", "state_dict", "load_state_dict"), print)
        odd_scaler = type("Odd", (), methods | {"step": 3})()
        cases = [
            ({"epochs": 1.5}, f"epochs is 1.5: {whole} 1 to"),
            ({"epochs": True}, "epochs is True: it must be a whole"),
            ({"epochs": 0}, f"epochs is 0: {whole} 1 to"),
            ({"epochs": None}, "epochs and max_steps are both None: give one of them, such as epochs=10"),
            ({"max_steps": 0}, f"max_steps is 0: {whole} 1 to"),
            ({"max_steps": 2.5}, f"max_steps is 2.5: {whole} 1 to"),
            ({"evaluate_every": 0}, f"evaluate_every is 0: {whole} 1 to"),
            ({"evaluate_every": 5}, "evaluate_every is 5, but test_data is None: give test data, or leave it out"),
            ({"batch_size": 16.0}, f"batch_size is 16.0: {whole} 1 to 4294967296"),
            ({"batch_size": "16"}, f"batch_size is '16': {whole} 1 to 4294967296"),
            ({"batch_size": -1}, f"batch_size is -1: {whole} 1 to 4294967296"),
            ({"batch_size": 0}, f"batch_size is 0: {whole} 1 to 4294967296"),
            ({"batch_size": 1 << 33}, "batch_size is 8589934592: "),
            ({"logical_shards": 0}, f"logical_shards is 0: {whole} 1 to 65536"),
            ({"logical_shards": 12}, "logical_shards is 12: it must be a power of two, such as 8 or 16"),
            ({"seed": -1}, f"seed is -1: {whole} 0 to 18446744073709551615"),
            ({"seed": 1 << 64}, "seed is 18446744073709551616"),
            ({"num_workers": -2}, f"num_workers is -2: {whole} 0 to 1024"),
            ({"threads": 0}, f"threads is 0: {whole} 1 to 1024"),
            ({"drop_last": 1}, "drop_last is 1: it must be True or False"),
            ({"overlap": "no"}, "overlap is 'no': it must be True or False"),
            ({"on_nonfinite": "ignore"}, "on_nonfinite is 'ignore': it must be 'stop' or 'skip' or 'warn'"),
            ({"loss_reduction": "avg"}, "loss_reduction is 'avg': it must be 'mean' or 'sum'"),
            ({"checkpoint_dir": 7}, "checkpoint_dir is 7: it must be a path"),
            ({"checkpoint_dir": "/proc/nope"}, "checkpoints cannot be written to /proc/nope/local"),
            ({"name": ""}, "name is '': it must be a text that is not empty"),
            ({"collate_fn": "stack"}, "collate_fn is 'stack': it must be a function"),
            ({"test_data": data(), "evaluate": 3}, "evaluate is 3: it must be a function"),
            ({"loss": "mse"}, r"loss is for Keras models, and this is not one: .* calls step.backward\(loss\)"),
            ({"scaler": object()}, "the scaler is a object: it must be a torch.amp.GradScaler"),
            ({"scaler": odd_scaler}, "the scaler is a Odd: it must be a torch.amp.GradScaler"),
            ({"model": object(), "optimizer": 1}, "the model is a object: it must be a torch.nn.Module or"),
            ({"optimizer": object()}, "the optimizer is a object: it must be a torch.optim.Optimizer"),
            ({"train_data": data().tensors}, "the training data are 2 tensors or arrays, .*TensorDataset"),
        ]  # fmt: skip
        for settings, said in cases:
            with self.subTest(said), self.assertRaisesRegex(InvalidProgram, said):
                self.make(**settings)
        with mock.patch.dict(os.environ, {"OMP_NUM_THREADS": "many"}):
            with self.assertRaisesRegex(InvalidProgram, "OMP_NUM_THREADS is 'many': it must be"):
                self.make()

    def test_names_of_arguments_are_those_of_pliant(self):
        """A name that others use is answered by what to write here. The job does not try such a program again."""
        cases = [
            ({"batchsize": 2}, "has no argument 'batchsize': did you mean 'batch_size'"),
            ({"x\x1b": 2}, r"has no argument 'x\\x1b'$"),
            *(({name: 1}, f"has no argument '{name}': {re.escape(remedy)}$") for name, remedy in _foreign.REMEDIES.items()),
        ]  # fmt: skip
        for given, said in cases:
            with self.subTest(said), self.assertRaisesRegex(InvalidProgram, said) as refused:
                self.make(**given)
            self.assertEqual(refused.exception.exit_code, 2)
        known = set(inspect.signature(pliant.attach).parameters)
        self.assertFalse(known & set(_foreign.REMEDIES), "a remedy for a name that exists would never be read")
        net = nn.Linear(6, 3)
        with self.assertRaisesRegex(InvalidProgram, "epochs and max_steps are both None: give one"):
            pliant.attach(net, torch.optim.SGD(net.parameters(), lr=0.1), data())

    def test_data_that_are_no_data_set_are_refused(self):
        class Named(dict):
            """As load_dataset of Hugging Face returns."""

        inputs, labels = data().tensors
        cases = [
            ("data/train.csv", "the training data are a path .'data/train.csv'.: open it as a data set"),
            (pathlib.Path("data"), "the training data are a path"),
            ({"inputs": inputs, "labels": labels}, r"a dict with 'inputs', 'labels': give torch.utils.data.TensorDataset"),
            (Named(train=[1], test=[2]), "a dict with 'train', 'test': give one of its data sets"),
            ([], "the training data are empty"),
            (iter([1]), "have no __len__"),
        ]
        for given, said in cases:
            with self.subTest(said), self.assertRaisesRegex(InvalidProgram, said):
                self.make(train_data=given)

    def test_a_default_of_the_other_framework_may_be_given(self):
        self.make(loss=None)
        self.train()

    def test_numbers_of_numpy_are_numbers(self):
        self.make(epochs=np.int64(2), batch_size=np.int32(8), seed=np.uint64(1 << 63), logical_shards=np.int64(4))
        self.assertEqual((self.elastic.epochs, self.elastic.plan.global_batch_size), (2, 8))
        self.assertEqual((self.elastic.plan.seed, self.elastic.plan.logical_shards), (1 << 63, 4))
        with mock.patch.dict(os.environ, {"OMP_NUM_THREADS": "1,2"}):
            self.make()

    def test_several_optimizers(self):
        net = nn.ModuleDict({"a": nn.Linear(6, 3), "b": nn.Linear(3, 3)})
        both = [torch.optim.SGD(part.parameters(), lr=0.1) for part in net.values()]
        for given in (both, tuple(both)):
            with self.assertRaisesRegex(InvalidProgram, "2 optimizers were given without names: give a dict"):
                self.make(model=net, optimizer=given)
        self.make(model=net, optimizer=both[0])
        with self.assertRaisesRegex(InvalidProgram, "b is an optimizer, which is registered otherwise: give pliant.attach a dict"):
            self.elastic.register("b", both[1])

    def test_a_program_that_settled_nothing_has_one_shard(self):
        self.make(batch_size=32)
        self.assertEqual(repr(self.elastic), "<elastic training alone: step 0 of 2, 32 samples in 1 shards each>")
        self.train()
        self.assertEqual(self.elastic.plan.logical_shards, 1)
        self.assertNotIn("logical shards", self.told.getvalue())
        with mock.patch.dict(os.environ, {"PLIANT_LOGICAL_SHARDS": "8"}):
            self.make(batch_size=32)
        self.train()
        self.assertIn(
            "pliant: a batch of 32 samples is computed as 8 logical shards of 4: BatchNorm, mixup and losses over pairs "
            "of samples see 4 at a time",
            self.told.getvalue(),
        )


class LoopTest(Misuse):
    def check(self, said, do_batch=lambda step, batch: None, do_step=lambda step: None, commit=True):
        self.make()
        with self.assertRaisesRegex(InvalidProgram, said) as refused:
            for step in self.elastic.steps():
                for batch in step:
                    step.backward(self.loss(batch))
                    do_batch(step, batch)
                if commit:
                    step.commit()
                do_step(step)
        self.assertEqual(refused.exception.exit_code, 2)
        self.make()  # the failed training left nothing behind
        self.train()

    def test_a_loop_that_steps_the_optimizer_itself(self):
        said = r"the loop calls optimizer.step\(\): .* Take optimizer.step\(\) .* out of the loop"
        self.check(said, do_batch=lambda step, batch: self.optimizer.step())
        self.check(said, do_step=lambda step: self.optimizer.step())
        self.check(said, do_step=lambda step: self.optimizer.step(), commit=False)
        self.optimizer.step()  # allowed: the training is over

    def test_a_second_optimizer(self):
        def over(parameters):
            return lambda step: torch.optim.SGD(parameters(), lr=0.1).step()

        self.check(r"an optimizer that pliant.attach was not given \(SGD\) steps parameters", do_step=over(lambda: self.net.parameters()))
        elsewhere = nn.Linear(2, 2)
        self.make()
        step_elsewhere = over(elsewhere.parameters)
        for step in self.elastic.steps():
            for batch in step:
                step.backward(self.loss(batch))
            step.commit()
            step_elsewhere(step)
        self.assertEqual(self.told.getvalue().count("an optimizer that pliant.attach was not given (SGD)"), 1)

    def test_an_optimizer_within_the_optimizer(self):
        class Outer(torch.optim.Optimizer):
            def __init__(self, parameters):
                self.inner = torch.optim.SGD(parameters, lr=0.1)
                super().__init__(self.inner.param_groups, {})

            def step(self):
                self.inner.step()

        net = nn.Linear(6, 3)
        self.make(model=net, optimizer=Outer(net.parameters()))
        self.train()
        self.assertNotIn("an optimizer that", self.told.getvalue())

    def test_a_wrong_order(self):
        self.check("the step is committed already: call step.commit.. once", do_step=lambda step: step.commit())
        self.check("the step was not committed: call step.commit.. at its end, in place of optimizer.step", commit=False)
        self.check("the step is not complete: .* after the loop over the step", do_batch=lambda step, batch: step.commit())
        self.check("there is no current batch", do_step=lambda step: step.backward(self.loss(data()[:4])), commit=False)
        self.check("comes too late: register state before", do_step=lambda step: self.elastic.register("s", nn.Linear(1, 1)))
        self.check("add_callback.* comes too late", do_step=lambda step: self.elastic.add_callback(pliant.ProgressBar()))
        self.check("are iterated once", do_step=lambda step: next(self.elastic.steps()))
        self.check("learners is 0: it must be", do_step=lambda step: pliant.request_learners(0))
        self.check("learners is 1.5: it must be", do_step=lambda step: pliant.request_learners(1.5))
        self.check("right samples .correct. is a list", do_batch=lambda step, batch: step.report(1.0, correct=[1]))
        self.check("the loss is a str: it must be one number", do_batch=lambda step, batch: step.report("low"))

    def test_evaluate_must_return_a_loss(self):
        for returned, said in (
            (None, "evaluate returned None: it must return the loss of the batch, "),
            ((1.0, 2, 3, 4), "evaluate returned 4 values: it must return the loss"),
            ("low", "the loss that evaluate returned is a str: it must be one number"),
            (torch.ones(3), "the loss that evaluate returned is a Tensor: it must be one number"),
            ((1.0, "all"), "the number of right samples .correct. that evaluate returned is a str"),
        ):
            self.make(test_data=data(), evaluate=lambda batch, returned=returned: returned)
            with self.subTest(said), self.assertRaisesRegex(InvalidProgram, said):
                self.train()

    def test_two_trainings_at_once(self):
        first, net = self.make(), self.net
        step = next(first.steps())
        self.make()

        def go_on():
            for inputs, targets in step:
                step.backward(nn.functional.cross_entropy(net(inputs), targets))

        for use in (go_on, lambda: first.request_learners(2)):
            with self.assertRaisesRegex(InvalidProgram, "this training is closed: pliant.attach was called again"):
                use()
        self.train()
        self.assertEqual(self.elastic.ending.reason, "Completed")

    def test_another_thread_that_calls_while_it_is_closed(self):
        for _ in range(10):
            elastic = self.make()
            begun, refused = threading.Event(), []

            def ask(elastic=elastic, begun=begun, refused=refused):
                with self.assertRaisesRegex(InvalidProgram, "this training is closed"):
                    while True:
                        elastic.request_learners(2)
                        begun.set()
                refused.append(True)

            other = threading.Thread(target=ask)
            other.start()
            begun.wait()
            elastic.close()
            other.join()
            self.assertTrue(refused)

    def test_a_loop_that_is_left(self):
        self.make()
        for step in self.elastic.steps():
            for batch in step:
                step.backward(self.loss(batch))
            step.commit()
            if step.number == 1:
                break
        self.assertIn(
            "pliant: the loop over the steps was left after step 1 of 4: the training is not complete, and there is no "
            "final model. elastic.stop()",
            self.told.getvalue(),
        )
        self.make()
        self.train()
        self.assertEqual(self.told.getvalue().count("was left"), 1)


    def test_a_loss_that_is_no_number_has_its_shard_named(self):
        self.make(logical_shards=4, on_nonfinite="skip")
        bad = None
        for step in self.elastic.steps():
            for batch in step:
                wrong = step.number in (1, 2) and step.shard.index == 2
                if wrong and bad is None:
                    bad = step.shard.samples
                step.backward(self.loss(batch) * (float("nan") if wrong else 1.0))
            step.commit()
        samples = ", ".join(map(str, bad))
        self.assertIn(f"pliant: the loss of shard 2 of step 1 is nan: its samples are {samples}\n", self.told.getvalue())
        self.assertEqual(self.told.getvalue().count("the loss of shard"), 1, "said once")

    def test_a_program_that_handles_sigterm_reads_who_does(self):
        self.addCleanup(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))
        late = "handles SIGTERM since the training began"
        for when, said, unsaid in (("before", "SIGTERM is replaced", late), ("during", late, "SIGTERM is replaced")):
            self.told.truncate(0)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self.make()
            if when == "before":
                signal.signal(signal.SIGTERM, lambda number, frame: None)
            for step in self.elastic.steps():
                for batch in step:
                    step.backward(self.loss(batch))
                step.commit()
                if when == "during":
                    signal.signal(signal.SIGTERM, lambda number, frame: None)
                    when = "once"
            with self.subTest(said):
                self.assertEqual(self.told.getvalue().count(said), 1)
                self.assertNotIn(unsaid, self.told.getvalue())


class AgainTest(Misuse):
    def test_a_second_run_says_where_it_continues(self):
        folder = next(self.folders)
        with mock.patch.dict(os.environ, {"PLIANT_CHECKPOINT_EVERY_STEPS": "1"}):
            self.make(checkpoint_dir=folder, epochs=2)
            for step in self.elastic.steps():
                for batch in step:
                    step.backward(self.loss(batch))
                step.commit()
                if step.number == 4:
                    self.elastic.close()
                    break
        self.assertNotIn("resumes", self.told.getvalue())
        self.make(checkpoint_dir=folder, epochs=2)
        self.train()
        self.assertRegex(self.told.getvalue(), rf"pliant: resumes from step \d of 8 in {folder}/local; to start again")
        self.assertNotIn("already complete", self.told.getvalue())
        self.make(checkpoint_dir=folder, epochs=2)
        self.train()
        self.assertIn(f"pliant: already complete: {folder}/local has the final state, after step 8", self.told.getvalue())


SCRIPT = """
import sys, time
import torch, pliant
torch.manual_seed(1)
net = torch.nn.Linear(4, 2)
data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
def train(**settings):
    given = dict(epochs=2, batch_size=16, checkpoint_dir=sys.argv[1]) | settings
    elastic = pliant.attach(net, torch.optim.SGD(net.parameters(), lr=0.1), data, **given)
    for step in elastic.steps():
        for x, y in step:
            step.backward(torch.nn.functional.cross_entropy(net(x), y))
        step.commit()
        print("step", step.number, flush=True)
        time.sleep(0.02)
    return elastic
"""


class ProcessTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-process-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "training.py").write_text(SCRIPT)

    def command(self, *arguments):
        environment = {**os.environ, "PYTHONPATH": f"{self.folder}:{os.environ.get('PYTHONPATH', '')}"}
        return [sys.executable, "-B", *arguments], environment

    def run_it(self, *arguments, typed=None):
        command, environment = self.command(*arguments)
        ended = subprocess.run(command, env=environment, input=typed, capture_output=True, text=True, timeout=120)
        return ended.returncode, ended.stdout, ended.stderr

    def script(self, line):
        path = self.folder / "script.py"
        path.write_text(f"from training import *\n{line}\n")
        return str(path), str(self.folder / "checkpoints")

    def test_a_program_that_is_wrong_ends_with_2(self):
        code, _, log = self.run_it(*self.script("train(epochs=1.5)"))
        self.assertEqual(code, 2, log)
        self.assertIn("epochs is 1.5: it must be a whole number", log)
        self.assertIn("script.py", log)

    def test_at_a_prompt_nothing_ends_the_interpreter(self):
        typed = (
            "from training import *\n"
            "train(epochs=0)\n"
            "train(on_nonfinite='ignore')\n"
            "elastic = train(epochs=1)\n"
            "print('still here', elastic.ending.reason)\n"
            "train(epochs=1).register('x', 1)\n"
            "print('and here')\n"
        )
        for interactive in (["-i", "-", str(self.folder / "a")], ["-i", "-q", "-", str(self.folder / "b")]):
            code, out, log = self.run_it(*interactive, typed=typed)
            self.assertEqual(code, 0, log)
            self.assertIn("still here Completed", out)
            self.assertIn("and here", out)
            self.assertIn("epochs is 0: it must be a whole number", log)
            self.assertIn("on_nonfinite is 'ignore'", log)

    def interrupt(self, *arguments, typed=None):
        command, environment = self.command(*arguments)
        process = subprocess.Popen(
            command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.addCleanup(process.kill)
        if typed:
            process.stdin.write(typed)
            process.stdin.flush()
        for line in process.stdout:
            if line.startswith("step 3"):
                break
        process.send_signal(signal.SIGINT)
        out, log = process.communicate(timeout=60)
        return process.returncode, out, log

    def test_ctrl_c_ends_a_script_with_130_after_its_checkpoint(self):
        script = self.script("train(epochs=1000)")
        code, _, log = self.interrupt(*script)
        self.assertEqual(code, -signal.SIGINT, "which shells show as 130")
        self.assertIn("pliant: interrupted: the next run resumes from", log)
        self.assertEqual(log.count("Traceback"), 1)
        began = time.monotonic()
        code, _, log = self.interrupt(*script)
        self.assertRegex(log, r"pliant: resumes from step \d+ of 4000 in")
        self.assertLess(time.monotonic() - began, 60)
        caught = self.script("try:\n    train(epochs=1000)\nexcept KeyboardInterrupt:\n    print('caught')\n    sys.exit(7)")
        code, out, log = self.interrupt(*caught)
        self.assertEqual((code, "caught" in out), (7, True), log)

    def test_ctrl_c_at_a_prompt(self):
        typed = (
            f"import sys; sys.argv = ['', {str(self.folder / 'c')!r}]\n"
            "from training import *\ntrain(epochs=1000)\nprint('still here')\nexit()\n"
        )
        code, out, log = self.interrupt("-i", "-q", typed=typed)
        self.assertEqual(code, 0, log)
        self.assertIn("still here", out)
        self.assertIn("KeyboardInterrupt", log)

    def test_the_command_line(self):
        for arguments, code, where, said in (
            (["--help"], 0, 1, "usage: python -m pliant doctor"),
            (["doctor", "--help"], 0, 1, "usage: python -m pliant doctor"),
            (["--version"], 0, 1, f"pliant {pliant.__version__}\n"),
            ([], 2, 2, "usage: python -m pliant doctor"),
            (["cure"], 2, 2, "usage: python -m pliant doctor"),
        ):
            with self.subTest(arguments):
                ended = self.run_it("-m", "pliant", *arguments)
                self.assertEqual(ended[0], code)
                self.assertIn(said, ended[where])
                self.assertEqual(ended[3 - where], "")


class ImportTest(unittest.TestCase):
    def test_an_import_changes_nothing_in_the_process(self):
        script = (
            "import os, signal, sys\n"
            "def seen(): return dict(os.environ), sys.excepthook, sys.path[:], signal.getsignal(signal.SIGTERM)\n"
            "before = seen()\nimport pliant\npliant.Callback, pliant.InvalidProgram\n"
            "assert seen() == before, 'changed'\n"
            "assert not {'torch', 'keras', 'numpy'} & set(sys.modules), 'a framework is imported'\n"
        )
        subprocess.run([sys.executable, "-B", "-c", script], check=True)

    def test_threads_of_frameworks_are_those_of_the_environment(self):
        from pliant._threads import threads_of

        flag = "--xla_cpu_multi_thread_eigen=false"
        cases = [
            ("tensorflow", {"TF_NUM_INTRAOP_THREADS": "3"}, 3, ""),
            ("tensorflow", {}, os.cpu_count(), "set TF_NUM_INTRAOP_THREADS=1 and TF_NUM_INTEROP_THREADS=1"),
            ("tensorflow", {"TF_NUM_INTRAOP_THREADS": "many"}, os.cpu_count(), "set TF_NUM_INTRAOP_THREADS=1"),
            ("jax", {"XLA_FLAGS": f"--a {flag}"}, 1, ""),
            ("jax", {"OMP_NUM_THREADS": "1"}, os.cpu_count(), f"set XLA_FLAGS={flag}"),
            ("torch", {"OMP_NUM_THREADS": "2"}, 2, ""),
        ]
        for backend, environment, threads, said in cases:
            told = io.StringIO()
            with self.subTest(backend=backend, environment=environment), mock.patch.dict(os.environ, environment, clear=True):
                with contextlib.redirect_stderr(told):
                    self.assertEqual(threads_of(backend, None), threads)
                self.assertIn(said, told.getvalue())
                self.assertEqual(bool(said), bool(told.getvalue()))


class HelpTest(unittest.TestCase):
    def test_public_names_are_listed_and_explained(self):
        listed = dir(pliant)
        self.assertLessEqual(set(pliant.__all__), set(listed))
        self.assertEqual({name for name in listed if not name.startswith("__")}, set(pliant.__all__))
        for name in pliant.__all__:
            self.assertTrue(inspect.getdoc(getattr(pliant, name)), name)
        self.assertTrue(issubclass(pliant.InvalidProgram, PliantError))

    def test_attach_has_its_arguments_and_says_what_they_are(self):
        arguments = list(inspect.signature(pliant.attach).parameters)
        self.assertEqual(arguments[:4], ["model", "optimizer", "train_data", "epochs"])
        explained = inspect.getdoc(pliant.attach).split("Arguments:")[1]
        for argument in arguments:
            self.assertRegex(explained, rf"(?m)^ +{argument}: ")


if __name__ == "__main__":
    unittest.main(verbosity=2)
