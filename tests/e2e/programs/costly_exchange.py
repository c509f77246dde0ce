"""A small model whose steps take as long as the test says. Each shard has a pace (PLIANT_PACE_FILE).
Besides, a step takes the time of COST_SHARDS shards for each further learner, as if the exchange of
gradients took that long: a large model over a slow network behaves like this."""

import os
import time
from pathlib import Path

import pliant
import torch
from torch import nn
from torch.utils.data import TensorDataset

EPOCHS = int(os.environ["EPOCHS"])
COST_SHARDS = int(os.environ.get("COST_SHARDS", "0"))


def shard_seconds() -> float:
    file = os.environ.get("PLIANT_PACE_FILE")
    return int(Path(file).read_text()) / 1000 if file else 0.0


torch.manual_seed(0)
inputs = torch.randn(640, 16)
data = TensorDataset(inputs, (inputs[:, :8].sum(1) > inputs[:, 8:].sum(1)).long())
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
elastic = pliant.attach(model, optimizer, data, epochs=EPOCHS)
for step in elastic.steps():
    own = 0
    for batch, labels in step:
        step.backward(nn.functional.cross_entropy(model(batch), labels))
        own += 1
    learners = elastic.plan.logical_shards / own if own else 1.0
    time.sleep(COST_SHARDS * (learners - 1) * shard_seconds())
    step.commit()
