"""examples/resnet18/train.py for one process: the script before the change to Pliant."""

import argparse
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader

from workloads import example

_EXAMPLE = example("resnet18")
Cifar10, made_up, resnet18 = _EXAMPLE.Cifar10, _EXAMPLE.made_up, _EXAMPLE.resnet18
rows_of, default_data = _EXAMPLE.rows_of, _EXAMPLE.default_data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--most", type=int, default=50_000, help="samples to use, to try it out")
    options = parser.parse_args()

    torch.manual_seed(0)
    data = options.data or default_data()
    if data == Path("made-up"):
        train_rows, test_rows = made_up(min(options.most, 2000)), made_up(100)
    else:
        train_rows = rows_of(sorted(data.glob("data_batch_*.bin")))[: options.most]
        test_rows = rows_of([data / "test_batch.bin"])[: options.most]
    train_data, test_data = Cifar10(train_rows, augment=True), Cifar10(test_rows, augment=False)
    model = resnet18()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    loss_function = nn.CrossEntropyLoss()

    def evaluate(batch):
        images, labels = batch
        scores = model(images)
        return loss_function(scores, labels), (scores.argmax(1) == labels).sum()

    train_loader = DataLoader(train_data, options.batch_size, shuffle=True)
    test_loader = DataLoader(test_data, options.batch_size)
    for epoch in range(options.epochs):
        model.train()
        for images, labels in train_loader:
            optimizer.zero_grad()
            scores = model(images)
            loss_function(scores, labels).backward()
            optimizer.step()
        schedule.step()
        model.eval()
        with torch.no_grad():
            correct = sum(int(evaluate(batch)[1]) for batch in test_loader)
        print(epoch, correct / len(test_data))


if __name__ == "__main__":
    main()
