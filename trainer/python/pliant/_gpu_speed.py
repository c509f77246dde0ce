"""Measures how the size of a micro-batch affects the speed of this GPU."""

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_ROUNDS = 20
_ENOUGH = 1.05  # times the least time of a sample


@dataclass(frozen=True)
class Speed:
    size: int  # samples of a micro-batch
    free: float  # seconds of its forward and backward pass
    bitwise: float  # with deterministic operations only


def smallest_enough(speeds: Sequence[Speed]) -> int:
    """The smallest micro-batch whose samples take at most 5 % longer than those of the best one."""
    least = min(each.bitwise / each.size for each in speeds)
    return next(each.size for each in speeds if each.bitwise / each.size <= _ENOUGH * least)


def shard_seconds(speeds: Sequence[Speed], samples: int) -> float:
    """Seconds of a deterministic shard, on the line between the two nearest sizes. A sample of a
    shard that is larger than all measured ones takes as long as one of the largest."""
    for below, above in itertools.pairwise(speeds):
        if samples <= above.size:
            part = (samples - below.size) / (above.size - below.size)
            return below.bitwise + part * (above.bitwise - below.bitwise)
    return samples / speeds[-1].size * speeds[-1].bitwise


def report(speeds: Sequence[Speed]) -> Iterator[str]:
    """Lines for people."""
    least = min(each.bitwise / each.size for each in speeds)
    yield "samples of a shard      time   deterministic   time of a sample"
    for each in speeds:
        times = each.bitwise / each.size / least
        yield (
            f"{each.size:17} {each.free * 1e3:7.2f} ms {each.bitwise * 1e3:12.2f} ms {times:15.1f} x"
        )
    enough = smallest_enough(speeds)
    largest = speeds[-1]
    yield (
        f"A convolutional network wants at least {enough} samples in a shard here: smaller ones take "
        f"up to {speeds[0].bitwise / least:.0f} times as long for a sample, because starting the "
        "kernels takes longer than running them."
    )
    yield (
        f"Bitwise reproducibility costs {100 * (largest.bitwise / largest.free - 1):.0f} % of the "
        f"time of a step of this network with {largest.size} samples in a shard."
    )


def measure() -> list[Speed]:
    """Measures on the current GPU. Changes PyTorch's settings for determinism."""
    import torch

    from ._torch.numerics import compute_deterministically

    torch.manual_seed(0)
    layers: list[torch.nn.Module] = []
    channels = 3
    for width in (64, 128, 256, 512):
        for stride in (1, 2):
            layers += [
                torch.nn.Conv2d(channels, width, 3, stride=stride, padding=1, bias=False),
                torch.nn.BatchNorm2d(width),
                torch.nn.ReLU(),
            ]
            channels = width
    head = [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(channels, 10)]
    model = torch.nn.Sequential(*layers, *head).cuda()
    seconds: dict[bool, list[float]] = {}
    for deterministic in (False, True):
        if deterministic:
            compute_deterministically()
        seconds[deterministic] = []
        for size in _SIZES:
            inputs = torch.randn(size, 3, 32, 32, device="cuda")
            targets = torch.randint(10, (size,), device="cuda")

            def work(
                inputs: torch.Tensor = inputs, targets: torch.Tensor = targets
            ) -> None:
                torch.nn.functional.cross_entropy(model(inputs), targets).backward()

            seconds[deterministic].append(_median(work, torch.cuda.synchronize))
    return [
        Speed(size, free, bitwise)
        for size, free, bitwise in zip(_SIZES, seconds[False], seconds[True], strict=True)
    ]


def _median(work: Callable[[], None], synchronize: Callable[[], None]) -> float:
    times = []
    for _ in range(_ROUNDS + 3):
        synchronize()
        begin = time.perf_counter()
        work()
        synchronize()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[3:])
