"""ResNet-18 on CIFAR-10 as in Watson Machine Learning Accelerator's tutorial for elastic training. Nothing in it
mentions Pliant.

Without a cluster: FABRIC_HOME=/usr/local python train.py     (DATA_DIR: a folder with the binary version of CIFAR-10;
without files there: made-up images, to try it)
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import Dataset

sys.path.append(os.path.join(os.getenv("FABRIC_HOME"), "libs", ""))
from callbacks import LoggerCallback  # noqa: E402
from emetrics import EMetrics  # noqa: E402
from fabric_model import FabricModel  # noqa: E402

ENGINES_NUMBER = 8  # the maximum number of GPUs

train_data_dir = test_data_dir = "/tmp"
max_images = 50_000


class Cifar10(Dataset):
    """Rows of the binary files: a label and 32 x 32 pixels of three colours."""

    def __init__(self, rows, training):
        self.rows, self.training = rows, training

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = torch.from_numpy(self.rows[index])
        image = (row[1:].reshape(3, 32, 32).float() / 255 - 0.47) / 0.25
        if self.training and torch.rand(()) < 0.5:
            image = image.flip(2)
        return image, int(row[0])


def read_rows(folder, pattern, made_up):
    """The rows of all files found; without files, `made_up` generated rows."""
    folders = [Path(folder), Path(folder, "cifar-10-batches-bin")]
    files = [file for each in folders for file in sorted(each.glob(pattern))]
    if files:
        rows = np.concatenate([np.fromfile(file, np.uint8) for file in files])
        return rows.reshape(-1, 3073)[:max_images]
    print(f"no {pattern} in {folder}: made-up images are used", file=sys.stderr)
    rows = np.random.default_rng(made_up).integers(0, 100, (made_up, 3073), np.uint8)
    rows[:, 0] = np.arange(made_up) % 10
    rows[:, 1:] += 15 * rows[:, :1]  # brighter for higher labels
    return rows


def getDatasets():
    return (
        Cifar10(read_rows(train_data_dir, "data_batch_*.bin", min(max_images, 2000)), training=True),
        Cifar10(read_rows(test_data_dir, "test_batch.bin", min(max_images, 100)), training=False),
    )


class Block(nn.Module):
    def __init__(self, inside, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(out)
        self.around = nn.Identity()
        if stride > 1:
            self.around = nn.Sequential(
                nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.around(x))


def resnet18():
    """For small images: the first convolution is 3 x 3, with no pooling after it."""
    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    for inside, out in ((64, 64), (64, 128), (128, 256), (256, 512)):
        layers += [Block(inside, out, out // inside), Block(out, out, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def find_weights(folder):
    """The file of initial weights, preferably the final model of another training; None: there is none."""
    files = sorted(Path(folder).glob("*.pth")) if folder else []
    final = [file for file in files if file.name.startswith("model_epoch_final")]
    return next(iter(final + files), None)


class Logger(LoggerCallback):
    def log_train_metrics(self, loss, acc, completed_batch, worker=0):
        self.log("Train", EMetrics.TRAIN_GROUP, loss, acc, completed_batch)

    def log_test_metrics(self, loss, acc, completed_batch, worker=0):
        self.log("Test", EMetrics.TEST_GROUP, loss, acc, completed_batch)

    def log(self, what, group, loss, acc, completed_batch):
        print(f"{what}, Iteration: {completed_batch}, Loss: {loss:.5f}, Accuracy: {acc / 100:.4f}")
        with EMetrics.open() as metrics:
            metrics.record(group, completed_batch, {"loss": loss, "accuracy": acc / 100})


def main():
    global train_data_dir, test_data_dir, max_images
    parser = argparse.ArgumentParser()
    parser.add_argument("--train_dir", default="", help="where results are written")
    parser.add_argument("--weights", default="", help="a folder with weights to begin with (*.pth)")
    parser.add_argument("--most", type=int, default=max_images, help="maximum number of images")
    args, _ = parser.parse_known_args()

    sys.path.insert(0, args.train_dir + "/../")
    import pth_parameter_mgr

    max_images = args.most
    train_data_dir = pth_parameter_mgr.getTrainData(False)
    test_data_dir = pth_parameter_mgr.getTestData(False)

    model = resnet18()
    weights = find_weights(args.weights)
    if weights:
        print(f"begins with the weights of {weights}")
        model.load_state_dict(torch.load(weights, map_location="cpu"))
    optimizer = pth_parameter_mgr.getOptimizer(model)
    epochs = pth_parameter_mgr.getEpoch()
    edt_model = FabricModel(model, getDatasets, F.cross_entropy, optimizer, driver_logger=Logger())
    edt_model.train(epochs, pth_parameter_mgr.getTrainBatchSize(), ENGINES_NUMBER)


if __name__ == "__main__":
    main()
