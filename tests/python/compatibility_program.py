"""A typical script for Watson Machine Learning Accelerator: it seeds nothing, and gets all parameters of its training
from pth_parameter_mgr. Its argument is the learning rate policy."""

import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

sys.path.append(os.path.join(os.getenv("FABRIC_HOME"), "libs", ""))
from callbacks import Callback, LoggerCallback  # noqa: E402
from emetrics import EMetrics  # noqa: E402
from fabric_model import FabricModel  # noqa: E402


class Schedule(Callback):
    def __init__(self, schedule):
        super().__init__()
        self.schedule = schedule

    def on_epoch_end(self, epoch):
        if not isinstance(self.schedule, torch.optim.lr_scheduler.ReduceLROnPlateau):
            self.schedule.step()


class Logger(LoggerCallback):
    def log_test_metrics(self, metrics, iteration, epoch):
        with EMetrics.open() as log:
            log.record(EMetrics.TEST_GROUP, iteration, metrics)


def getDatasets():
    def stripes(count, noise):
        generator = torch.Generator().manual_seed(count)
        waves = torch.sin(torch.arange(8) * (torch.arange(count)[:, None] % 4 + 1.0))
        inputs = waves + noise * torch.randn(count, 8, generator=generator)
        return torch.utils.data.TensorDataset(inputs, torch.arange(count) % 4)

    return stripes(250, 1.0), stripes(50, 1.0)


def train_step(model, data, eva, train_loader, fn_args):
    inputs, labels = data
    outputs = model(inputs)
    loss = model.get_loss_function()(outputs, labels)
    loss.backward()
    return eva(outputs, labels), loss


def main():
    sys.path.insert(0, "/../")
    import pth_parameter_mgr

    assert pth_parameter_mgr.getLearningRatePolicy() == sys.argv[1]
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 4))
    optimizer = pth_parameter_mgr.getOptimizer(model)
    schedule = Schedule(pth_parameter_mgr.getLearningRate(optimizer))
    edt_model = FabricModel(
        model, getDatasets, F.cross_entropy, optimizer, driver_logger=Logger(), user_callback=[schedule],
        fn_step_train=train_step,
    )  # fmt: skip
    edt_model.train(pth_parameter_mgr.getEpoch(), pth_parameter_mgr.getTrainBatchSize(), 8)
    print("learning rate", optimizer.param_groups[0]["lr"])


if __name__ == "__main__":
    main()
