"""The rates of the kernels on this GPU, each next to a rival in the same run: a copy within the device, or PyTorch's own
operations on lists of tensors."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch

COPY_AIM = 0.85  # of the rate of a copy within the device
LIST_AIM = 1.5  # times the rate of torch._foreach_mul_ and torch._foreach_add_
SCALE = 8.0


@dataclass
class Row:
    name: str
    value: float
    unit: str
    rival: float
    ratio: float
    aim: float | None
    met: bool | None


def resnet18() -> list[int]:
    sizes, before = [64 * 3 * 9, 64, 64], 64
    for out in (64, 128, 256, 512):
        for _ in range(2):
            sizes += [out * before * 9, out, out, out * out * 9, out, out]
            if before != out:
                sizes += [out * before, out, out]
            before = out
    return [*sizes, 10 * 512, 10]


def transformer() -> list[int]:
    layer = [768, 768, 768 * 2304, 2304, 768 * 768, 768, 768, 768, 768 * 3072, 3072, 3072 * 768, 768]
    return [50257 * 768, 1024 * 768, *(layer * 12), 768, 768]


def milliseconds(work: Callable[[], None]) -> float:
    """The median of nine rounds."""
    rounds = []
    for _ in range(10):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(50):
            work()
        torch.cuda.synchronize()
        rounds.append((time.perf_counter() - begin) / 50 * 1e3)
    return statistics.median(rounds[1:])


def of_lists(sizes: list[int], dtype: torch.dtype) -> float:
    gradients = [torch.ones(size, dtype=dtype, device="cuda") for size in sizes]
    sums = [torch.zeros(size, device="cuda") for size in sizes]

    def work() -> None:
        torch._foreach_mul_(gradients, 1.0)  # the kernel's cost does not depend on the factor
        torch._foreach_add_(sums, gradients)

    return milliseconds(work)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    rivals = {
        "gather of ResNet-18, f32": of_lists(resnet18(), torch.float32),
        "gather of a transformer of 124 M, f32": of_lists(transformer(), torch.float32),
        "gather of a transformer of 124 M, bf16": of_lists(transformer(), torch.bfloat16),
    }
    torch.cuda.empty_cache()
    program = os.path.join(os.environ["PLIANT_BIN"], "kernel-rates")
    lines = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    measured = [json.loads(line) for line in lines]
    copy = measured[0]["gb_per_s"]
    rows = []
    for each in measured[1:]:
        name = each["name"]
        if name in rivals:
            ratio = rivals[name] / each["ms"]
            rows.append(Row(name, each["ms"], "ms", rivals[name], ratio, LIST_AIM, ratio >= LIST_AIM))
        else:
            aim = COPY_AIM if name.startswith("tree sum") else None
            met = None if aim is None else each["of_copy"] >= aim
            rows.append(Row(name, each["gb_per_s"], "GB/s", copy, each["of_copy"], aim, met))
    print(f"a copy within the device: {copy:.0f} GB/s")
    print(f"{'kernel':<42} {'value':>10} {'unit':<5} {'rival':>10} {'ratio':>6} {'aim':>5} met")
    for row in rows:
        aim, met = ("", "") if row.aim is None else (f"{row.aim}", "yes" if row.met else "no")
        print(f"{row.name:<42} {row.value:>10.4g} {row.unit:<5} {row.rival:>10.4g} {row.ratio:>6.2f} {aim:>5} {met}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([asdict(row) for row in rows], file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
