"""Scripts that log to Weights & Biases and MLflow: `trackers_program.py loop|trainer`. "loop" is a loop of its own with
Pliant's callbacks; "trainer" is a Trainer of transformers with report_to. TOY_EPOCHS sets the number of epochs; WANDB_MODE
and MLFLOW_TRACKING_URI say where the runs are."""

import os
import sys
import tempfile

import torch
from torch import nn

EPOCHS = int(os.environ.get("TOY_EPOCHS", "2"))


def samples(count):
    generator = torch.Generator().manual_seed(0)
    return [(each, int(each.sum() > 0)) for each in torch.randn(count, 8, generator=generator)]


def loop():
    import pliant

    torch.manual_seed(0)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loss_function = nn.CrossEntropyLoss()

    def evaluate(batch):
        values, labels = batch
        scores = model(values)
        return loss_function(scores, labels), (scores.argmax(1) == labels).sum()

    elastic = pliant.attach(
        model, optimizer, samples(256), test_data=samples(16), evaluate=evaluate, epochs=EPOCHS
    )
    elastic.add_callback(pliant.WandB(project="toy", config={"rate": 0.05}))
    elastic.add_callback(pliant.MLflow(experiment="toy", config={"rate": 0.05}))
    for step in elastic.steps():
        for values, labels in step:
            step.backward(loss_function(model(values), labels), length=values.norm(dim=1).sum())
        step.commit()


def trainer():
    from pliant.transformers import PliantTrainer
    from transformers_program import arguments, gpt2, padded, texts

    args = arguments(
        tempfile.mkdtemp(), per_device_train_batch_size=4, gradient_accumulation_steps=8, num_train_epochs=EPOCHS,
        report_to=["wandb", "mlflow"],
    )  # fmt: skip
    PliantTrainer(model=gpt2(), args=args, train_dataset=texts(120), data_collator=padded).train()


if __name__ == "__main__":
    {"loop": loop, "trainer": trainer}[sys.argv[1]]()
