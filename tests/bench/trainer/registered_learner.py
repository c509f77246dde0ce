"""Trains a million parameters alone, with an average of them.

registered_learner.py none|computed|registered COMMITS --paced SOCKET [--core N]
"""

import argparse
import os

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import pliant
import pacing


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("average", choices=["none", "computed", "registered"])
    parser.add_argument("commits")
    parser.add_argument("--core", type=int)
    parser.add_argument("--paced", metavar="SOCKET", required=True)
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})

    torch.manual_seed(0)
    width = 500
    layers = [part for _ in range(4) for part in (nn.Linear(width, width), nn.ReLU())]
    model = nn.Sequential(*layers)
    data = torch.utils.data.TensorDataset(torch.randn(512, width), torch.randn(512, width))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    elastic = pliant.attach(model, optimizer, data, epochs=100_000, batch_size=256)
    if options.average == "registered":
        elastic.register("average", average)
    pace = pacing.Paced(options.paced)
    for step in elastic.steps():
        pace.before_step()
        for inputs, targets in step:
            step.backward(nn.functional.mse_loss(model(inputs), targets))
        step.commit()
        if options.average != "none":
            average.update_parameters(model)
        pace.after_step()


if __name__ == "__main__":
    main()
