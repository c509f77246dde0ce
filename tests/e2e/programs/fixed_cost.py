"""A small model whose steps take as long as the test says. Each shard has a pace (PLIANT_PACE_FILE), and a step takes
no less time than FLOOR_SHARDS of them: so many learners that each computes fewer shards do not speed it up. A large
model behaves like this when the exchange of its gradients takes longer than their computation."""

import os
import time
from pathlib import Path

import pliant
import torch
from torch import nn
from torch.utils.data import TensorDataset

EPOCHS = int(os.environ["EPOCHS"])
FLOOR_SHARDS = int(os.environ.get("FLOOR_SHARDS", "0"))


def floor_seconds() -> float:
    file = os.environ.get("PLIANT_PACE_FILE")
    return FLOOR_SHARDS * int(Path(file).read_text()) / 1000 if file else 0.0


torch.manual_seed(0)
inputs = torch.randn(640, 16)
data = TensorDataset(inputs, (inputs[:, :8].sum(1) > inputs[:, 8:].sum(1)).long())
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
elastic = pliant.attach(model, optimizer, data, epochs=EPOCHS)
for step in elastic.steps():
    begin = time.monotonic()
    for batch, labels in step:
        step.backward(nn.functional.cross_entropy(model(batch), labels))
    time.sleep(max(0.0, begin + floor_seconds() - time.monotonic()))
    step.commit()
