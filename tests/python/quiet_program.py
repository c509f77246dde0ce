"""Loops that are right alone, and that would train something else on several learners without a word:
`quiet_program.py KIND`. Each kind is one function, or a part of `main`."""

import hashlib
import os
import sys

import torch
from torch import nn
from torch.utils.data import Dataset

import pliant

KIND = sys.argv[1]
EPOCHS = int(os.environ.get("TOY_EPOCHS", "4"))


class Points(Dataset):
    """With `epoch` its samples depend on an attribute that the loop sets."""

    epoch = 0

    def __init__(self, count):
        self.inputs = torch.randn(count, 8, generator=torch.Generator().manual_seed(count))

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        if KIND == "process":
            return self.inputs[index] + os.getpid() / 1e6, int(self.inputs[index].sum() > 0)
        return self.inputs[index] * (1 + self.epoch), int(self.inputs[index].sum() > 0)


class Metric:
    """Counts samples; a schedule of its own sort."""

    def __init__(self):
        self.count = 0

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


def main(kind):
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.3), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.9) if kind == "schedule" else None
    train, test = Points(256), Points(64)
    average = torch.optim.swa_utils.AveragedModel(model, use_buffers=True)
    metric = Metric()
    tested = average if kind == "average" else model

    def loss_of(net, batch):
        return nn.functional.cross_entropy(net(batch[0]), batch[1])

    def evaluate(batch):
        if kind == "evaluate":
            metric.count += len(batch[1])
        return loss_of(tested, batch)

    elastic = pliant.attach(
        model, optimizer, train, epochs=EPOCHS, test_data=test, evaluate=evaluate,
        num_workers=int(os.environ.get("TOY_WORKERS", "0")),
    )  # fmt: skip
    if kind in ("metric", "evaluate", "late metric"):
        elastic.register("metric", metric)
    if kind == "average":
        elastic.register("average", average)
    steps_here = 0
    for step in elastic.steps():
        if kind == "data":
            train.epoch = step.epoch
        for batch in step:
            loss = loss_of(model, batch)
            if kind == "passes" and step.number % 2 == 0:
                step.backward(0.5 * loss_of(model, batch))
            step.backward(loss)
            if kind == "metric" or (kind == "late metric" and step.number > 8):
                metric.count += len(batch[1])
        step.commit()
        steps_here += 1
        if kind == "schedule":
            schedule.step()
        if kind == "variable":
            optimizer.param_groups[0]["lr"] = 0.1 / (1 + steps_here)
        if kind == "average":
            average.update_parameters(model)
        if kind == "eval" and step.last_of_epoch:
            model.eval()
            with torch.no_grad():
                loss_of(model, next(iter(torch.utils.data.DataLoader(test, 64))))
    state = average if kind == "average" else model
    bits = b"".join(value.numpy().tobytes() for value in state.state_dict().values())
    print(f"done {hashlib.sha256(bits).hexdigest()} {metric.count}")


if __name__ == "__main__":
    main(KIND)
