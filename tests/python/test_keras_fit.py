"""pliant.keras.fit by one learner in this process: the numbers of model.fit, callbacks, and what is refused. Runs on the
backend that KERAS_BACKEND names. What several learners do is in test_keras.py."""

import csv
import importlib.util
import os
import pathlib
import tempfile
import unittest
from unittest import mock


def setUpModule():
    global keras, np, pliant
    if importlib.util.find_spec("keras") is None:
        raise unittest.SkipTest("Keras is not installed")
    import pliant.keras  # before keras: it sets the number of threads

    import keras
    import numpy as np


class Stop(Exception):
    pass


class KerasFitTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="pliant-keras-fit-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        generator = np.random.default_rng(1)
        self.x = generator.normal(size=(64, 6)).astype("float32")
        self.y = self.x[:, :3].argmax(1).astype("int32")
        self.held_out = (self.x[:20] + 0.3, self.y[:20])

    def model(self, metrics=("accuracy",), loss="sparse_categorical_crossentropy", **compiled):
        keras.utils.set_random_seed(3)
        layers = keras.layers
        made = keras.Sequential(
            [
                keras.Input((6,)),
                layers.Dense(8, activation="relu", kernel_regularizer=keras.regularizers.L2(0.01)),
                layers.Dense(3, activation="softmax"),
            ]
        )
        made.compile(keras.optimizers.Adam(0.02), loss, metrics=list(metrics), **compiled)
        return made

    def fit(self, model, *data, folder="run", **settings):
        given = {"batch_size": 64, "epochs": 4, "verbose": 0, "logical_shards": 4, **settings}
        return pliant.keras.fit(model, *(data or (self.x, self.y)), checkpoint_dir=self.scratch / folder, **given)

    def assert_near(self, found, expected):
        self.assertEqual(set(found), set(expected))
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-6, err_msg=name)

    def assert_as_plain(self, make, *data, folder="run", **settings):
        """A step has all samples, so their order does not matter."""
        expected = make().fit(*(data or (self.x, self.y)), batch_size=64, epochs=4, verbose=0, **settings)
        found = self.fit(make(), *data, folder=folder, **settings)
        self.assert_near(found.history, expected.history)
        self.assertEqual(found.epoch, expected.epoch)

    def test_it_logs_what_plain_fit_logs(self):
        def make():
            top = keras.metrics.SparseTopKCategoricalAccuracy(2, name="top")
            return self.model(["accuracy", top], weighted_metrics=["accuracy"])

        self.assert_as_plain(make, validation_data=self.held_out)
        self.assert_as_plain(make, folder="classes", class_weight={0: 3.0, 1: 1.0, 2: 0.5})
        weights = np.linspace(0.1, 2, 64).astype("float32")
        self.assert_as_plain(make, folder="samples", sample_weight=weights, validation_data=(*self.held_out, weights[:20]))

    def test_several_outputs_have_their_losses(self):
        def make():
            keras.utils.set_random_seed(3)
            inputs = keras.Input((6,))
            hidden = keras.layers.Dense(8, activation="relu")(inputs)
            named = {"kind": keras.layers.Dense(3, activation="softmax", name="kind")(hidden),
                     "size": keras.layers.Dense(1, name="size")(hidden)}  # fmt: skip
            made = keras.Model(inputs, named)
            made.compile(
                "sgd", {"kind": "sparse_categorical_crossentropy", "size": "mse"}, loss_weights={"kind": 1.0, "size": 0.5},
                metrics={"kind": ["accuracy"], "size": ["mae"]},
            )  # fmt: skip
            return made

        truth = {"kind": self.y, "size": self.x[:, :1]}
        self.assert_as_plain(make, self.x, truth, validation_data=(self.x[:20], {k: v[:20] for k, v in truth.items()}))

    def test_the_last_samples_validate(self):
        with mock.patch.object(pliant.keras, "begin", side_effect=Stop) as begin:
            with self.assertRaises(Stop):
                self.fit(self.model(), validation_split=0.25)
        (_, _, _, train, settings, _), _ = begin.call_args
        np.testing.assert_array_equal(train[0], self.x[:48])
        np.testing.assert_array_equal(settings.test_data[1], self.y[48:])

    def test_a_batch_has_32_samples_unless_the_job_says_so(self):
        for job, expected in (({}, 32), ({"PLIANT_GLOBAL_BATCH_SIZE": "16"}, None)):
            with (
                mock.patch.dict(os.environ, job),
                mock.patch.object(pliant.keras, "begin", side_effect=Stop) as begin,
                self.assertRaises(Stop),
            ):
                self.fit(self.model(), batch_size=None)
            self.assertEqual(begin.call_args.args[4].batch_size, expected)

    def test_early_stopping_puts_the_best_weights_back(self):
        """The held-out data have wrong labels, so they soon get worse."""
        wrong = (self.x[:20], (self.y[:20] + 1) % 3)

        def early():
            return keras.callbacks.EarlyStopping(patience=2, restore_best_weights=True, start_from_epoch=1)

        plain = self.model()
        expected = plain.fit(self.x, self.y, batch_size=64, epochs=30, verbose=0, validation_data=wrong, callbacks=[early()])
        own = self.model()
        found = self.fit(own, epochs=30, validation_data=wrong, callbacks=[early()])
        self.assertLess(len(found.epoch), 30)
        self.assert_near(found.history, expected.history)
        for mine, each in zip(own.get_weights(), plain.get_weights(), strict=True):
            np.testing.assert_allclose(mine, each, rtol=1e-4, atol=1e-5)
        final = pliant_final(self.scratch / "run")
        for mine, each in zip(sorted(map(str, final.values())), sorted(map(str, own.get_weights())), strict=True):
            self.assertEqual(mine, each, "the final model has them, too")

    def test_the_statistics_of_batch_normalization_belong_to_the_best_weights(self):
        layers = keras.layers
        keras.utils.set_random_seed(3)
        model = keras.Sequential([keras.Input((6,)), layers.Dense(8), layers.BatchNormalization(), layers.Dense(3)])
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        kept = []
        early = keras.callbacks.EarlyStopping(monitor="loss", patience=1, min_delta=10.0, restore_best_weights=True)
        first = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, _: epoch or kept.extend(model.get_weights()))
        self.fit(model, epochs=5, batch_size=16, callbacks=[first, early])
        final = pliant_final(self.scratch / "run")
        for mine, each in zip(model.get_weights(), kept, strict=True):
            self.assertEqual(mine.tobytes(), each.tobytes(), "those of the first epoch")
        self.assertEqual(sorted(map(str, final.values())), sorted(map(str, kept)), "also in the final model")

    def test_a_callback_may_stop_within_an_epoch(self):
        class Stops(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                self.model.stop_training = self.model.optimizer.iterations == 6

        steps = []
        told = pliant.LambdaCallback(on_train_batch_end=lambda step: steps.append(step.number))
        history = self.fit(
            self.model(), epochs=5, batch_size=16, callbacks=[Stops(), told], validation_data=self.held_out
        )
        self.assertEqual((steps, history.epoch, len(history.history["loss"])), (list(range(6)), [0, 1], 2))

    def test_a_training_that_is_complete_has_its_history(self):
        expected = self.fit(self.model())
        again = self.fit(self.model())
        self.assertEqual((again.history, again.epoch), (expected.history, expected.epoch))

    def test_metrics_have_their_names_in_trackers(self):
        lines = []
        precision = keras.metrics.SparseTopKCategoricalAccuracy(2, name="top")
        self.fit(self.model([precision]), epochs=1, batch_size=16, callbacks=pliant.LambdaCallback(on_log=lines.append))
        self.assertEqual((set(lines[-1]["metrics"]), lines[-1]["sums"]), ({"top"}, {}))
        self.assertTrue(0 < lines[-1]["metrics"]["top"] <= 1)

    def test_a_run_that_resumes_continues_its_callbacks_and_its_history(self):
        def callbacks(*more):
            plateau = keras.callbacks.ReduceLROnPlateau(monitor="loss", patience=1, min_delta=10.0, cooldown=1)
            early = keras.callbacks.EarlyStopping(monitor="loss", patience=9, min_delta=10.0)
            return [plateau, early, *more]

        def fails(epoch, logs):
            if epoch == 3:
                raise Stop

        settings = {"epochs": 12, "batch_size": 16, "validation_data": self.held_out, "checkpoint_every_steps": 1}
        expected = self.fit(self.model(), callbacks=callbacks(), **settings)
        self.assertEqual(len(expected.epoch), 10)
        self.assertLess(expected.history["learning_rate"][-1], 0.002)
        broken = keras.callbacks.LambdaCallback(on_epoch_end=fails)
        with self.assertRaises(Stop):
            self.fit(self.model(), folder="again", callbacks=callbacks(broken), **settings)
        found = self.fit(self.model(), folder="again", callbacks=callbacks(), **settings)
        self.assertEqual(found.history, expected.history, "bit for bit")

    def test_callbacks_of_pliant_and_of_the_program(self):
        class Counts(keras.callbacks.Callback):
            """Its count is part of the training's state."""

            def __init__(self):
                super().__init__()
                self.count, self.seen = 0, []

            def state_dict(self):
                return {"count": self.count}

            def load_state_dict(self, state_dict):
                self.count = state_dict["count"]

            def on_train_batch_end(self, batch, logs=None):
                self.count += 1
                self.seen.append((batch, sorted(logs)))

        counts, steps = Counts(), []
        told = pliant.LambdaCallback(on_train_batch_end=lambda step: steps.append(step.number))
        self.fit(self.model(), epochs=2, batch_size=32, callbacks=[counts, told])
        self.assertEqual((counts.count, steps), (4, [0, 1, 2, 3]))
        self.assertEqual(counts.seen, [(batch, ["accuracy", "loss"]) for batch in (0, 1, 0, 1)])

    def test_files_are_written_by_one_learner_at_a_time(self):
        from pliant._keras.fit_callbacks import FitCallbacks, Silent

        file = self.scratch / "log.csv"
        logs = {"loss": 1.0}
        made = []
        for _ in range(2):
            given = [keras.callbacks.CSVLogger(file), keras.callbacks.ModelCheckpoint(self.scratch / "m.keras")]
            made.append(FitCallbacks(given, 0))
            made[-1].follow(self.model(), 9, 1)
            made[-1].call("on_train_begin", {})
        for epoch in range(6):
            for number, learner in enumerate(made):
                learner.write_if(number == epoch // 3)
                learner.call("on_epoch_begin", epoch, {})
                learner.call("on_epoch_end", epoch, logs)
                saver = next(each for each in learner._all if isinstance(each, keras.callbacks.ModelCheckpoint))
                self.assertEqual(isinstance(saver.model, Silent), number != epoch // 3)
        for learner in made:
            learner.call("on_train_end", {})
        with file.open() as opened:
            self.assertEqual([row["epoch"] for row in csv.DictReader(opened)], ["0", "1", "2", "3", "4", "5"])

    def test_a_wrong_program_is_refused_with_the_reason(self):
        from pliant.errors import InvalidProgram

        class Own(keras.Model):
            def __init__(self):
                super().__init__()
                self.dense = keras.layers.Dense(3)

            def call(self, inputs):
                return self.dense(inputs)

            def train_step(self, *data):
                raise AssertionError

        def own():
            made = Own()
            made.compile("sgd", "mse")
            return made

        def masked():
            made = keras.Sequential([keras.layers.Embedding(9, 3, mask_zero=True), keras.layers.Dense(3)])
            made.compile("sgd", "sparse_categorical_crossentropy")
            return made

        callbacks = keras.callbacks
        cases = {
            "the model is a str": lambda: self.fit("model"),
            "the model has no loss: call model.compile": lambda: self.fit(keras.Sequential([keras.layers.Dense(3)])),
            "fit has no loss: model.compile": lambda: self.fit(self.model(), loss="mse"),
            "fit has no argument max_queue_size: it has those": lambda: self.fit(self.model(), max_queue_size=5),
            "steps_per_epoch has no place .* an epoch is a pass": lambda: self.fit(self.model(), steps_per_epoch=5),
            "Own has a train_step of its own": lambda: self.fit(own()),
            "the output has a mask|model's output has a mask": lambda: self.fit(
                masked(), np.zeros((8, 5), "int32"), np.zeros((8, 5), "int32"), batch_size=8
            ),
            "have 800 numbers.*leave out auc": lambda: self.fit(
                self.model([keras.metrics.AUC(name="auc")], loss="categorical_crossentropy"), self.x, np.eye(3)[self.y]
            ),
            "has reduction='sum'": lambda: self.fit(
                self.model(loss=keras.losses.SparseCategoricalCrossentropy(reduction="sum"))
            ),
            "sample_weight and class_weight are given": lambda: self.fit(
                self.model(), sample_weight=self.x[:, 0], class_weight={0: 1.0}
            ),
            "class_weight needs arrays": lambda: self.fit(self.model(), [(self.x[0], self.y[0])], class_weight={0: 1.0}),
            "validation_split is 1.5": lambda: self.fit(self.model(), validation_split=1.5),
            "validation_data must be": lambda: self.fit(self.model(), validation_data=(self.x,)),
            "differ in length": lambda: self.fit(self.model(), self.x, self.y[:5]),
            "epochs is 0": lambda: self.fit(self.model(), epochs=0),
            "callbacks has a int": lambda: self.fit(self.model(), callbacks=[5]),
            "callbacks is a CallbackList": lambda: self.fit(self.model(), callbacks=callbacks.CallbackList()),
            "SwapEMAWeights changes the weights": lambda: self.fit(self.model(), callbacks=callbacks.SwapEMAWeights()),
        }  # fmt: skip
        for index, (message, do) in enumerate(cases.items()):
            with self.subTest(message), self.assertRaisesRegex(InvalidProgram, message):
                do()


def pliant_final(folder):
    from safetensors.numpy import load_file

    (file,) = folder.rglob("final/model.safetensors")
    return load_file(file)


if __name__ == "__main__":
    unittest.main(verbosity=2)
