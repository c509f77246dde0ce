"""examples/char_transformer/train.py for one process: the script before the change to Pliant."""

import argparse
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader

from workloads import example

CharTransformer = example("char_transformer").CharTransformer
Windows, sentences = example("char_transformer").Windows, example("char_transformer").sentences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=256)
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

    train_loader = DataLoader(train_data, options.batch_size, shuffle=True)
    test_loader = DataLoader(test_data, options.batch_size)
    for epoch in range(options.epochs):
        model.train()
        for batch in train_loader:
            optimizer.zero_grad()
            loss_of(batch).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            losses = [float(loss_of(batch)) for batch in test_loader]
        print(epoch, sum(losses) / len(losses))


if __name__ == "__main__":
    main()
