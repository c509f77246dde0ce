"""Programs that train on a GPU: `program.py vision|transformer`. TOY_EPOCHS sets the number of epochs.

Also the models for measurements. "vision" is the ResNet-18 of the examples on made-up images, with BatchNorm and
augmentation; "transformer" is the character transformer of the examples, larger, with dropout and AdamW."""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pliant
import torch
from torch import nn

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EPOCHS = int(os.environ.get("TOY_EPOCHS", "2"))


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / name / "train.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def vision() -> tuple:
    """A model, a function that makes a batch, and its loss."""

    def batch(size: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(size, 3, 32, 32), torch.randint(0, 10, (size,))

    def loss(model: nn.Module, batch: list) -> torch.Tensor:
        return nn.functional.cross_entropy(model(batch[0]), batch[1])

    return example("resnet18").resnet18(), batch, loss


def transformer() -> tuple:
    """About the size of GPT-2: 12 layers of width 768, 50,257 tokens, here with an output layer of its own."""
    model = example("char_transformer").CharTransformer(50_257 // 2, 1024, 768, 12)

    def batch(size: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randint(0, 25_000, (size, 1024)), torch.randint(0, 25_000, (size, 1024))

    def loss(model: nn.Module, batch: list) -> torch.Tensor:
        return nn.functional.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())

    return model, batch, loss


def main(kind: str) -> None:
    torch.manual_seed(5)
    if kind == "vision":
        module = example("resnet18")
        rows = module.made_up(512)
        train, test = module.Cifar10(rows, augment=True), module.Cifar10(rows[:64], augment=False)
        model = module.resnet18().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    else:
        module = example("char_transformer")
        text = module.sentences(6_000)
        characters = sorted(set(text))
        codes = torch.tensor([characters.index(character) for character in text])
        train, test = module.Windows(codes, 64), module.Windows(codes[:4000], 64)
        model = module.CharTransformer(len(characters), 64, 256, 4).cuda()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)

    def loss_of(batch):
        inputs, targets = (each.cuda() for each in batch)
        scores = model(inputs)
        return nn.functional.cross_entropy(scores.flatten(0, -2), targets.flatten())

    elastic = pliant.attach(
        model, optimizer, train, epochs=EPOCHS, test_data=test, evaluate=loss_of
    )
    elastic.register("schedule", schedule)
    for step in elastic.steps():
        for batch in step:
            step.backward(loss_of(batch))
        step.commit(max_norm=1.0)
        if step.last_of_epoch:
            schedule.step()
    print(f"done on {torch.cuda.get_device_name()}")


if __name__ == "__main__":
    main(sys.argv[1])
