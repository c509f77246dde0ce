"""Runs the examples as a user does, with smaller sizes, and tests the interface for scripts of the old product."""

import contextlib
import importlib.util
import io
import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

from pages import script_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


class ExamplesTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-examples-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def run_example(self, name, *arguments, status=0, **more):
        environment = {**os.environ, "PLIANT_CHECKPOINT_DIR": str(self.folder / "checkpoints"),
                       "RESULT_DIR": str(self.folder / "results"), **more}  # fmt: skip
        command = [sys.executable, "-B", str(EXAMPLES / name / "train.py"), *arguments]
        ended = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120
        )
        self.assertEqual(ended.returncode, status, ended.stderr)
        return ended.stdout, ended.stderr

    def test_resnet18(self):
        data = self.folder / "cifar"
        data.mkdir()
        for file in ("data_batch_1.bin", "test_batch.bin"):
            (data / file).write_bytes(
                b"".join(struct.pack("B", i % 10) + bytes([i * 20] * 3072) for i in range(8))
            )
        out, _ = self.run_example("resnet18", f"--data={data}", "--epochs=1", "--batch-size=8")
        self.assertIn("'kind': 'test'", out)

    def test_resnet18_without_data(self):
        """As in the examples' README: `python train.py`, nothing else."""
        size = ["--epochs=1", "--batch-size=8", "--most=8"]
        with contextlib.chdir(self.folder):
            out, log = self.run_example("resnet18", *size)
        self.assertIn("no cifar-10-batches-bin here: it trains on made-up images", log)
        self.assertIn("'kind': 'test'", out)

    def test_resnet18_without_its_images(self):
        _, log = self.run_example("resnet18", f"--data={self.folder}", status=1)
        self.assertIn("FileNotFoundError: no data_batch_*.bin found", log)

    def test_the_script_of_the_guide(self):
        """docs/python.md begins with a script to copy."""
        (self.folder / "train.py").write_text(script_of("python"))
        environment = {**os.environ, "PLIANT_CHECKPOINT_DIR": str(self.folder / "checkpoints")}
        ended = subprocess.run(
            [sys.executable, "-B", str(self.folder / "train.py")],
            env=environment, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn(f"160 steps; the model is in {self.folder}/checkpoints/local/final", ended.stdout)
        accuracy = re.findall(r"tested:  loss [\d.]+  accuracy ([\d.]+)", ended.stderr)
        self.assertGreater(float(accuracy[-1]), 0.9)
        self.assertTrue((self.folder / "checkpoints/local/final/model.safetensors").exists())

    def test_the_script_of_fabric_model(self):
        """docs/fabric-model.md begins with a script to copy."""
        environment = {**os.environ, "PLIANT_CHECKPOINT_DIR": str(self.folder / "checkpoints")}
        environment |= {"RESULT_DIR": str(self.folder / "results"), "LOG_DIR": str(self.folder / "log")}
        ended = subprocess.run(
            [sys.executable, "-B", "-c", script_of("fabric-model")],
            env=environment, cwd=self.folder, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertTrue((self.folder / "checkpoints/local/final/model.safetensors").exists(), ended.stderr)

    def test_char_transformer(self):
        text = self.folder / "text"
        text.write_text("abcdefg hijklm " * 200)
        size = ["--epochs=4", "--batch-size=16", "--length=16", "--width=32", "--layers=1"]
        out, _ = self.run_example("char_transformer", f"--text={text}", *size)
        losses = [float(loss) for loss in re.findall(r"'kind': 'test'.*?'loss': ([\d.]+)", out)]
        self.assertEqual(len(losses), 4)
        self.assertLess(losses[-1], losses[0])

    def test_gan(self):
        out, _ = self.run_example("gan", "--epochs=40", "--batch-size=64")
        self.assertEqual(len(re.findall(r"^discriminator [\d.]+, generator [\d.]+$", out, re.MULTILINE)), 40)
        radius = re.search(r"radius of generated points: ([\d.]+) ± ([\d.]+)", out)
        self.assertAlmostEqual(float(radius[1]), 1.0, delta=0.15)
        self.assertLess(float(radius[2]), 0.3)

    def test_ibm_style(self):
        out, log = self.run_example("ibm_style", "--epochs=3", "--unknown-argument=1")
        self.assertRegex(out, r"train batch 39: loss [\d.]+, accuracy \d+\.\d %")
        self.assertRegex(out, r"test batch 39: loss [\d.]+, accuracy (9\d\.\d|100\.0) %")
        self.assertIn("the argument enable_onnx is not used", log)
        self.assertTrue((self.folder / "results" / "model" / "model.pt").exists())
        final = self.folder / "checkpoints" / "local" / "final" / "manifest.json"
        self.assertIn("framework", json.loads(final.read_text()))

    def run_tutorial(self, *arguments, **more):
        return self.run_example(
            "wmla_tutorial", *arguments, FABRIC_HOME="/usr/local", LOG_DIR=str(self.folder / "results" / "log"),
            PLIANT_PARAMETER_EPOCHS="1", PLIANT_PARAMETER_TRAIN_BATCH_SIZE="2", **more,
        )  # fmt: skip

    def test_wmla_tutorial(self):
        """Its data are in the tutorial's folders. A second run begins with the weights that the first wrote."""
        for folder, file in (("train", "data_batch_1.bin"), ("test", "test_batch.bin")):
            data = self.folder / "data" / folder / "cifar-10-batches-bin"
            data.mkdir(parents=True)
            (data / file).write_bytes(
                b"".join(struct.pack("B", i % 10) + bytes([i * 10] * 3072) for i in range(16))
            )
        data = str(self.folder / "data")
        out, log = self.run_tutorial(DATA_DIR=data)
        self.assertRegex(
            out, r"Train, Iteration: 1, Loss: [\d.]+, Accuracy: 0\.\d{4}\nTest, Iteration: 1, "
        )
        self.assertNotIn("made-up", log)
        lines = (
            (self.folder / "results" / "log" / "evaluation-metrics.txt").read_text().splitlines()
        )
        self.assertEqual([json.loads(line)["grouplabel"] for line in lines], ["train", "test"])
        model = self.folder / "results" / "model" / "model.pt"
        model.rename(model.with_name("model_epoch_final_1.pth"))
        model.with_name("model_epoch_1.pth").write_text("no weights")
        weights = f"--weights={model.parent}"
        again = str(self.folder / "again")
        out, _ = self.run_tutorial(weights, DATA_DIR=data, PLIANT_CHECKPOINT_DIR=again)
        self.assertIn(f"begins with the weights of {model.parent}/model_epoch_final_1.pth", out)

    def test_wmla_tutorial_without_data(self):
        out, log = self.run_tutorial("--most=16", DATA_DIR=str(self.folder))
        self.assertIn(f"no data_batch_*.bin in {self.folder}: made-up images are used", log)
        self.assertIn("Test, Iteration: 1, ", out)


class CompatibilityTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-compatibility-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def test_both_signatures_are_served(self):
        from pliant.fabric import _LoggerAdapter

        heard = []

        class Old:
            def log_train_metrics(self, loss, acc, completed_batch, worker=0):
                heard.append(("train", loss, acc, completed_batch))

            def log_test_metrics(self, loss, acc, completed_batch, worker=0):
                heard.append(("test", loss, acc, completed_batch))

        class New:
            def on_train_begin(self):
                heard.append("begin")

            def log_train_metrics(self, metrics, iteration, epoch, workers):
                heard.append(("train", metrics, iteration, epoch, workers))

            def log_test_metrics(self, metrics, iteration, epoch):
                heard.append(("test", metrics, iteration, epoch))

        train = {
            "kind": "train",
            "loss": 0.5,
            "accuracy": 0.25,
            "step": 7,
            "epoch": 1,
            "learners": 3,
        }
        test = {"kind": "test", "loss": 0.4, "accuracy": 0.5, "step": 8, "epoch": 1}
        for logger in (Old(), New()):
            adapter = _LoggerAdapter(logger)
            adapter.pass_on(train)
            adapter.pass_on(test)
        self.assertEqual(heard, [
            ("train", 0.5, 25.0, 7), ("test", 0.4, 50.0, 8), "begin",
            ("train", {"loss": 0.5, "accuracy": 0.25}, 7, 1, 3), ("test", {"loss": 0.4, "accuracy": 0.5}, 8, 1),
        ])  # fmt: skip

    def test_a_loss_that_is_not_finite_is_reported_as_such(self):
        """metrics.jsonl omits such a loss."""
        from pliant.fabric import _LoggerAdapter

        heard = []

        class Old:
            def log_train_metrics(self, loss, acc, completed_batch, worker=0):
                heard.append((loss, acc))

        class New:
            def log_train_metrics(self, metrics, iteration, epoch, workers):
                heard.append((metrics["loss"], metrics["accuracy"]))

        for logger in (Old(), New()):
            _LoggerAdapter(logger).pass_on(
                {"kind": "train", "accuracy": 0.25, "step": 7, "epoch": 1}
            )
        for (loss, accuracy), expected in zip(heard, (25.0, 0.25), strict=True):
            self.assertTrue(math.isnan(loss))
            self.assertEqual(accuracy, expected)

    def test_a_logger_ends_where_it_began(self):
        """Only one of several learners passes metrics to its logger."""
        from pliant.fabric import _LoggerAdapter

        told = []

        class Logger:
            def on_train_begin(self):
                told.append("begins")

            def log_train_metrics(self, metrics, iteration, epoch, workers):
                told.append(iteration)

            def on_train_end(self):
                told.append("ends")

        _LoggerAdapter(Logger()).end()
        self.assertEqual(told, [])
        adapter = _LoggerAdapter(Logger())
        adapter.pass_on({"kind": "train", "loss": 0.5, "step": 7, "epoch": 1})
        adapter.end()
        self.assertEqual(told, ["begins", 7, "ends"])

    def test_the_accuracy_that_a_function_returns_counts(self):
        """Whether it called `eva` or not, any number of times."""
        import torch
        from pliant import FabricModel

        def returns(accuracy):
            def train_step(model, data, eva, train_loader, fn_args):
                inputs, labels = data
                outputs = model(inputs)
                loss = model.get_loss_function()(outputs, labels)
                loss.backward()
                return accuracy(eva, outputs, labels), loss

            return train_step

        # All outputs of the model are correct.
        data = [(torch.eye(4)[i % 4], i % 4) for i in range(16)]
        for case, accuracy, expected in (
            ("its own", lambda eva, outputs, labels: 75.0, 0.75),
            ("a tensor", lambda eva, outputs, labels: torch.tensor(25.0), 0.25),
            ("eva's, asked twice", lambda eva, *pair: (eva(*pair) + eva(*pair)) / 2, 1.0),
            ("none", lambda eva, outputs, labels: None, 0.0),
        ):
            with self.subTest(case):
                lines = []

                class Logger:
                    def log_train_metrics(self, metrics, iteration, epoch, workers, lines=lines):
                        lines.append(metrics["accuracy"])

                model = torch.nn.Linear(4, 4)
                with torch.no_grad():
                    model.weight.copy_(torch.eye(4))
                FabricModel(
                    model,
                    lambda: (data, None),
                    torch.nn.functional.cross_entropy,
                    torch.optim.SGD(model.parameters(), lr=1e-6),
                    driver_logger=Logger(),
                    fn_step_train=returns(accuracy),
                ).train(2, 4, checkpoint_dir=str(self.folder / case.replace(" ", "-")))
                self.assertEqual(set(lines), {expected})

    def test_everything_that_a_script_passes_is_used(self):
        """Callbacks, custom functions, a collate function, unknown arguments, RESULT_DIR and download."""
        import callbacks
        import torch
        from fabric_model import FabricModel

        told, test_case = [], self

        class Schedule(callbacks.Callback):
            def on_train_begin(self):
                told.append("train begins")
                test_case.assertIs(self.model, model)

            def on_epoch_begin(self, epoch):
                told.append(("epoch begins", epoch))
                for group in self.params["optimizer"].param_groups:
                    group["lr"] = 0.1 / (1 + epoch)

            def on_epoch_end(self, epoch):
                told.append(("epoch ends", epoch))
                if epoch == 1:
                    self.params["stop"]()

            def on_train_end(self):
                told.append("train ends")

        class Logger(callbacks.LoggerCallback):
            def log_train_metrics(self, metrics, iteration, epoch, workers):
                told.append(("train", epoch, workers))

            def log_test_metrics(self, metrics, iteration, epoch):
                told.append(("test", epoch, metrics["loss"]))

        def collate(samples):
            return torch.stack([x for x, _ in samples]) * 2, torch.tensor([y for _, y in samples])

        def train_step(model, data, eva, train_loader, fn_args):
            inputs, labels = data
            self.assertEqual(float(inputs.abs().max()), 2.0, "collated")
            self.assertEqual(fn_args, {"weight": 3})
            (again,) = train_loader
            self.assertIs(again[0], inputs)
            model.get_optimizer().zero_grad()
            loss = model.get_loss_function()(model(inputs), labels)
            loss.backward()
            return eva(model(inputs), labels), loss

        def test(model, test_iter, fn_args):
            self.assertFalse(model.training)
            return (
                sum(model.get_loss_function()(model(x), y) for x, y in test_iter)
                + fn_args["weight"]
            )

        data = [(torch.eye(4)[i % 4], i % 4) for i in range(16)]
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=9)
        log = io.StringIO()
        with (
            mock.patch.dict(os.environ, {"RESULT_DIR": str(self.folder / "results")}),
            contextlib.redirect_stderr(log),
        ):
            fabric = FabricModel(
                model, lambda: (data, data), torch.nn.functional.cross_entropy, optimizer,
                driver_logger=Logger(), user_callback=Schedule(), fn_step_train=train_step, fn_test=test,
                fn_args={"weight": 3}, batch_collate_function=collate, some_flag=1,
            )  # fmt: skip
            fabric.train(
                5,
                2,
                engines_number=2,
                worker_memory="4g",
                driver_memory="2g",
                checkpoint_dir=str(self.folder),
            )
            fabric.download(out_dir=self.folder / "elsewhere")
        for line in (
            "the argument some_flag is not used (not known here)",
            "the argument worker_memory is not used (memory of a worker",
            "the argument driver_memory is not used (memory of its driver",
        ):
            self.assertIn(line, log.getvalue())
        self.assertEqual(
            [each for each in told if each[0] not in ("train", "test")],
            ["train begins", ("epoch begins", 0), ("epoch ends", 0), ("epoch begins", 1), ("epoch ends", 1),
             "train ends"],
        )  # fmt: skip
        self.assertEqual([each[:2] for each in told if each[0] == "test"], [("test", 0)])
        self.assertGreater(
            min(each[2] for each in told if each[0] == "test"), 3, "its own test function"
        )
        self.assertIn(("train", 1, 1), told)
        for folder in ("results/model", "elsewhere"):
            saved = torch.load(self.folder / folder / "model.pt", weights_only=True)
            for name, tensor in model.state_dict().items():
                self.assertTrue(torch.equal(saved[name], tensor))

    def test_an_epoch_begins_after_the_evaluation_of_the_one_before(self):
        """The evaluation may end the training."""
        import callbacks
        import torch
        from pliant import Callback, FabricModel

        told = []

        class Told(callbacks.Callback):
            def on_epoch_begin(self, epoch):
                told.append(("begins", epoch))

            def on_epoch_end(self, epoch):
                told.append(("ends", epoch))

        class Stop(Callback):
            def set_elastic(self, elastic):
                self.elastic = elastic

            def on_test_end(self, evaluation):
                told.append(("evaluated", evaluation.epoch))
                if evaluation.epoch == 1:
                    self.elastic.stop()

        data = [(torch.eye(4)[i % 4], i % 4) for i in range(16)]
        for test_data, expected in (
            (data, [("begins", 0), ("ends", 0), ("evaluated", 0), ("begins", 1), ("ends", 1), ("evaluated", 1)]),
            (None, [(what, epoch) for epoch in range(3) for what in ("begins", "ends")]),
        ):  # fmt: skip
            told.clear()
            model = torch.nn.Linear(4, 4)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            FabricModel(
                model,
                lambda test_data=test_data: (data, test_data),
                torch.nn.functional.cross_entropy,
                optimizer,
                user_callback=[Told(), Stop()],
            ).train(3, 4, checkpoint_dir=str(self.folder / str(bool(test_data))))
            self.assertEqual(told, expected)

    def test_a_pod_has_the_environment_that_scripts_read(self):
        from pliant._accelerator import settle_environment

        home, volume = "/usr/local", str(self.folder)
        pod = {
            "PLIANT_COORDINATOR": "10.0.0.1:7077",
            "PLIANT_CHECKPOINT_DIR": volume,
            "PLIANT_JOB_UID": "1234",
        }
        results = f"{volume}/1234/results"
        names = ("DATA_DIR", "FABRIC_HOME", "LOG_DIR", "RESULT_DIR")
        for given, expected in (
            ({}, [None, home, None, None]),
            (pod, [tempfile.gettempdir(), home, f"{results}/log", results]),
            ({**pod, "RESULT_DIR": f"{volume}/mine"}, [tempfile.gettempdir(), home, f"{volume}/mine/log", f"{volume}/mine"]),
            ({**pod, **dict.fromkeys(names, f"{volume}/there")}, [f"{volume}/there"] * 4),
            ({**pod, "PLIANT_CHECKPOINT_DIR": "/proc/none"}, [tempfile.gettempdir(), home, "/proc/none/1234/results/log", "/proc/none/1234/results"]),
        ):  # fmt: skip
            with self.subTest(given), mock.patch.dict(os.environ, given, clear=True):
                settle_environment()
                self.assertEqual([os.environ.get(name) for name in names], expected)
                if given.get("PLIANT_CHECKPOINT_DIR") == volume:
                    self.assertTrue(pathlib.Path(os.environ["RESULT_DIR"]).is_dir())
                    self.assertTrue(pathlib.Path(os.environ["LOG_DIR"]).is_dir())

    def test_each_module_of_the_old_product_settles_the_environment(self):
        for module in ("callbacks", "fabric_model", "pyedt.fabric_model"):
            environment = {**os.environ, "PLIANT_COORDINATOR": "10.0.0.1:7077",
                           "PLIANT_CHECKPOINT_DIR": str(self.folder), "PLIANT_JOB_UID": "1234"}  # fmt: skip
            environment.pop("RESULT_DIR", None)
            ended = subprocess.run(
                [sys.executable, "-B", "-c", f"import os, {module}; print(os.environ['RESULT_DIR'])"],
                env=environment, capture_output=True, text=True, timeout=120, check=True,
            )  # fmt: skip
            self.assertEqual(ended.stdout.strip(), f"{self.folder}/1234/results")

    def test_a_model_of_keras_2_is_refused(self):
        """Recognized by its class: where Keras 2 is installed, Keras 3 may be missing."""
        from pliant._attach import is_keras
        from pliant.errors import InvalidProgram

        import pliant

        def model_of(module):
            return type("Sequential", (type("Model", (), {"__module__": module}),), {})()

        class Plain:
            """A model of no framework."""

        for version in ("3.15.1", "2.15.0"):
            keras = types.SimpleNamespace(__version__=version, Model=str)
            with mock.patch.dict(sys.modules, {"keras": keras}):
                for module, refused in (
                    ("tf_keras.src.engine.training", True),
                    ("tensorflow.python.keras.engine.training", True),
                    ("keras.src.engine.training", version == "2.15.0"),
                    ("keras.src.models.model", version == "2.15.0"),
                    ("mine", False),
                ):
                    with self.subTest(f"{module} with {version}"):
                        if not refused:
                            self.assertFalse(is_keras(model_of(module)))
                            continue
                        for use, settings in ((pliant.attach, {"epochs": 1}), (pliant.FabricModel, {"optimizer": None})):
                            with self.assertRaisesRegex(InvalidProgram, "Keras 3 is needed"):
                                use(model_of(module), None, None, **settings)
                self.assertFalse(is_keras(Plain()))

    def test_both_modules_have_the_class(self):
        import fabric_model
        import pliant
        import pyedt.fabric_model

        self.assertIs(fabric_model.FabricModel, pliant.FabricModel)
        self.assertIs(pyedt.fabric_model.FabricModel, pliant.FabricModel)


class DoctorTest(unittest.TestCase):
    def run_doctor(self, **environment):
        command = [sys.executable, "-B", "-m", "pliant", "doctor"]
        return subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120
        )

    def test_a_machine_that_works(self):
        ended = self.run_doctor()
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertIn("ok      training  3 steps alone with torch", ended.stdout)
        there = importlib.util.find_spec("tensorboard") is not None
        events = r"tensorboard \d" if there else r"not installed: .*\(pip install tensorboard\)"
        self.assertRegex(ended.stdout, f"ok      events    {events}")

    def test_a_gpu_that_is_not_there_is_not_measured(self):
        import torch

        if torch.cuda.is_available():
            self.skipTest("there is a GPU")
        command = [sys.executable, "-B", "-m", "pliant", "doctor", "--gpu"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("FAILED  gpu       this machine has no GPU that PyTorch can use", ended.stdout)

    def test_a_shard_has_enough_samples_from_where_the_gpu_is_busy(self):
        from pliant import _gpu_speed

        # The kernels take 6 ms to start, whatever they work on; a sample takes 0.1 ms.
        speeds = [
            _gpu_speed.Speed(size, time, 1.1 * time)
            for size in (1, 8, 32, 128, 256)
            for time in (max(6e-3, size * 1e-4),)
        ]
        self.assertEqual(_gpu_speed.smallest_enough(speeds), 128)
        lines = "\n".join(_gpu_speed.report(speeds))
        self.assertIn("at least 128 samples in a shard", lines)
        self.assertIn("up to 60 times as long for a sample", lines)
        self.assertIn("costs 10 % of the time", lines)

    def test_the_drivers_version_is_found_in_both_kinds_of_module(self):
        from pliant import _gpus

        for text, version in (
            ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n", "535.104.05"),
            ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n"
             "GCC version:  gcc version 13.2.0\n", "580.159.04"),
            ("something else", None),
        ):  # fmt: skip
            with self.subTest(text), tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder, "version")
                file.write_text(text)
                with mock.patch.object(_gpus, "_DRIVER", file):
                    self.assertEqual(_gpus.driver_version(), version)
        with mock.patch.object(_gpus, "_DRIVER", pathlib.Path("/nowhere")):
            self.assertIsNone(_gpus.driver_version())

    def test_one_framework_is_enough(self):
        from pliant import doctor

        def works(folder):
            self.assertTrue(pathlib.Path(folder).is_dir())
            return 3

        def fails(folder):
            raise RuntimeError("no kernel")

        def broken():
            raise ImportError("no libcudart.so")

        torch_fails, keras_fails = (
            f"{name} does not train: RuntimeError: no kernel" for name in ("torch", "keras")
        )
        for trainings, code, said in (
            ({"torch": works, "keras": works}, 0, "3 steps alone with torch; 3 steps alone with keras"),
            ({"torch": works, "keras": fails}, 0, f"3 steps alone with torch; {keras_fails}"),
            ({"torch": fails, "keras": works}, 0, f"3 steps alone with keras; {torch_fails}"),
            ({"torch": fails, "keras": fails}, 1, f"{torch_fails}; {keras_fails}"),
            ({"keras": works}, 0, "3 steps alone with keras"),
            ({}, 1, "neither torch (2.1 or later) nor keras (3) is installed: one is needed"),
        ):  # fmt: skip
            out = io.StringIO()
            checks = {"torch": broken, "keras": lambda: "keras 3", "training": doctor._trains}
            with (
                mock.patch.object(doctor, "_TRAININGS", trainings),
                mock.patch.object(doctor, "_CHECKS", checks),
                mock.patch.object(doctor, "_is_there", lambda module: True),
                contextlib.redirect_stdout(out),
            ):
                self.assertEqual(doctor.main(["doctor"]), code)
            self.assertIn(f"{'FAILED' if code else 'ok    '}  training  {said}\n", out.getvalue())
            self.assertIn("FAILED  torch     ImportError: no libcudart.so", out.getvalue())

    def test_a_gpu_that_no_framework_can_use_is_reported(self):
        from pliant import doctor

        for problems, told in (
            ({"torch": "torch cannot"}, "torch cannot"),
            ({"keras": "tensorflow cannot"}, "tensorflow cannot"),
            ({"torch": "torch cannot", "keras": "jax cannot"}, "torch cannot; jax cannot"),
            ({"torch": "torch cannot", "keras": None}, None),
            ({"torch": None}, None),
            ({}, None),
        ):
            looks = {name: lambda problem=problem: problem for name, problem in problems.items()}
            with (
                self.subTest(problems),
                mock.patch.object(doctor, "_GPU_PROBLEMS", looks),
                mock.patch.object(doctor, "_is_there", lambda module: True),
                contextlib.ExitStack() as stack,
            ):
                if told:
                    trouble = stack.enter_context(self.assertRaises(doctor.Trouble))
                doctor._gpu()
            if told:
                self.assertEqual(str(trouble.exception), told)

    def test_an_older_library_is_named(self):
        """An older library lacks functions of this version."""
        from pliant import _native

        older = types.SimpleNamespace(pliant_abi_version=lambda: _native.ABI_VERSION - 1)
        with (
            mock.patch.object(_native, "_loaded", None),
            mock.patch("ctypes.CDLL", return_value=older),
            self.assertRaisesRegex(ImportError, "is older than this package"),
        ):
            _native.library()

    def test_a_missing_library_is_named(self):
        ended = self.run_doctor(PLIANT_LIBRARY="/nowhere/libpliant.so")
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stdout, "FAILED  library .*/nowhere/libpliant.so")
        self.assertIn("FAILED  training", ended.stdout, "and the other checks are made")


if __name__ == "__main__":
    unittest.main(verbosity=2)
