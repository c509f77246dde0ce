"""Trains one model alone, with the batch mode of its environment: `accuracy_program.py cnn|characters SEED`.

Prints a JSON line: the test accuracy and loss at the end, the optimizer steps, and the largest
batch. "cnn" learns the digits of the demo; "characters" predicts the next character of the
documents of this repository."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pliant
import torch
from torch import nn
from torch.utils.data import TensorDataset

_REPOSITORY = Path(__file__).resolve().parents[3]
_BATCH, _SHARDS = 16, 4
_LENGTH = 32
_CHARACTERS = 60_000


def digits(name: str) -> TensorDataset:
    rows = np.loadtxt(_REPOSITORY / "manifests" / "demo" / f"digits-{name}.csv", delimiter=",")
    images = torch.from_numpy(rows[:, :64]).float().reshape(-1, 1, 8, 8) / 16
    return TensorDataset(images, torch.from_numpy(rows[:, 64]).long())


class Cnn(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(512, 10),
        )  # fmt: skip


class Characters(nn.Module):
    def __init__(self, characters: int, width: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.position = nn.Parameter(torch.zeros(_LENGTH, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.1, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, characters)
        mask = torch.triu(torch.full((_LENGTH, _LENGTH), float("-inf")), 1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        hidden = self.encoder(self.embedding(codes) + self.position, mask=self.mask)
        return self.out(hidden).transpose(1, 2)  # characters second, as cross_entropy wants them


def texts() -> tuple[TensorDataset, TensorDataset, int]:
    """Every tenth piece is for testing."""
    files = sorted((_REPOSITORY / "docs").rglob("*.md"))
    text = "".join(file.read_text() for file in files)[:_CHARACTERS]
    characters = sorted(set(text))
    places = {character: i for i, character in enumerate(characters)}
    codes = torch.tensor([places[character] for character in text])
    starts = torch.arange(0, len(codes) - _LENGTH - 1, _LENGTH)
    pieces = torch.stack([codes[start : start + _LENGTH + 1] for start in starts])
    is_test = torch.arange(len(pieces)) % 10 == 9
    train, test = pieces[~is_test], pieces[is_test]
    return (
        TensorDataset(train[:, :-1], train[:, 1:]),
        TensorDataset(test[:, :-1], test[:, 1:]),
        len(characters),
    )


def main(kind: str, seed: int) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model: nn.Module
    if kind == "cnn":
        train, test, model, epochs = digits("train"), digits("test"), Cnn(), 20
        optimizer: torch.optim.Optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        rule = "Linear"
    else:
        train, test, characters = texts()
        model, epochs = Characters(characters), 20
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        rule = "Sqrt"
    pliant.scale_learning_rate(optimizer, rule)

    def evaluate(batch):
        scores = model(batch[0])
        correct = (scores.argmax(1) == batch[1]).float()
        # A text counts by the share of its characters.
        return nn.functional.cross_entropy(scores, batch[1]), correct.reshape(len(correct), -1).mean(1).sum()

    epochs = int(os.environ.get("EPOCHS", epochs))
    elastic = pliant.attach(
        model, optimizer, train, epochs=epochs, batch_size=_BATCH, logical_shards=_SHARDS,
        seed=seed, test_data=test, evaluate=evaluate,
    )  # fmt: skip
    results: list[pliant.Evaluation] = []
    elastic.add_callback(pliant.LambdaCallback(on_test_end=results.append))
    largest = _BATCH
    for step in elastic.steps():
        for inputs, targets in step:
            step.backward(nn.functional.cross_entropy(model(inputs), targets))
        step.commit(max_norm=1.0)
        largest = max(largest, _BATCH * elastic.batch_growth)
    last = results[-1]
    print(json.dumps({"accuracy": last.accuracy, "loss": last.loss, "steps": last.step, "batch": largest}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
