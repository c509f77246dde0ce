"""The models that both we and the rivals train: those of examples/, most of them smaller.

Without PLIANT_BENCH_CIFAR10 (a folder with data_batch_*.bin) the images are noise of the same
shape: a step takes equally long.
"""

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from sizes import SIZES

_EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
CIFAR10 = "PLIANT_BENCH_CIFAR10"


@dataclass
class Workload:
    model: nn.Module
    optimizer: torch.optim.Optimizer
    data: Any
    loss: Callable[[nn.Module, Any], torch.Tensor]  # mean loss of a batch
    batch: int  # the global batch
    shards: int


def make(name: str) -> Workload:
    torch.manual_seed(0)
    makers = {"cnn": _cnn, "transformer": _transformer, "resnet18": _resnet18, "large": _large}
    return makers[name]()


def example(name: str) -> ModuleType:
    """Imports a script of examples/."""
    path = _EXAMPLES / name / "train.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _cnn() -> Workload:
    """ResNet-18 with a quarter of the channels: 0.7 million parameters."""
    script = example("resnet18")
    width = 16
    layers = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    inside = width
    for out, stride in ((width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)):
        layers += [script.Block(inside, out, stride), script.Block(out, out, 1)]
        inside = out
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 10))
    return _of_images(script, model, "cnn")


def _resnet18() -> Workload:
    """The full model: 11 million parameters. A step has few images, so that a core computes it
    within a second, in no more shards than two learners can share."""
    script = example("resnet18")
    return _of_images(script, script.resnet18(), "resnet18")


def _of_images(script: ModuleType, model: nn.Module, name: str) -> Workload:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)

    def loss(model: nn.Module, batch: Any) -> torch.Tensor:
        images, labels = batch
        return nn.functional.cross_entropy(model(images), labels)

    return Workload(model, optimizer, _images(script), loss, *SIZES[name])


def _images(script: ModuleType) -> Any:
    """4096 images, one per row: the label and the pixels."""
    folder = os.environ.get(CIFAR10)
    if folder:
        rows = script.rows_of(sorted(Path(folder).glob("data_batch_*.bin")))[:4096]
    else:
        rows = torch.randint(0, 256, (4096, 3073), dtype=torch.uint8).numpy()
        rows[:, 0] %= 10
    return script.Cifar10(rows, True)


def _transformer() -> Workload:
    """0.4 million parameters, 2048 characters per step."""
    script = example("char_transformer")
    text = script.sentences(60_000)
    characters = sorted(set(text))
    codes = torch.tensor([characters.index(character) for character in text])
    model = script.CharTransformer(len(characters), 64, 128, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def loss(model: nn.Module, batch: Any) -> torch.Tensor:
        inputs, targets = batch
        return nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())

    return Workload(model, optimizer, script.Windows(codes, 64), loss, *SIZES["transformer"])


def _large() -> Workload:
    """33 million parameters: with Adam's state 400 MB."""
    width, layers = 2048, 8
    stack = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())]
    model = nn.Sequential(*stack, nn.Linear(width, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    data = torch.utils.data.TensorDataset(torch.randn(1024, width), torch.arange(1024) % 10)

    def loss(model: nn.Module, batch: Any) -> torch.Tensor:
        inputs, targets = batch
        return nn.functional.cross_entropy(model(inputs), targets)

    return Workload(model, optimizer, data, loss, *SIZES["large"])
