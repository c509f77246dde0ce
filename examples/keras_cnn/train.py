"""A small Keras CNN with BatchNorm, dropout and augmentation that recognises stripes of four widths.

Without a cluster: python train.py        (KERAS_BACKEND=tensorflow, jax or torch)
"""

import argparse

import numpy as np
import pliant

import keras  # isort: skip  (after pliant, which sets the number of threads)


def stripes(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy images of 16 x 16 pixels with stripes, and a label for the width of the stripes."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % 4
    waves = np.sin(np.arange(16) * (labels[:, None] + 1.0) / 2 + random.uniform(0, 6, (count, 1)))
    images = waves[:, :, None, None] + random.normal(0, 0.7, (count, 16, 16, 1))
    return images.astype(np.float32), labels.astype(np.int32)


def cnn(width: int) -> keras.Model:
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Input((16, 16, 1)),
            layers.RandomFlip("horizontal"),
            layers.RandomTranslation(0.1, 0.1),
            layers.Conv2D(width, 3, padding="same"),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.MaxPooling2D(),
            layers.Conv2D(2 * width, 3, padding="same"),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.GlobalAveragePooling2D(),
            layers.Dropout(0.2),
            layers.Dense(4, activation="softmax"),
        ],
        name="cnn",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument(
        "--batch-size", type=int, help="size of the global batch (default: the job's, else 256)"
    )
    options = parser.parse_args()

    keras.utils.set_random_seed(0)
    model = cnn(options.width)
    optimizer = keras.optimizers.AdamW(learning_rate=3e-3)

    elastic = pliant.attach(
        model, optimizer, stripes(options.samples, 1), epochs=options.epochs, batch_size=options.batch_size,
        loss="sparse_categorical_crossentropy", test_data=stripes(400, 2),
    )  # fmt: skip
    elastic.add_callback(pliant.LambdaCallback(on_log=print))
    for step in elastic.steps():
        for batch in step:
            step.train(batch)
        step.commit()
    print(f"done {elastic.ending.parameters_sha256}")


if __name__ == "__main__":
    main()
