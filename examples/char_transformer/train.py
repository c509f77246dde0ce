"""A small transformer that predicts the next character of a text.

Without a cluster: python train.py --text some.txt        (without --text: a generated text)
"""

import argparse
from pathlib import Path

import pliant
import torch
from torch import nn
from torch.utils.data import Dataset


class Windows(Dataset):
    """Pieces of a text, and the same pieces shifted by one character."""

    def __init__(self, codes: torch.Tensor, length: int) -> None:
        self.codes, self.length = codes, length

    def __len__(self) -> int:
        return (len(self.codes) - 1) // self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        piece = self.codes[index * self.length : (index + 1) * self.length + 1]
        return piece[:-1], piece[1:]


class CharTransformer(nn.Module):
    def __init__(self, characters: int, length: int, width: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.position = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.1, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(width, characters)
        mask = torch.triu(torch.full((length, length), float("-inf")), 1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        return self.out(self.encoder(self.embedding(codes) + self.position, mask=self.mask))


def sentences(count: int) -> str:
    words = ["a", "node", "leaves", "joins", "the", "job", "and", "it", "trains", "on"]
    return " ".join(words[i * i % 7 + i % 4] for i in range(count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument(
        "--batch-size", type=int, help="size of the global batch (default: the job's, else 256)"
    )
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    options = parser.parse_args()

    torch.manual_seed(0)
    text = options.text.read_text(errors="replace") if options.text else sentences(60_000)
    characters = sorted(set(text))
    places = {character: i for i, character in enumerate(characters)}
    codes = torch.tensor([places[character] for character in text])
    kept = len(codes) * 9 // 10
    train_data, test_data = (
        Windows(codes[:kept], options.length),
        Windows(codes[kept:], options.length),
    )
    model = CharTransformer(len(characters), options.length, options.width, options.layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, 20)

    def loss_of(batch):
        inputs, targets = batch
        return nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())

    elastic = pliant.attach(
        model, optimizer, train_data, epochs=options.epochs, batch_size=options.batch_size,
        test_data=test_data, evaluate=loss_of,
    )  # fmt: skip
    elastic.register("schedule", schedule)
    elastic.add_callback(pliant.LambdaCallback(on_log=print))
    for step in elastic.steps():
        for batch in step:
            step.backward(loss_of(batch))
        step.commit(max_norm=1.0)
        schedule.step()


if __name__ == "__main__":
    main()
