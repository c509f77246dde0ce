"""A user's script in which features meet: token weights, a loss scale that grows, a clip by norm and by value, two optimizers
that take turns, an average of the weights, a compiled model, micro-batches and a short last batch. It prints the hash of
the average at the end."""

import hashlib
import os

import pliant
import torch
from program import Tokens, labelled, padded, sums_of
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader


def main():
    torch.manual_seed(5)
    model = Tokens()
    run = torch.compile(model, backend="eager")
    optimizers = {
        "d": torch.optim.SGD(model.embedding.parameters(), lr=0.5, momentum=0.9),
        "g": torch.optim.AdamW(model.out.parameters(), lr=1e-2),
    }
    schedules = {name: torch.optim.lr_scheduler.StepLR(each, 20, 0.7) for name, each in optimizers.items()}
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=7)
    loss_function = nn.CrossEntropyLoss()

    def forward(batch):
        inputs, targets = batch
        scores = run(inputs)
        correct = (scores.argmax(1) == targets.flatten()).sum()
        return loss_function(scores, targets.flatten()), correct, sums_of(scores, targets)

    def evaluate(batch):
        loss, correct, sums = forward(batch)
        return {"loss": loss, "correct": correct, **sums}

    elastic = pliant.attach(
        run,
        optimizers,
        DataLoader(labelled(250), 32, shuffle=True, collate_fn=padded),
        epochs=int(os.environ.get("TOY_EPOCHS", "2")),
        test_data=labelled(50),
        test_collate_fn=padded,
        evaluate=evaluate,
        scaler=scaler,
        micro_batch_size=4,
    )
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
    elastic.register("average", average)
    for name, schedule in schedules.items():
        elastic.register(f"schedule {name}", schedule)
    for step in elastic.steps():
        for batch in step:
            loss, correct, sums = forward(batch)
            step.backward(loss, correct, **sums)
        name = "dg"[step.number // 2 % 2]
        if step.clip(2.0) > 1.5:
            step.clip_value(0.1)
        step.commit(name)
        average.update_parameters(model)
        schedules[name].step()
    digest = hashlib.sha256(b"".join(value.numpy().tobytes() for value in average.state_dict().values()))
    print(f"average {digest.hexdigest()} scale {scaler.get_scale()}", flush=True)
    print("done ", flush=True)


if __name__ == "__main__":
    main()
