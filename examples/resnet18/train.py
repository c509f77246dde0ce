"""ResNet-18 on CIFAR-10 (the binary version: data_batch_*.bin, test_batch.bin).

Without a cluster: python train.py        (--data: the folder of the files; without one: made-up images, to try it)
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
import pliant
import torch
from torch import nn
from torch.utils.data import Dataset


def made_up(count: int) -> np.ndarray:
    """Rows in the format of the files, to try the script without data: noise, brighter for higher labels."""
    rows = np.random.default_rng(count).integers(0, 100, (count, 3073), np.uint8)
    rows[:, 0] = np.arange(count) % 10
    rows[:, 1:] += 15 * rows[:, :1]
    return rows


def default_data() -> Path:
    data = Path(os.environ.get("DATA_DIR", "cifar-10-batches-bin"))
    if "DATA_DIR" in os.environ or data.is_dir():
        return data
    print(f"no {data} here: it trains on made-up images (--data: the folder)", file=sys.stderr)
    return Path("made-up")


def rows_of(files: list[Path]) -> np.ndarray:
    if not files:
        raise FileNotFoundError("no data_batch_*.bin found: set --data to the folder or made-up")
    return np.concatenate([np.fromfile(file, np.uint8).reshape(-1, 3073) for file in files])


class Cifar10(Dataset):
    """Images in the order of the files; in training flipped and cropped at random."""

    def __init__(self, rows: np.ndarray, augment: bool) -> None:
        self.labels = rows[:, 0].astype(np.int64)
        self.images = rows[:, 1:].reshape(-1, 3, 32, 32)
        self.augment = augment

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = torch.from_numpy(self.images[index]).float().div(255)
        image = (image - torch.tensor([0.491, 0.482, 0.447])[:, None, None]) / 0.25
        if self.augment:
            padded = nn.functional.pad(image, (4, 4, 4, 4))
            top, left = torch.randint(0, 9, (2,)).tolist()
            image = padded[:, top : top + 32, left : left + 32]
            image = image.flip(2) if torch.rand(()) < 0.5 else image
        return image, int(self.labels[index])


class Block(nn.Module):
    def __init__(self, inside: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.shortcut = nn.Sequential()
        if stride != 1 or inside != out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + self.shortcut(x))


def resnet18() -> nn.Module:
    """For images of 32 x 32 pixels: the first convolution is 3 x 3, with no pooling after it."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    inside = 64
    for out, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(inside, out, stride), Block(out, out, 1)]
        inside = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument(
        "--batch-size", type=int, help="size of the global batch (default: the job's, else 256)"
    )
    parser.add_argument("--most", type=int, default=50_000, help="maximum number of samples")
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

    elastic = pliant.attach(
        model, optimizer, train_data, epochs=options.epochs, batch_size=options.batch_size,
        test_data=test_data, evaluate=evaluate,
    )  # fmt: skip
    elastic.register("schedule", schedule)
    elastic.add_callback(pliant.LambdaCallback(on_log=print))
    for step in elastic.steps():
        for images, labels in step:
            scores = model(images)
            step.backward(loss_function(scores, labels), correct=(scores.argmax(1) == labels).sum())
        step.commit()
        if step.last_of_epoch:
            schedule.step()


if __name__ == "__main__":
    main()
