"""Data and models for public scripts, tiny, made on the spot."""

import json
import pathlib
import pickle
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "python"))

_ACCURACY = '''
import datasets
import evaluate

class Accuracy(evaluate.Metric):
    def _info(self):
        ints = {"predictions": datasets.Value("int64"), "references": datasets.Value("int64")}
        return evaluate.MetricInfo(description="", citation="", features=datasets.Features(ints))

    def _compute(self, predictions, references):
        right = sum(int(a) == int(b) for a, b in zip(predictions, references))
        return {"accuracy": right / len(references)}
'''


def _accuracy(folder: pathlib.Path) -> None:
    """In place of the metric that evaluate.load("accuracy") fetches."""
    (folder / "accuracy").mkdir()
    (folder / "accuracy" / "accuracy.py").write_text(_ACCURACY)


def texts_and_model(folder: pathlib.Path) -> None:
    from transformers_program import gpt2, sentences, tokenizer

    gpt2().save_pretrained(folder / "model")
    tokenizer().save_pretrained(folder / "model")
    (folder / "texts").mkdir()
    for name, texts in (("train", sentences(200)), ("test", sentences(16))):
        lines = [json.dumps({"text": text}) for text in texts]
        (folder / "texts" / f"{name}.json").write_text("\n".join(lines))
    _accuracy(folder)


def tokens(folder: pathlib.Path) -> None:
    """In the files of nanoGPT."""
    import numpy as np

    (folder / "data" / "tiny").mkdir(parents=True)
    for number, part in enumerate(("train", "val")):
        drawn = np.random.default_rng(number).integers(0, 60, 4000).astype(np.uint16)
        drawn.tofile(folder / "data" / "tiny" / f"{part}.bin")
    (folder / "data" / "tiny" / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": 64}))


_DIGITS = """
import pliant  # before keras, as in the script
import keras.src.datasets.mnist as mnist

mnist.get_file = lambda *_, **__: "mnist.npz"  # it would fetch a file of another hash
"""


def digits(folder: pathlib.Path) -> None:
    """In place of MNIST, which Keras fetches: a bright column, which is the class."""
    import numpy as np

    generator = np.random.default_rng(0)
    parts = {}
    for part, count in (("train", 1600), ("test", 32)):
        labels = generator.integers(0, 10, count).astype(np.uint8)
        pictures = generator.integers(0, 100, (count, 28, 28)).astype(np.uint8)
        for picture, label in zip(pictures, labels, strict=True):
            picture[:, 2 * label + 4] = 255
        parts |= {f"x_{part}": pictures, f"y_{part}": labels}
    np.savez(folder / "mnist.npz", **parts)
    (folder / "before.py").write_text(_DIGITS)


def images(folder: pathlib.Path, parts: tuple[str, str] = ("train", "val")) -> None:
    """A square at one of six places, which is the class."""
    from PIL import Image

    for part, count in zip(parts, (96, 12), strict=True):
        for number in range(count):
            row, column = divmod(number % 6, 3)
            image = Image.new("RGB", (40, 40), (number % 7 * 30, 0, 0))
            left, upper = 2 + 13 * column, 4 + 20 * row
            image.paste((200, 200, number), (left, upper, left + 10, upper + 12))
            kind = folder / "images" / part / f"{row}{column}"
            kind.mkdir(parents=True, exist_ok=True)
            image.save(kind / f"{number}.png")


def images_and_model(folder: pathlib.Path) -> None:
    """With BatchNorm."""
    import torch
    from transformers import ConvNextImageProcessor, ResNetConfig, ResNetForImageClassification

    torch.manual_seed(2)
    config = ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=6)
    ResNetForImageClassification(config).save_pretrained(folder / "model")
    ConvNextImageProcessor(size={"shortest_edge": 32}).save_pretrained(folder / "model")
    images(folder, ("train", "validation"))
    _accuracy(folder)
