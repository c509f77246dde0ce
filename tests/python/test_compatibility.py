"""Modules that scripts for the old product import besides FabricModel: pth_parameter_mgr and emetrics; also the folders
that scripts write to, and the seed of their models. FabricModel itself is in test_examples.py, the seed of a Keras
model in test_keras.py."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest
from unittest import mock

import pliant
import torch
from harness import UID, ScenarioTest
from pliant import _accelerator, _parameters
from pliant.errors import InvalidProgram

JOB = {"PLIANT_GLOBAL_BATCH_SIZE": "128", "PLIANT_LOGICAL_SHARDS": "8"}
# The test's environment without variables of a job.
_CLEAN = {
    name: value
    for name, value in os.environ.items()
    if name not in ("DATA_DIR", "LOG_DIR", "RESULT_DIR", "JOB_STATE_DIR", "PLIANT_SEED", *JOB)
    and not name.startswith("PLIANT_PARAMETER")
}


class Case(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-compatibility-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    @contextlib.contextmanager
    def job(self, parameters=None, **environment):
        """Reads the parameters of this environment and this file; None: there is no file."""
        if parameters is not None:
            file = self.folder / "parameters.json"
            text = parameters if isinstance(parameters, str) else json.dumps(parameters)
            file.write_text(text)
            environment["PLIANT_PARAMETERS"] = str(file)
        with mock.patch.dict(os.environ, {**_CLEAN, **environment}, clear=True):
            _parameters._given.cache_clear()
            try:
                yield
            finally:
                _parameters._given.cache_clear()

    def run_script(self, text, *arguments, status=0, **environment):
        script = self.folder / "script.py"
        script.write_text(textwrap.dedent(text))
        ended = subprocess.run(
            [sys.executable, "-B", str(script), *arguments], cwd=self.folder, capture_output=True, text=True,
            env={**_CLEAN, "PLIANT_CHECKPOINT_DIR": str(self.folder / "checkpoints"), **environment}, timeout=120,
        )  # fmt: skip
        self.assertEqual(ended.returncode, status, ended.stderr)
        return ended


def of_file(**parameters):
    return {"parameters": parameters}


class ParametersTest(Case):
    def manager(self):
        import pth_parameter_mgr

        return pth_parameter_mgr

    def test_a_number_is_the_jobs_or_a_default(self):
        for call, said, answer in (
            ("getEpoch", {}, 10),
            ("getEpoch", of_file(epochs=3), 3),
            ("getEpoch", {"PLIANT_PARAMETER_EPOCHS": "4"}, 4),
            ("getEpoch", {**of_file(epochs=3), "PLIANT_PARAMETER_EPOCHS": "4"}, 4),
            ("getTrainBatchSize", {}, 32),
            ("getTrainBatchSize", of_file(trainBatchSize=7), 7),
            ("getTrainBatchSize", {"PLIANT_LOGICAL_SHARDS": "8"}, 32),
            ("getTrainBatchSize", JOB, 16),
            ("getTrainBatchSize", {**JOB, **of_file(trainBatchSize=16)}, 16),
            ("getTestBatchSize", {}, 32),
            ("getTestBatchSize", JOB, 16),
            ("getTestBatchSize", {**JOB, "PLIANT_PARAMETER_TEST_BATCH_SIZE": "100"}, 100),
            ("getLearningRatePolicy", {}, "fixed"),
            ("getLearningRatePolicy", of_file(learningRatePolicy="Cosine"), "cosine"),
        ):
            with self.subTest(call, said=said), self.job(**said):
                self.assertEqual(getattr(self.manager(), call)(), answer)

    def test_data_are_a_folder_or_its_files(self):
        root = self.folder / "data"
        for name in ("test/b/2.bin", "test/a.bin", "train/x.bin", "elsewhere/y.bin", "z.bin"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).touch()
        elsewhere = str(root / "elsewhere")
        flat = self.folder / "flat"
        flat.mkdir()
        (flat / "1.bin").touch()
        for call, said, folder, files in (
            ("getTrainData", {"DATA_DIR": str(root)}, root / "train", ["x.bin"]),
            ("getTestData", {"DATA_DIR": str(root)}, root / "test", ["a.bin", "b/2.bin"]),
            ("getValData", {"DATA_DIR": str(root)}, root / "test", ["a.bin", "b/2.bin"]),
            ("getTrainData", {"DATA_DIR": str(flat)}, flat, ["1.bin"]),
            ("getTestData", {"DATA_DIR": str(flat)}, flat, ["1.bin"]),
            ("getTrainData", {"DATA_DIR": str(root), **of_file(trainData=elsewhere)}, elsewhere, ["y.bin"]),
            ("getTestData", {"PLIANT_PARAMETER_TEST_DATA": elsewhere}, elsewhere, ["y.bin"]),
            ("getValData", {"PLIANT_PARAMETER_VALIDATION_DATA": elsewhere}, elsewhere, ["y.bin"]),
        ):  # fmt: skip
            with self.subTest(call, said=said), self.job(**said):
                ask = getattr(self.manager(), call)
                self.assertEqual(ask(False), str(folder))
                self.assertEqual(ask(), [str(pathlib.Path(folder, name)) for name in files])
                self.assertEqual(ask(True), ask())

    def test_where_nothing_is_said_data_are_in_the_temporary_folder(self):
        with self.job():
            self.assertEqual(self.manager().getTrainData(False), tempfile.gettempdir())
        nowhere = str(self.folder / "nowhere")  # a script may download what is not there yet
        with self.job(DATA_DIR=nowhere):
            self.assertEqual(self.manager().getTrainData(False), nowhere)

    def test_the_optimizer_is_as_the_job_says(self):
        for said, kind, settings in (
            ({}, "SGD", {"lr": 0.01, "momentum": 0.9, "weight_decay": 0}),
            (of_file(learningRate=1, momentum=0, weightDecay=0.5), "SGD", {"lr": 1, "momentum": 0, "weight_decay": 0.5}),
            ({"PLIANT_PARAMETER_LEARNING_RATE": "1e-2"}, "SGD", {"lr": 0.01}),
            (of_file(optimizer="adam"), "Adam", {"lr": 0.001, "weight_decay": 0}),
            (of_file(optimizer="AdamW", weightDecay=0.1), "AdamW", {"lr": 0.001, "weight_decay": 0.1}),
            (of_file(optimizer="RMSProp", momentum=0.5), "RMSprop", {"lr": 0.01, "momentum": 0.5}),
            (of_file(optimizer="Adagrad"), "Adagrad", {"lr": 0.01}),
            (of_file(optimizer="ADADELTA"), "Adadelta", {"lr": 1.0}),
            (of_file(optimizer="Adamax"), "Adamax", {"lr": 0.002}),
            (of_file(optimizer="NAdam"), "NAdam", {"lr": 0.002}),
            ({"PLIANT_PARAMETER_OPTIMIZER": "RAdam"}, "RAdam", {"lr": 0.001}),
        ):  # fmt: skip
            with self.subTest(said), self.job(**said):
                model = torch.nn.Linear(2, 2)
                model.bias.requires_grad = False
                optimizer = self.manager().getOptimizer(model)
                self.assertIs(type(optimizer), getattr(torch.optim, kind))
                (group,) = optimizer.param_groups
                self.assertEqual([id(each) for each in group["params"]], [id(model.weight)])
                self.assertEqual({name: group[name] for name in settings}, settings)
                model(torch.ones(1, 2)).sum().backward()
                optimizer.step()

    def test_the_learning_rate_follows_its_policy(self):
        """The rate after each of 4 epochs, which is also the length of policies that have one."""
        for said, rates in (
            ({"learningRatePolicy": "step"}, [1, 0.1, 0.01, 0.001]),
            ({"learningRatePolicy": "step", "stepSize": 2, "gamma": 0.5}, [1, 1, 0.5, 0.5]),
            ({"learningRatePolicy": "multistep"}, [1, 1, 0.1, 0.01]),
            ({"learningRatePolicy": "multistep", "milestones": [1, 2]}, [1, 0.1, 0.01, 0.01]),
            ({"learningRatePolicy": "exponential"}, [1, 0.95, 0.95**2, 0.95**3]),
            ({"learningRatePolicy": "exponential", "gamma": 0.5}, [1, 0.5, 0.25, 0.125]),
            ({"learningRatePolicy": "cosine"}, [1, 0.5 + 0.5**1.5, 0.5, 0.5 - 0.5**1.5]),
            ({"learningRatePolicy": "poly"}, [1, 0.75, 0.5, 0.25]),
            ({"learningRatePolicy": "poly", "power": 2}, [1, 0.75**2, 0.5**2, 0.25**2]),
            ({"learningRatePolicy": "inverse"}, [1, 1 / 1.1, 1 / 1.2, 1 / 1.3]),
            ({"learningRatePolicy": "inverse", "gamma": 0.5, "power": 2}, [1, 1.5**-2, 2**-2, 2.5**-2]),
            ({"learningRatePolicy": "plateau", "patience": 0}, [1, 1, 0.1, 0.01]),
            ({"learningRatePolicy": "plateau"}, [1, 1, 1, 1]),
        ):  # fmt: skip
            with (
                self.subTest(said),
                self.job(of_file(epochs=4, learningRate=1.0, **said)["parameters"]),
            ):
                manager, model = self.manager(), torch.nn.Linear(1, 1)
                optimizer = manager.getOptimizer(model)
                schedule = manager.getLearningRate(optimizer)
                self.assertIs(manager.getLearningRate(optimizer), schedule)
                plateau = isinstance(schedule, torch.optim.lr_scheduler.ReduceLROnPlateau)
                self.assertEqual(plateau, said["learningRatePolicy"] == "plateau")
                seen = []
                for _ in rates:
                    seen.append(optimizer.param_groups[0]["lr"])
                    optimizer.step()
                    schedule.step(*([5.0] if plateau else []))
                self.assertEqual(
                    [round(rate, 9) for rate in seen], [round(rate, 9) for rate in rates]
                )
        with self.job():
            self.assertIsNone(self.manager().getLearningRate(manager.getOptimizer(model)))

    def test_an_error_names_the_place_the_value_and_the_accepted_values(self):
        """The error names the variable or the key, the value and the accepted values."""
        number = "a number greater than 0"
        for said, message in (
            (of_file(epoch=3), 'has the key "epoch", which is not known: there are trainData, '),
            (of_file(epochs="3"), f'epochs of {self.folder}/parameters.json (PLIANT_PARAMETERS) is "3": it must be a whole number from 1 to 16777216'),
            (of_file(epochs=0), "is 0: it must be a whole number from 1"),
            (of_file(epochs=3.0), "is 3.0: it must be a whole number from 1"),
            (of_file(epochs=True), "is true: it must be a whole number from 1"),
            (of_file(epochs=None), "is null: it must be a whole number from 1"),
            (of_file(trainBatchSize=-1), "trainBatchSize of"),
            (of_file(testBatchSize=1 << 25), "is 33554432: it must be a whole number from 1 to 16777216"),
            (of_file(trainData=""), 'is "": it must be a text that is not empty'),
            (of_file(optimizer="sdg"), 'is "sdg": it must be one of SGD, Adam, AdamW, RMSprop, Adagrad, Adadelta, Adamax, NAdam, RAdam'),
            (of_file(optimizer=["SGD"]), 'is ["SGD"]: it must be one of SGD'),
            (of_file(optimizer="LBFGS"), "A step of LBFGS computes the loss as often as it needs it"),
            (of_file(learningRate=0), f"is 0: it must be {number}"),
            (of_file(learningRate="0.1"), f'is "0.1": it must be {number}'),
            (of_file(learningRate=int("9" * 400)), f"it must be {number}"),
            ({"parameters": '{"learningRate": NaN}'}, f"is NaN: it must be {number}"),
            ({"parameters": '{"learningRate": 1e999}'}, f"is Infinity: it must be {number}"),
            (of_file(momentum=1), "is 1: it must be a number of at least 0 and below 1"),
            (of_file(optimizer="Adam", momentum=0.9), "is 0.9: the optimizer Adam does not use it, only SGD and RMSprop do"),
            (of_file(weightDecay=-0.1), "is -0.1: it must be a number of at least 0"),
            (of_file(learningRatePolicy="linear"), 'is "linear": it must be one of fixed, step, multistep, exponential, cosine, poly, inverse, plateau'),
            (of_file(stepSize=3), "is 3: the learning rate's policy fixed does not use it, only step does"),
            (of_file(learningRatePolicy="step", stepSize=0), "is 0: it must be a whole number from 1"),
            (of_file(learningRatePolicy="step", gamma=1), "is 1: it must be a number greater than 0 and below 1"),
            (of_file(learningRatePolicy="cosine", gamma=0.1), "policy cosine does not use it, only step, multistep, exponential, inverse and plateau do"),
            (of_file(learningRatePolicy="poly", power=0), f"is 0: it must be {number}"),
            (of_file(learningRatePolicy="plateau", patience=-1), "is -1: it must be a whole number from 0"),
            (of_file(learningRatePolicy="multistep", milestones=[3, 3]), "is [3, 3]: it must be a list of epochs, each later than the one before"),
            (of_file(learningRatePolicy="multistep", milestones=[]), "is []: it must be a list of epochs"),
            (of_file(learningRatePolicy="multistep", milestones=[1, "2"]), 'is [1, "2"]: it must be a list of epochs'),
            (of_file(learningRatePolicy="multistep", milestones=5), "is 5: it must be a list of epochs"),
            ({"PLIANT_PARAMETER_EPOCHS": "ten"}, 'PLIANT_PARAMETER_EPOCHS is "ten": it must be a whole number from 1'),
            ({"PLIANT_PARAMETER_EPOCHS": ""}, 'PLIANT_PARAMETER_EPOCHS is "": it must be'),
            ({"PLIANT_PARAMETER_EPOCHS": "1_0"}, 'is "1_0": it must be'),
            ({"PLIANT_PARAMETER_EPOCHS": "9" * 30}, "it must be a whole number from 1"),
            ({"PLIANT_PARAMETER_LEARNING_RATE": "nan"}, f'is "nan": it must be {number}'),
            ({"PLIANT_PARAMETER_LEARNINGRATE": "1"}, "PLIANT_PARAMETER_LEARNINGRATE is not known: there are PLIANT_PARAMETER_TRAIN_DATA, "),
            ({"PLIANT_PARAMETER_LEARNING_RATE_POLICY": "multistep", "PLIANT_PARAMETER_MILESTONES": "2,x"}, 'PLIANT_PARAMETER_MILESTONES is [2, "x"]: it must be a list of epochs'),
            ({"parameters": "{"}, "must be a file of one JSON object: Expecting property name"),
            ({"parameters": '{"epochs": 1, "epochs": 2}'}, 'one JSON object, with the key "epochs" once'),
            ({"parameters": "[1]"}, "one JSON object: it holds [1]"),
            ({"parameters": "[" * 100_000}, "one JSON object: maximum recursion depth exceeded"),
            ({"parameters": " " * ((1 << 20) + 1)}, "one JSON object of at most 1048576 bytes: it has more"),
            ({"PLIANT_PARAMETERS": "/nowhere.json"}, "PLIANT_PARAMETERS is /nowhere.json, which must be a file of one JSON object: [Errno 2]"),
            ({"PLIANT_PARAMETERS": "/dev/zero"}, "PLIANT_PARAMETERS is /dev/zero, which must be a file of one JSON object: it is not a file"),
        ):  # fmt: skip
            with self.subTest(str(said)[:200]), self.job(**said):
                with self.assertRaises(InvalidProgram) as caught:
                    self.manager().getEpoch()
                self.assertIn(message, str(caught.exception))
                self.assertEqual(caught.exception.exit_code, 2)

    def test_parameters_are_checked_when_asked_for(self):
        frozen = torch.nn.Linear(1, 1).requires_grad_(False)
        for said, ask, message in (
            ({"DATA_DIR": "/nowhere"}, lambda m: m.getTrainData(), "there is no folder /nowhere, where the train data should be: trainData (PLIANT_PARAMETER_TRAIN_DATA) or DATA_DIR names it"),
            (of_file(testData="/nowhere"), lambda m: m.getTestData(False), 'is "/nowhere": there is no such folder'),
            ({**JOB, **of_file(trainBatchSize=32)}, lambda m: m.getTrainBatchSize(), "is 32: in this job it must be 16, its globalBatchSize of 128 divided by its logicalShards, 8"),
            ({**JOB, "PLIANT_GLOBAL_BATCH_SIZE": "100"}, lambda m: m.getTrainBatchSize(), "the job's globalBatchSize is 100 and its logicalShards 8: a device's batch"),
            ({**JOB, "PLIANT_LOGICAL_SHARDS": "many"}, lambda m: m.getTrainBatchSize(), "PLIANT_LOGICAL_SHARDS is 'many': it must be a whole number from 1 to 65536"),
            ({}, lambda m: m.getOptimizer(frozen), "getOptimizer: no parameter of the model requires a gradient"),
            ({}, lambda m: m.getOptimizer("resnet18"), "getOptimizer is given a str: it must be a torch.nn.Module"),
            ({}, lambda m: m.getLearningRate(frozen), "getLearningRate is given a Linear: it must be a torch.optim.Optimizer"),
        ):  # fmt: skip
            with self.subTest(message), self.job(**said):
                with self.assertRaises(InvalidProgram) as caught:
                    ask(self.manager())
                self.assertIn(message, str(caught.exception))

    def test_a_wrong_job_ends_the_process_as_wrong(self):
        """Even before a training exists."""
        for script, environment, message in (
            ("import pth_parameter_mgr; pth_parameter_mgr.getEpoch()", {"PLIANT_PARAMETER_EPOCHS": "0"}, "InvalidProgram: PLIANT_PARAMETER_EPOCHS is 0: it must be"),
            ("import fabric_model", {"PLIANT_SEED": "-1"}, "InvalidProgram: PLIANT_SEED is '-1': it must be a whole number from 0 to 18446744073709551615"),
        ):  # fmt: skip
            with self.subTest(message):
                ended = self.run_script(script, status=2, **environment)
                self.assertIn(message, ended.stderr)

    def test_a_missing_function_is_named_with_those_provided(self):
        with self.assertRaises(AttributeError) as caught:
            self.manager().getWorkerCount()
        self.assertEqual(
            str(caught.exception),
            "pth_parameter_mgr has no getWorkerCount here: there are getEpoch, getLearningRate, "
            "getLearningRatePolicy, getOptimizer, getTestBatchSize, getTestData, getTrainBatchSize, "
            "getTrainData, getValData",
        )
        with self.assertRaisesRegex(ImportError, "cannot import name 'getMoon'"):
            from pth_parameter_mgr import getMoon  # noqa: F401

    def test_a_scripts_own_module_is_taken(self):
        """The script adds the parent of its results folder at the front of sys.path."""
        (self.folder / "pth_parameter_mgr.py").write_text("def getEpoch(): return 'its own'")
        for train_dir, answer in (("results", "its own"), ("", "10")):
            # In another folder than the script: next to it the module would always be found.
            (self.folder / "program").mkdir(exist_ok=True)
            (self.folder / "results").mkdir(exist_ok=True)
            script = self.folder / "program" / "script.py"
            script.write_text(
                "import sys\n"
                "sys.path.insert(0, sys.argv[1] + '/../')\n"
                "import pth_parameter_mgr\n"
                "print(pth_parameter_mgr.getEpoch())\n"
            )
            train_dir = str(self.folder / train_dir) if train_dir else ""
            ended = subprocess.run(
                [sys.executable, "-B", str(script), train_dir], env=_CLEAN, capture_output=True, text=True, timeout=120,
            )  # fmt: skip
            self.assertEqual(ended.stdout.strip(), answer, ended.stderr)


class ScheduleTest(Case):
    """The learning rate schedule in FabricModel."""

    DATA = [(torch.eye(4)[i % 4], i % 4) for i in range(16)]

    def train(self, model, optimizer, test_data, folder):
        with contextlib.redirect_stderr(io.StringIO()) as log:
            pliant.FabricModel(
                model, lambda: (self.DATA, test_data), torch.nn.functional.cross_entropy, optimizer,
            ).train(4, 4, checkpoint_dir=str(self.folder / folder))  # fmt: skip
        return log.getvalue()

    def test_it_is_registered(self):
        """Only the schedule of the optimizer that trains. ElasticTest shows the effect."""
        import pth_parameter_mgr
        from pliant._loop import Elastic

        with self.job({"learningRatePolicy": "inverse"}):
            model = torch.nn.Linear(4, 4)
            optimizer = pth_parameter_mgr.getOptimizer(model)
            schedule = pth_parameter_mgr.getLearningRate(optimizer)
            pth_parameter_mgr.getLearningRate(pth_parameter_mgr.getOptimizer(model))
            with mock.patch.object(Elastic, "register", autospec=True) as register:
                self.train(model, optimizer, None, "registered")
        register.assert_called_once_with(mock.ANY, "learning rate", schedule)

    def test_a_plateau_looks_at_evaluations(self):
        import pth_parameter_mgr

        for test_data, steps, line in (
            (self.DATA, 4, None),
            (None, 0, "policy plateau is not used"),
        ):
            with self.job({"learningRatePolicy": "plateau"}):
                model = torch.nn.Linear(4, 4)
                optimizer = pth_parameter_mgr.getOptimizer(model)
                schedule = pth_parameter_mgr.getLearningRate(optimizer)
                log = self.train(model, optimizer, test_data, f"plateau-{steps}")
            self.assertEqual(schedule.last_epoch, steps)
            self.assertEqual("policy plateau is not used" in log, line is not None)

    def test_a_policy_that_nobody_asks_for_is_reported(self):
        import pth_parameter_mgr

        for policy, told in (("cosine", True), ("fixed", False)):
            with self.job({"learningRatePolicy": policy}):
                model = torch.nn.Linear(4, 4)
                log = self.train(model, pth_parameter_mgr.getOptimizer(model), None, policy)
            self.assertEqual("the learning rate's policy cosine is not used" in log, told, log)

    def test_a_batch_that_contradicts_the_job_is_refused_by_the_model_too(self):
        with self.job(**JOB):
            model = torch.nn.Linear(4, 4)
            with self.assertRaises(InvalidProgram) as caught:
                self.train(model, torch.optim.SGD(model.parameters(), lr=0.1), None, "batch")
        self.assertRegex(str(caught.exception), "32.*128")
        with (
            self.job(PLIANT_LOGICAL_SHARDS="0"),
            self.assertRaises(InvalidProgram) as caught,
        ):
            self.train(model, torch.optim.SGD(model.parameters(), lr=0.1), None, "shards")
        self.assertIn("PLIANT_LOGICAL_SHARDS is '0': it must be a whole", str(caught.exception))


class ElasticTest(ScenarioTest):
    """A script in real processes: learners join and die, and the parameters equal those of one learner alone."""

    def test_a_script_that_asks_for_everything(self):
        program = str(pathlib.Path(__file__).with_name("compatibility_program.py"))
        for policy, more in (
            ("inverse", {"PLIANT_PARAMETER_GAMMA": "0.5"}),
            ("plateau", {"PLIANT_PARAMETER_GAMMA": "0.5", "PLIANT_PARAMETER_PATIENCE": "0"}),
        ):
            with self.subTest(policy):
                self.resize_and_kill([sys.executable, "-B", program, policy], {
                    "FABRIC_HOME": "/usr/local",
                    "PLIANT_PARAMETER_EPOCHS": "14",
                    "PLIANT_PARAMETER_LEARNING_RATE": "0.3",
                    "PLIANT_PARAMETER_LEARNING_RATE_POLICY": policy,
                    **more,
                })  # fmt: skip

    def resize_and_kill(self, program, environment):
        job, learners = self.running_job(
            [0], program=program, epochs=14, shard_milliseconds=20, environment=environment
        )
        job.wait_for_step(17)  # the schedule has been stepped twice
        job.set_pace(250)
        learners += [job.start_learner(1), job.start_learner(2)]
        job.plan(learners)
        job.wait_for_members(learners)
        learners[0].kill()  # rank 0
        job.wait_for_members(learners[1:])
        self.assert_completes(job, learners[1:])
        rates = {
            learner.log.read_text().rpartition("learning rate ")[2] for learner in learners[1:]
        }
        self.assertEqual(len(rates), 1, "they agree on it")
        self.assertLess(float(rates.pop()), 0.3)
        results = job.folder / "checkpoints" / UID / "results"
        self.assertTrue((results / "model" / "model.pt").exists())
        lines = (results / "log" / "evaluation-metrics.txt").read_text().splitlines()
        self.assertEqual({json.loads(line)["meta"]["training_id"] for line in lines}, {UID})


class MetricsTest(Case):
    def lines(self, folder):
        text = (folder / "evaluation-metrics.txt").read_text()
        self.assertTrue(text.endswith("\n"))
        return [json.loads(line) for line in text.splitlines()]

    def test_a_record_is_a_line(self):
        from emetrics import EMetrics

        self.assertEqual((EMetrics.TEST_GROUP, EMetrics.TRAIN_GROUP), ("test", "train"))
        with mock.patch.dict(
            os.environ, {"LOG_DIR": str(self.folder / "a" / "b"), "TRAINING_ID": "t-1"}
        ):
            with EMetrics.open() as metrics:
                metrics.record(
                    EMetrics.TRAIN_GROUP, 4, {"loss": 0.5, "count": 3, "what": "x", "flag": True}
                )
                metrics.record(
                    "mine", torch.tensor(5), {"loss": torch.tensor(0.25), "all": torch.ones(2)}
                )
            metrics = EMetrics.open()
            metrics.record(EMetrics.TEST_GROUP, 6, {"loss": float("nan")})
            metrics.close()
            metrics.close()
        first, second, third = self.lines(self.folder / "a" / "b")
        self.assertEqual(first["meta"].pop("training_id"), "t-1")
        self.assertGreater(first["meta"].pop("time"), 1e12)
        self.assertEqual(first["meta"], {"rindex": 1})
        self.assertEqual(first["grouplabel"], "train")
        self.assertEqual(first["etimes"]["iteration"], {"type": 2, "value": "4"})
        self.assertRegex(
            first["etimes"]["time_stamp"]["value"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}$"
        )
        self.assertEqual(
            first["values"],
            {"loss": {"type": 3, "value": "0.5"}, "count": {"type": 2, "value": "3"}, "what": {"value": "x"}, "flag": {"value": "True"}},
        )  # fmt: skip
        self.assertEqual((second["meta"]["rindex"], second["grouplabel"]), (2, "mine"))
        self.assertEqual(second["etimes"]["iteration"], {"type": 2, "value": "5"})
        self.assertEqual(
            second["values"],
            {"loss": {"type": 3, "value": "0.25"}, "all": {"value": "tensor([1., 1.])"}},
        )
        self.assertEqual(third["values"], {"loss": {"type": 3, "value": "nan"}})

    @unittest.skipIf(importlib.util.find_spec("numpy") is None, "no numpy")
    def test_numbers_of_numpy_are_numbers(self):
        import numpy
        from emetrics import EMetrics

        with mock.patch.dict(os.environ, {"LOG_DIR": str(self.folder)}), EMetrics.open() as metrics:
            metrics.record(
                "test", numpy.int64(3), {"loss": numpy.float32(0.5), "n": numpy.array(2)}
            )
        (line,) = self.lines(self.folder)
        self.assertEqual(line["etimes"]["iteration"], {"type": 2, "value": "3"})
        self.assertEqual(
            line["values"], {"loss": {"type": 3, "value": "0.5"}, "n": {"type": 2, "value": "2"}}
        )

    def test_the_folder_is_the_first_that_is_named(self):
        from emetrics import EMetrics

        logs, state, temporary = (str(self.folder / name) for name in ("logs", "state", "tmp"))
        for environment, sub_id, expected in (
            ({"LOG_DIR": logs, "JOB_STATE_DIR": state}, None, "logs"),
            ({"JOB_STATE_DIR": state}, None, "state/logs"),
            ({"JOB_STATE_DIR": state}, 7, "state/logs/7"),
            ({}, None, "tmp"),
            ({"LOG_DIR": ""}, "try", "tmp/try"),
        ):
            with (
                self.subTest(environment, sub_id=sub_id),
                mock.patch.dict(os.environ, {**_CLEAN, **environment}, clear=True),
                mock.patch("tempfile.gettempdir", return_value=temporary),
                EMetrics.open(sub_id) as metrics,
            ):
                metrics.record("train", 1, {})
            (line,) = self.lines(self.folder / expected)
            self.assertEqual(line["meta"].get("subid"), None if sub_id is None else str(sub_id))

    def test_one_try_of_several_has_a_list_of_its_tests(self):
        from emetrics import EMetrics

        results = self.folder / "results"
        environment = {"LOG_DIR": str(self.folder), "RESULT_DIR": str(results)}
        with mock.patch.dict(os.environ, environment):
            with EMetrics.open() as metrics:
                metrics.record("test", 1, {"loss": 0.5})
            self.assertFalse((results / "val_dict_list.json").exists())
            with EMetrics.open("3") as metrics:
                metrics.record("train", 1, {"loss": 9})
                metrics.record("test", 1, {"loss": torch.tensor(0.5), "what": torch.ones(2)})
                metrics.record("test", 2, {"loss": 0.25})
        self.assertEqual(
            json.loads((results / "val_dict_list.json").read_text()),
            [{"steps": 1, "loss": 0.5, "what": "tensor([1., 1.])"}, {"steps": 2, "loss": 0.25}],
        )
        self.assertEqual([file.name for file in results.iterdir()], ["val_dict_list.json"])

    def test_a_folder_that_cannot_be_written_costs_the_metrics(self):
        """It also prints one line."""
        from emetrics import EMetrics

        (self.folder / "file").touch()
        environment = {
            "LOG_DIR": str(self.folder / "file" / "x"),
            "RESULT_DIR": str(self.folder / "file"),
        }
        with (
            mock.patch.dict(os.environ, environment),
            contextlib.redirect_stderr(io.StringIO()) as log,
        ):
            for _ in range(2):
                with EMetrics.open("1") as metrics:
                    metrics.record("test", 1, {"loss": 0.5})
                    metrics.record("test", 2, {"loss": 0.5})
        lines = log.getvalue().splitlines()
        self.assertEqual(len(lines), 2, lines)
        self.assertIn(f"pliant: metrics are not written to {self.folder}/file/x/1: ", lines[0])
        self.assertIn(f"pliant: metrics are not written to {self.folder}/file: ", lines[1])

    def test_learners_that_write_at_once_leave_whole_lines(self):
        writer = """
            from emetrics import EMetrics
            for i in range(200):
                with EMetrics.open() as metrics:
                    metrics.record("train", i, {"loss": 0.5, "what": "x" * 3000})
        """
        script = self.folder / "writer.py"
        script.write_text(textwrap.dedent(writer))
        environment = {**_CLEAN, "LOG_DIR": str(self.folder)}
        writers = [
            subprocess.Popen([sys.executable, "-B", str(script)], env=environment) for _ in range(4)
        ]
        self.assertEqual([each.wait(120) for each in writers], [0] * 4)
        self.assertEqual(len(self.lines(self.folder)), 800)

    def test_a_scripts_own_module_is_taken(self):
        (self.folder / "emetrics.py").write_text("EMetrics = 'its own'")
        ended = self.run_script("import emetrics; print(emetrics.EMetrics)")
        self.assertEqual(ended.stdout.strip(), "its own")


class FoldersTest(Case):
    def test_they_are_there_when_a_module_is_imported(self):
        for module in (
            "callbacks",
            "emetrics",
            "fabric_model",
            "pth_parameter_mgr",
            "pyedt.fabric_model",
        ):
            results, logs = self.folder / module / "r" / "s", self.folder / module / "l"
            self.run_script(f"import {module}", RESULT_DIR=str(results), LOG_DIR=str(logs))
            self.assertTrue(results.is_dir() and logs.is_dir(), module)

    def test_they_are_there_when_callbacks_and_loggers_are_called(self):
        """Also if they were removed meanwhile."""
        import callbacks

        results, logs = self.folder / "results", self.folder / "logs"
        seen = []

        def look(what):
            seen.append((what, results.is_dir(), logs.is_dir()))
            for folder in (results, logs):
                folder.rmdir()

        class Looks(callbacks.Callback):
            def on_train_begin(self):
                look("begins")

        class Logger(callbacks.LoggerCallback):
            def on_train_end(self):
                look("ends")

        data = [(torch.eye(4)[i % 4], i % 4) for i in range(16)]
        model = torch.nn.Linear(4, 4)
        with self.job(RESULT_DIR=str(results), LOG_DIR=str(logs)):
            pliant.FabricModel(
                model, lambda: (data, None), torch.nn.functional.cross_entropy,
                torch.optim.SGD(model.parameters(), lr=0.1), driver_logger=Logger(), user_callback=Looks(),
            ).train(1, 4, checkpoint_dir=str(self.folder / "checkpoints"))  # fmt: skip
        self.assertEqual(seen, [("begins", True, True), ("ends", True, True)])
        self.assertTrue((results / "model" / "model.pt").exists())


class SeedTest(Case):
    DRAW = """
        import random, sys
        {before}
        import {module}
        {after}
        import numpy, torch
        print([random.random(), numpy.random.random(), torch.rand(()).item(), torch.nn.Linear(1, 1).weight.item()])
    """

    def draw(self, module, before="", after="", **environment):
        script = textwrap.dedent(self.DRAW).format(before=before, module=module, after=after)
        return self.run_script(script, **environment).stdout

    def test_two_runs_agree(self):
        first = self.draw("fabric_model")
        for name, module, changes, same in (
            ("again", "fabric_model", {}, True),
            ("torch before", "fabric_model", {"before": "import torch"}, True),
            ("the newer name", "pyedt.fabric_model", {}, True),
            ("parameters", "pth_parameter_mgr", {}, True),
            ("the job's default", "fabric_model", {"PLIANT_SEED": "0"}, True),
            ("another job", "fabric_model", {"PLIANT_SEED": "1"}, False),
            ("a large seed", "fabric_model", {"PLIANT_SEED": "18446744073709551615"}, False),
            ("callbacks alone seed nothing", "callbacks", {}, False),
        ):
            with self.subTest(name):
                self.assertEqual(self.draw(module, **changes) == first, same)

    def test_a_seed_that_the_script_sets_stays(self):
        own = "import torch; torch.manual_seed(7)"
        alone = self.run_script(f"{own}; print(torch.rand(()).item())").stdout
        for after in (own, f"{own}; import pth_parameter_mgr; import pyedt.fabric_model"):
            ended = self.run_script(f"import fabric_model; {after}; print(torch.rand(()).item())")
            self.assertEqual(ended.stdout, alone)

    def test_torch_is_not_imported_for_keras(self):
        """Nor for a script that uses TensorFlow."""
        for name in ("tensorflow", "keras"):
            (self.folder / f"{name}.py").write_text(
                "class Seeds:\n"
                "    def set_seed(self, seed): print('seeded', seed)\n"
                "    set_random_seed = set_seed\n"
                "random = utils = Seeds()\n"
            )
            script = f"import {name}, fabric_model, sys; print('torch' in sys.modules)"
            said = self.run_script(script, PLIANT_SEED=str((1 << 32) + 5)).stdout.split()
            self.assertEqual(said, ["seeded", "4", "False"])

    def test_the_job_says_what_is_wrong_with_its_seed(self):
        for text in ("x", "1.5", "-1", "18446744073709551616", "²"):
            with (
                self.job(PLIANT_SEED=text),
                mock.patch.object(_accelerator, "_seeded", False),
                self.assertRaisesRegex(
                    InvalidProgram, "PLIANT_SEED is .* a whole number from 0 to"
                ),
            ):
                _accelerator.seed_once()


class ScriptTest(Case):
    def test_a_script_that_seeds_nothing_trains_the_same_twice(self):
        """As in the old product's tutorial: no seed, its folder on sys.path, its modules."""
        script = """
            import os, sys
            import torch
            sys.path.append(os.path.join(os.getenv("FABRIC_HOME"), "libs", ""))
            from fabric_model import FabricModel
            sys.path.insert(0, "" + "/../")
            import pth_parameter_mgr
            data = [(torch.eye(4)[i % 4], i % 4) for i in range(16)]
            model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 4))
            optimizer = pth_parameter_mgr.getOptimizer(model)
            FabricModel(model, lambda: (data, None), torch.nn.functional.cross_entropy, optimizer).train(
                pth_parameter_mgr.getEpoch(), pth_parameter_mgr.getTrainBatchSize(), 2
            )
        """
        hashes = []
        for run, seed in (("a", "0"), ("b", "0"), ("c", "1")):
            checkpoints = self.folder / run
            self.run_script(
                script, FABRIC_HOME="/usr/local", PLIANT_SEED=seed, PLIANT_CHECKPOINT_DIR=str(checkpoints),
                PLIANT_PARAMETER_EPOCHS="2", PLIANT_PARAMETER_TRAIN_BATCH_SIZE="4",
            )  # fmt: skip
            manifest = json.loads((checkpoints / "local" / "final" / "manifest.json").read_text())
            hashes.append(manifest["parametersSha256"])
        self.assertEqual(hashes[0], hashes[1])
        self.assertNotEqual(hashes[0], hashes[2])


if __name__ == "__main__":
    unittest.main(verbosity=2)
