"""Trains a generator of points on a circle against a discriminator: two optimizers, one backward pass a batch.

    python train.py [--epochs N] [--batch-size N]
"""

import argparse

import pliant
import torch
from torch import nn
from torch.func import functional_call
from torch.utils.data import TensorDataset

NOISE = 4


def network(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, outputs))


def loss_of(scores: torch.Tensor, truth: float) -> torch.Tensor:
    return nn.functional.binary_cross_entropy_with_logits(scores, torch.full_like(scores, truth))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch-size", type=int)  # in a job the job says it
    arguments = parser.parse_args()

    torch.manual_seed(0)  # the script initializes the parameters
    angles = 2 * torch.pi * torch.rand(2048)
    circle = torch.stack([angles.cos(), angles.sin()], 1)
    models = nn.ModuleDict({"d": network(2, 1), "g": network(NOISE, 2)})
    optimizers = {name: torch.optim.Adam(models[name].parameters(), lr=2e-3, betas=(0.5, 0.999)) for name in models}

    elastic = pliant.attach(
        models, optimizers, TensorDataset(circle), epochs=arguments.epochs, batch_size=arguments.batch_size
    )
    elastic.add_callback(pliant.ProgressBar())
    for step in elastic.steps():
        for (real,) in step:
            fake = models["g"](torch.randn(len(real), NOISE))  # other noise in each shard, the same on any learner
            of_d = loss_of(models["d"](real), 1.0) + loss_of(models["d"](fake.detach()), 0.0)
            # The generator's loss passes through the discriminator, and leaves no gradient there.
            as_it_is = {name: value.detach() for name, value in models["d"].named_parameters()}
            of_g = loss_of(functional_call(models["d"], as_it_is, (fake,)), 1.0)
            step.backward(of_d + of_g, discriminator=of_d * len(real), generator=of_g * len(real))
        step.commit()  # both optimizers, in their order; step.commit("d") steps one
        if step.last_of_epoch and elastic.first:
            samples = step.weight
            print(f"discriminator {step.sums['discriminator'] / samples:.3f}, generator {step.sums['generator'] / samples:.3f}")

    with torch.no_grad():
        radius = models["g"](torch.randn(1000, NOISE)).norm(dim=1)
    print(f"radius of generated points: {radius.mean():.2f} ± {radius.std():.2f}")


if __name__ == "__main__":
    main()
