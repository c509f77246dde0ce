"""A Keras model trained by learners that join, leave and crash ends with the parameters of an undisturbed run. Also
tests how its final model is loaded, and errors. Runs on the backend that KERAS_BACKEND names."""

import csv
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from harness import UID, ScenarioTest

from pages import script_of

FOLDER = pathlib.Path(__file__).resolve().parent
PROGRAM = str(FOLDER / "keras_program.py")
BACKEND = os.environ.get("KERAS_BACKEND", "tensorflow")


def setUpModule():
    if importlib.util.find_spec("keras") is None:
        raise unittest.SkipTest("Keras is not installed")
    import pliant  # noqa: F401  (before keras: it sets the number of threads)


class KerasElasticTest(ScenarioTest):
    def test_a_cnn_is_resized_and_loses_a_learner(self):
        job, learners = self.running_job(
            [0, 1], program=[sys.executable, "-B", PROGRAM, "fit"], epochs=8, shard_milliseconds=250
        )
        learners.append(job.start_learner(2))
        job.plan(learners)
        job.wait_for_members(learners)
        learners[0].kill()  # rank 0
        job.wait_for_members(learners[1:])
        self.report_pauses(job)
        self.assert_completes(job, learners[1:])
        tests = [line for line in job.metric_lines() if line["kind"] == "test"]
        self.assertEqual([line["epoch"] for line in tests], list(range(8)))
        self.assertGreater(tests[-1]["accuracy"], 0.9, "it learns")
        self.assert_logs(job, learners)
        late = job.start_learner(3)
        self.assertEqual(late.exit_code(), 0, "one that comes after the end has the final model")
        self.assertIn(self.history, late.log.read_text(), "and the history")
        self.assert_plain_keras_loads(job.folder / "checkpoints" / UID / "final")

    def assert_logs(self, job, learners):
        """By callbacks of Keras: equal histories, and files that one learner at a time writes."""
        logs = [job.folder / "alone.log", *(learner.log for learner in learners[1:])]
        histories = {re.search("^history .*$", log.read_text(), re.MULTILINE)[0] for log in logs}
        self.assertEqual(len(histories), 1, histories)
        (self.history,) = histories
        folder = job.folder / "checkpoints"
        with (folder / "log.csv").open() as file:
            rows = list(csv.DictReader(file))
        self.assertLessEqual({row["epoch"] for row in rows}, {str(epoch) for epoch in range(8)})
        self.assertEqual(len({row["epoch"] for row in rows}), len(rows), "no line twice")
        self.assertGreaterEqual(len(rows), 7, "who dies may not write its last line")
        history = json.loads(self.history.removeprefix("history "))
        for row in rows:
            self.assertEqual(float(row["val_top2"]), history["val_top2"][int(row["epoch"])])
        self.assertTrue((folder / "best.weights.h5").exists())

    def assert_plain_keras_loads(self, final):
        command = [
            sys.executable,
            "-B",
            str(FOLDER / "keras_load.py"),
            str(final / "model.safetensors"),
        ]
        said = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertGreater(float(said.stdout.split()[-1]), 0.9)

    @unittest.skipIf(BACKEND == "jax", "JAX has no tape")
    def test_own_gradients_from_a_checkpoint(self):
        job, learners = self.running_job(
            [0], program=[sys.executable, "-B", PROGRAM, "own"], epochs=4, shard_milliseconds=250
        )
        job.wait_for_step(7)  # it leaves after step 8, the last of the epoch: those that resume first evaluate
        job.plan([])
        self.assert_drained(learners[0])
        resumed = job.start_learners([1, 2])
        job.plan(resumed)
        job.wait_for_members(resumed)
        self.assert_resumed_at(resumed, learners[0].termination()["step"])
        self.assert_completes(job, resumed)


class KerasPageTest(unittest.TestCase):
    def assert_trains(self, script, said):
        with tempfile.TemporaryDirectory(prefix="pliant-keras-page-") as folder:
            ran = subprocess.run(
                [sys.executable, "-B", "-c", script], cwd=folder, capture_output=True, text=True, timeout=300
            )
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertRegex(ran.stdout, said)
            self.assertTrue(pathlib.Path(folder, "checkpoints/local/final/model.safetensors").exists())

    def test_the_scripts_of_the_page_train(self):
        of_fit = script_of("keras")
        model, _ = of_fit.split("model.compile", 1)
        self.assert_trains(of_fit, r"accuracy (0\.\d+|1\.0)")
        self.assert_trains(model + script_of("keras", 1), "40 steps; the model is in")


class KerasLoopTest(unittest.TestCase):
    """One learner in this process: what a loop may do, and the errors if it does something else."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-keras-")
        self.addCleanup(scratch.cleanup)
        self.folders = (str(pathlib.Path(scratch.name, str(i))) for i in range(100))

    def attach(self, data=None, folder=None, optimizer=None, model=None, **settings):
        import pliant

        import keras  # isort: skip

        keras.utils.set_random_seed(3)
        layers = keras.layers
        self.model = model or keras.Sequential(
            [layers.Dense(8), layers.BatchNormalization(), layers.Dropout(0.2), layers.Dense(3)]
        )
        settings = {
            "epochs": 2,
            "batch_size": 16,
            "logical_shards": 4,
            "loss": self.loss(),
            **settings,
        }
        self.elastic = pliant.attach(
            self.model, optimizer or keras.optimizers.AdamW(0.01), data or self.data(),
            checkpoint_dir=folder or next(self.folders), **settings,
        )  # fmt: skip
        self.addCleanup(self.elastic.close)
        return self.elastic

    def loss(self):
        import keras

        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def data(self, count=56, scale=1.0):
        import numpy as np

        inputs = np.random.default_rng(1).normal(size=(count, 6)).astype("float32") * scale
        return inputs, (inputs.sum(1) > 0).astype("int32")

    def train(self, stop_at=None, **how):
        """The variables at the end, or None if it stopped earlier."""
        for step in self.elastic.steps():
            for batch in step:
                step.train(batch)
            step.commit(**how)
            if step.number == stop_at:
                self.elastic.close()
                return None
        return [variable.numpy() for variable in self.model.weights]

    def assert_same(self, first, second):
        for a, b in zip(first, second, strict=True):
            self.assertEqual(a.tobytes(), b.tobytes())

    def test_continues_from_a_checkpoint(self):
        self.attach()
        expected = self.train(max_norm=1.0)
        folder = next(self.folders)
        with mock.patch.dict(os.environ, {"PLIANT_CHECKPOINT_EVERY_STEPS": "1"}):
            self.attach(folder=folder)
            self.assertIsNone(self.train(stop_at=5, max_norm=1.0))
        self.attach(folder=folder)
        self.assert_same(self.train(max_norm=1.0), expected)
        self.attach(folder=folder)
        self.assert_same(self.train(), expected)  # the training is complete: the final model is loaded

    def test_a_scaled_loss_is_part_of_the_state(self):
        import keras
        import numpy as np

        def optimizer():
            return keras.optimizers.LossScaleOptimizer(
                keras.optimizers.SGD(0.1), initial_scale=2.0**126, dynamic_growth_steps=3
            )

        self.attach(optimizer=optimizer(), epochs=12)
        expected = self.train()
        self.assertTrue(all(np.isfinite(variable).all() for variable in expected))
        folder = next(self.folders)
        with mock.patch.dict(os.environ, {"PLIANT_CHECKPOINT_EVERY_STEPS": "1"}):
            self.attach(optimizer=optimizer(), epochs=12, folder=folder)
            self.train(stop_at=20)
        self.attach(optimizer=optimizer(), epochs=12, folder=folder)
        self.assert_same(self.train(), expected)

    def test_workers_load_what_is_loaded_in_place(self):
        data = [pair for pair in zip(*self.data(), strict=True)]
        self.attach(data)
        expected = self.train()
        self.attach(data, num_workers=2)
        in_place = self.elastic._train.load
        with mock.patch.object(self.elastic._train, "load", wraps=in_place) as load:
            self.assert_same(self.train(), expected)
        self.assertLess(load.call_count, 4, "the others were loaded ahead")

    def test_streams_and_an_early_end(self):
        pairs = [pair for pair in zip(*self.data(), strict=True)]

        class Cards:
            def __len__(self):
                return len(pairs)

            def stream(self, shard, start):
                yield from pairs[shard.index + start * shard.count :: shard.count]

        def run(folder, stop_at=None, **settings):
            import pliant

            self.attach(Cards(), folder=folder, test_data=Cards(), epochs=9, **settings)
            self.elastic.add_callback(pliant.EarlyStopping(patience=1, min_delta=0.1))
            self.elastic.add_callback(pliant.TensorBoard())
            lines = []
            self.elastic.add_callback(pliant.LambdaCallback(on_log=lines.append))
            return self.train(stop_at=stop_at), self.elastic.ending, lines

        folder = next(self.folders)
        expected, ending, lines = run(folder)
        self.assertEqual(ending.reason, "Completed")
        self.assertLess(ending.step, 9 * 4)
        rates = [line["learningRate"] for line in lines if line["kind"] == "train"]
        self.assertAlmostEqual(rates[-1], 0.01, places=6)
        self.assert_events(pathlib.Path(folder, "local", "tensorboard"), ending.step)
        folder = next(self.folders)
        with mock.patch.dict(os.environ, {"PLIANT_CHECKPOINT_EVERY_STEPS": "1"}):
            run(folder, stop_at=5)
        again, ending_again, _ = run(folder, num_workers=1)
        self.assertEqual(ending_again.step, ending.step)
        self.assert_same(again, expected)

    def assert_events(self, folder, step):
        """Reads the events with TensorBoard itself, which the image has."""
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(folder))
        events.Reload()
        self.assertEqual([each.step for each in events.Scalars("loss/test")][-1], step)
        self.assertIn("learning_rate", events.Tags()["scalars"])

    def test_fabric_model(self):
        import pliant

        import keras  # isort: skip

        keras.utils.set_random_seed(3)
        layers = keras.layers
        model = keras.Sequential([layers.Input((6,)), layers.Dense(3, activation="softmax")])
        results, loss = next(self.folders), "sparse_categorical_crossentropy"
        fabric = pliant.FabricModel(model, lambda: (self.data(), self.data()), loss, "adam")
        with mock.patch.dict(os.environ, {"RESULT_DIR": results}):
            fabric.train(2, 4, 4, checkpoint_dir=next(self.folders))
        again = keras.saving.load_model(pathlib.Path(results, "model", "model.keras"))
        self.assert_same(*([v.numpy() for v in each.weights] for each in (again, model)))
        with self.assertRaisesRegex(pliant.InvalidProgram, "are for PyTorch"):
            pliant.FabricModel(model, None, loss, "adam", fn_test=print)

    def test_a_script_that_seeds_nothing_builds_the_same_model_twice(self):
        """The import of the old product's module sets the job's seed."""
        script = """if True:
            {}
            layer = keras.layers.Dense(1)
            layer.build((None, 1))
            print(float(layer.kernel.numpy()[0, 0]))
        """
        for imports in ("import keras, fabric_model", "import fabric_model, keras"):
            said = []
            for seed in ("0", "0", "5"):
                ended = subprocess.run(
                    [sys.executable, "-B", "-c", script.format(imports)], capture_output=True, text=True,
                    env={**os.environ, "PLIANT_SEED": seed}, timeout=120,
                )  # fmt: skip
                self.assertEqual(ended.returncode, 0, ended.stderr)
                said.append(ended.stdout)
            self.assertEqual(said[0], said[1], imports)
            self.assertNotEqual(said[0], said[2], imports)

    def test_frozen_weights_are_state_that_no_step_carries(self):
        """For example the weights of a backbone. A weight that a forward changes is a buffer, frozen or not."""
        import keras
        from pliant import _native

        def model(seed):
            keras.utils.set_random_seed(seed)
            layers = keras.layers
            backbone = [layers.Input((6,)), layers.Dense(8), layers.BatchNormalization()]
            backbone = keras.Sequential(backbone, name="backbone")
            backbone.trainable = False
            head = [layers.Dense(4, trainable=False), layers.BatchNormalization(), layers.Dense(3)]
            return keras.Sequential([layers.Input((6,)), backbone, *head], name="whole")

        roles = {}

        class Learner:
            def register(self, name, *, role, **_):
                roles.setdefault(role, []).append(name.rpartition("/")[2])

        self.attach(model=model(3))._state.register(Learner())
        self.assertEqual(roles[_native.PARAMETER], ["gamma", "beta", "kernel", "bias"])
        self.assertEqual(roles[_native.BUFFER], ["moving_mean", "moving_variance"] * 2)
        self.assertEqual(
            roles[_native.STATE][:6], ["kernel", "bias", "gamma", "beta", "kernel", "bias"]
        )
        self.attach(model=model(3))
        expected = self.train()
        folder = next(self.folders)
        with mock.patch.dict(os.environ, {"PLIANT_CHECKPOINT_EVERY_STEPS": "1"}):
            self.attach(folder=folder, model=model(3))
            self.train(stop_at=5)
        self.attach(folder=folder, model=model(4))  # with other weights until the state is loaded
        self.assert_same(self.train(), expected)

    def train_twice(self):
        for step in self.attach().steps():
            for batch in step:
                step.train(batch)
                step.train(batch)

    def change_what_is_frozen(self):
        import keras

        frozen = keras.layers.Dense(4, trainable=False)
        model = keras.Sequential([keras.layers.Input((6,)), frozen, keras.layers.Dense(3)])
        for step in self.attach(model=model).steps():
            for batch in step:
                step.train(batch)
            step.commit()
            frozen.kernel.assign(keras.ops.convert_to_numpy(frozen.kernel) * 0.9)

    def images(self):
        import numpy as np

        images = np.random.default_rng(2).normal(size=(40, 4, 4, 1)).astype("float32")
        return images, np.eye(2, dtype="float32")[(images.mean((1, 2, 3)) > 0).astype(int)]

    def flow(self, **settings):
        """Data made as scripts of the old product make them."""
        from keras.src.legacy.preprocessing.image import ImageDataGenerator  # tf.keras has it

        return ImageDataGenerator(**settings).flow(*self.images(), batch_size=7)

    def test_an_image_iterator_gives_its_samples(self):
        """The random numbers of a sample depend only on the seed, the epoch and its index."""
        from pliant._keras.batches import Batches, size_of
        from pliant._learner import Plan

        flow = self.flow(horizontal_flip=True)
        batches = Batches(flow, size_of(flow, "training"), None)
        self.assertEqual(batches.size, 40, "of samples, not of batches")
        batches.follow(Plan(8, 4, 5, 10, seed=5))
        images, truth = batches.load(range(40), epoch=1)
        for index in reversed(range(40)):
            self.assert_same(batches.load([index], epoch=1), (images[[index]], truth[[index]]))
        plain, labels = self.images()
        self.assert_same([truth], [labels])
        flipped = 0
        for image, other in zip(images, plain, strict=True):
            same = image.tobytes() == other.tobytes()
            self.assertTrue(same or image.tobytes() == other[:, ::-1].tobytes())
            flipped += not same
        self.assertTrue(5 < flipped < 35, flipped)
        self.assertNotEqual(batches.load(range(40), epoch=2)[0].tobytes(), images.tobytes())

    def test_fabric_model_of_image_iterators(self):
        import pliant

        import keras  # isort: skip

        def train(data):
            keras.utils.set_random_seed(3)
            layers = keras.layers
            model = keras.Sequential(
                [layers.Input((4, 4, 1)), layers.Flatten(), layers.Dense(2, activation="softmax")]
            )
            fabric = pliant.FabricModel(model, lambda: data, "categorical_crossentropy", "adam")
            fabric.train(2, 4, 4, checkpoint_dir=next(self.folders))
            return [variable.numpy() for variable in model.weights]

        flow = self.flow()
        self.assert_same(train((flow, flow)), train((self.images(), self.images())))

    def test_operations_need_be_deterministic_in_bitwise_mode_only(self):
        from pliant._keras.engines import engine_of_backend

        for mode, bitwise in (("Statistical", False), ("Bitwise", True)):
            with (
                mock.patch.dict(os.environ, {"PLIANT_REPRODUCIBILITY": mode}),
                mock.patch.object(engine_of_backend(), "settle") as settle,
            ):
                self.attach()
            settle.assert_called_once_with(mock.ANY, bitwise=bitwise)

    def test_the_doctor_finds_keras_enough(self):
        command = [sys.executable, "-B", "-m", "pliant", "doctor"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertIn("3 steps alone with keras", ended.stdout)

    def test_a_wrong_program_is_refused_with_the_reason(self):
        import keras
        from pliant.errors import PliantError

        class Made(keras.utils.PyDataset):
            def __len__(self):
                return 4

        nothing = [[0.0] * 6] * 9
        cases = {
            "no trainable variable has a gradient": lambda: list(next(self.attach().steps())),
            "have no __len__ and __getitem__": lambda: self.attach(iter(nothing)),
            "are a PyDataset .* give the arrays": lambda: self.attach(Made()),
            "differ in length: \\[48, 56\\]": lambda: self.attach((self.data()[0], self.data(48)[1])),
            "no_such_loss": lambda: self.attach(loss="no_such_loss"),
            "step 0 cannot be taken, its loss is nan": lambda: (self.attach(self.data(scale=float("nan"))), self.train()),
            "must be a pair": lambda: (self.attach((*self.data(), self.data()[1])), self.train()),
            "need loss or evaluate": lambda: self.attach(loss=None, test_data=self.data()),
            "30 is not a positive multiple of logicalShards \\(8\\)": lambda: self.attach(batch_size=30, logical_shards=8),
            "overlap is for PyTorch models, and this is a Keras model": lambda: self.attach(overlap=False),
            "loss_reduction is for PyTorch models": lambda: self.attach(loss_reduction="sum"),
            "batch_size is '16': it must be a whole number from 1": lambda: self.attach(batch_size="16"),
            "the optimizer: .*no_such": lambda: self.attach(optimizer="no_such"),
            "evaluate returned None": lambda: (self.attach(test_data=self.data(), evaluate=lambda _: None), self.train()),
            "the current batch was trained already: call step.train": self.train_twice,
            "the weight .*kernel is frozen, but was changed": self.change_what_is_frozen,
        }  # fmt: skip
        for message, do in cases.items():
            with self.subTest(message), self.assertRaisesRegex(PliantError, message):
                do()
        self.attach()
        self.assertIsNotNone(self.train(), "and none of them is left open")


if __name__ == "__main__":
    unittest.main(verbosity=2)
