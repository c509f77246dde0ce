"""A script in the style of IBM Watson Machine Learning Accelerator. Nothing in it mentions Pliant.

Without a cluster: python train.py
"""

import argparse
import os

import torch
import torch.nn.functional as F
from callbacks import Callback, LoggerCallback
from fabric_model import FabricModel
from torch import nn, optim
from torch.utils.data import TensorDataset

DATA_DIR = os.environ.get("DATA_DIR", "/tmp")
MAX_NUM_WORKERS = 4


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8 * 4 * 4, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.fc(F.dropout(x.flatten(1), 0.1, self.training))


class LRScheduleCallback(Callback):
    def __init__(self, step_size, gamma):
        super().__init__()
        self.step_size, self.gamma = step_size, gamma

    def on_epoch_begin(self, epoch):
        if epoch and epoch % self.step_size == 0:
            for group in self.params["optimizer"].param_groups:
                group["lr"] *= self.gamma


class Logger(LoggerCallback):
    def log_train_metrics(self, loss, acc, completed_batch, worker=0):
        print(f"train batch {completed_batch}: loss {loss:.3f}, accuracy {acc:.1f} %")

    def log_test_metrics(self, loss, acc, completed_batch, worker=0):
        print(f"test batch {completed_batch}: loss {loss:.3f}, accuracy {acc:.1f} %")


def make_stripes(count, seed):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 4
    waves = torch.sin(torch.arange(8) * (labels[:, None] + 1.0))
    return TensorDataset(
        waves[:, None, :, None] + 0.5 * torch.randn(count, 1, 8, 8, generator=generator), labels
    )


def get_datasets():
    return make_stripes(800, 1), make_stripes(160, 2)


def train_step(model, data, eva, train_loader, fn_args):
    inputs, labels = data
    model.get_optimizer().zero_grad()
    outputs = model(inputs)
    loss = model.get_loss_function()(outputs, labels)
    loss.backward()
    return eva(outputs, labels), loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    args, _ = parser.parse_known_args()
    torch.manual_seed(1)
    model = Net()
    optimizer = optim.Adadelta(model.parameters(), lr=0.5, rho=0.95)
    edt_model = FabricModel(
        model, get_datasets, F.cross_entropy, optimizer, driver_logger=Logger(), enable_onnx=True,
        user_callback=[LRScheduleCallback(2, 0.1)], fn_step_train=train_step,
    )  # fmt: skip
    edt_model.train(args.epochs, args.batch_size, MAX_NUM_WORKERS, checkpoint_freq=1)


if __name__ == "__main__":
    main()
