"""A user's Keras script, as small as the tests need it: `keras_program.py fit|own`.

It has everything whose result could depend on which learner computes it: BatchNorm, dropout, augmentation layers, data
that draw random numbers from python and numpy, an embedding, a schedule. TOY_EPOCHS sets the number of epochs.
"""

import json
import os
import pathlib
import random
import sys

import numpy as np
import pliant

import keras  # isort: skip

EPOCHS = int(os.environ.get("TOY_EPOCHS", "2"))


class Images:
    """Stripes at one of four angles, shifted at random."""

    def __init__(self, count, augment):
        self.count, self.augment = count, augment

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        label = index % 4
        image = np.random.default_rng(index).normal(0, 0.3, (8, 8, 1)).astype(np.float32)
        image += np.sin(np.arange(8) * (label + 1.0)).reshape(8, 1, 1)
        if self.augment:
            image = np.roll(image, int(np.random.randint(-1, 2)), 1)
            image += 0.05 * random.random()
        return (image.astype(np.float32), np.int32([index % 7])), np.int32(label)


def cnn():
    layers = keras.layers
    image = layers.Input((8, 8, 1))
    word = layers.Input((1,), dtype="int32")
    y = layers.RandomFlip("horizontal")(image)
    y = layers.Conv2D(8, 3, padding="same", kernel_regularizer=keras.regularizers.L2(1e-4))(y)
    y = layers.BatchNormalization(momentum=0.9)(y)
    y = layers.MaxPooling2D()(layers.ReLU()(y))
    y = layers.Dropout(0.2)(layers.Flatten()(y))
    y = layers.Concatenate()([y, layers.Flatten()(layers.Embedding(7, 4)(word))])
    return keras.Model([image, word], layers.Dense(4)(y))


def main(kind):
    keras.utils.set_random_seed(5)
    model = cnn()
    if kind == "fit":
        return fit(model)
    schedule = keras.optimizers.schedules.CosineDecay(0.05, 100)
    optimizer = keras.optimizers.SGD(schedule, momentum=0.9, global_clipnorm=1.0, use_ema=True)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    train = Images(250, augment=True)
    elastic = pliant.attach(
        model, optimizer, train, epochs=EPOCHS, loss=loss, test_data=Images(50, augment=False)
    )
    for step in elastic.steps():
        for batch in step:
            step.backward(*own_gradients(model, loss, batch))
        step.commit()
    print(f"done {elastic.ending.parameters_sha256}")


def fit(model):
    """With callbacks that decide, and others that write."""
    import pliant.keras

    folder = pathlib.Path(os.environ["PLIANT_CHECKPOINT_DIR"])
    model.compile(
        keras.optimizers.SGD(0.05, momentum=0.9, global_clipnorm=1.0, use_ema=True),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(2, name="top2")],
    )
    callbacks = keras.callbacks
    history = pliant.keras.fit(
        model, Images(250, augment=True), epochs=EPOCHS, validation_data=Images(50, augment=False), verbose=2,
        callbacks=[
            callbacks.EarlyStopping(patience=50, restore_best_weights=True),
            callbacks.LearningRateScheduler(lambda epoch, rate: 0.06 * 0.95**epoch),
            callbacks.ModelCheckpoint(folder / "best.weights.h5", save_best_only=True, save_weights_only=True),
            callbacks.CSVLogger(folder / "log.csv"),
        ],
    )  # fmt: skip
    print("history", json.dumps(history.history, sort_keys=True))


def own_gradients(model, loss, batch):
    """Gradients computed as the documentation of Keras' backend shows."""
    inputs, truth = batch
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            value = loss(truth, model(inputs, training=True)) + sum(model.losses)
        return value, tape.gradient(value, [v.value for v in model.trainable_variables])
    import torch

    value = loss(truth, model(list(inputs), training=True)) + sum(model.losses)
    gradients = torch.autograd.grad(value, [v.value for v in model.trainable_variables])
    return value.detach(), gradients


if __name__ == "__main__":
    main(sys.argv[1])
