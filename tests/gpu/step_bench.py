"""The time of a step of PyTorch programs on this GPU: with Pliant alone in its process, in plain PyTorch with the same
micro-batches, and in plain PyTorch with the whole batch."""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pliant
import torch
from program import transformer, vision
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SHARDS = 8
STEPS = 30
WARM_UP = 8


def timed(steps: list[float]) -> float:
    return statistics.median(steps[WARM_UP:])


def plain(model: nn.Module, optimizer: torch.optim.Optimizer, data: TensorDataset, parts: int, loss_of) -> float:
    loader = DataLoader(data, batch_size=len(data) // STEPS // parts)
    times = []
    begin = time.perf_counter()
    for number, batch in enumerate(loader, 1):
        loss = loss_of(model, [each.cuda() for each in batch])
        (loss / parts).backward()
        float(loss.detach())  # as a loop that reports its loss
        if number % parts == 0:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            torch.cuda.synchronize()
            now = time.perf_counter()
            times.append(now - begin)
            begin = now
    return timed(times)


def profiled(run: Callable[[], object], file: Path) -> None:
    """Writes where the time of the GPU and of the host goes."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        run()
    averages = profile.key_averages()
    tables = [averages.table(sort_by=f"self_{where}_time_total", row_limit=30) for where in ("device", "cpu")]
    file.write_text("\n".join(tables))


def with_pliant(model: nn.Module, optimizer: torch.optim.Optimizer, data: TensorDataset, loss_of) -> float:
    with tempfile.TemporaryDirectory() as folder:
        elastic = pliant.attach(
            model, optimizer, data, epochs=1, batch_size=len(data) // STEPS, logical_shards=SHARDS,
            checkpoint_dir=folder,
        )  # fmt: skip
        times = []
        begin = time.perf_counter()
        for step in elastic.steps():
            for batch in step:
                step.backward(loss_of(model, [each.cuda() for each in batch]))
            step.commit()
            torch.cuda.synchronize()
            now = time.perf_counter()
            times.append(now - begin)
            begin = now
    return timed(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument(
        "--profiles", metavar="FOLDER", type=Path, help="also write a profile of each program here, with and without"
    )
    options = parser.parse_args()
    os.environ["PLIANT_SEED"] = "1"
    torch.use_deterministic_algorithms(True)
    rows = []
    for name, make, size in (("ResNet-18, batch 256", vision, 256), ("transformer of 124 M, batch 32", transformer, 32)):
        seconds = {}
        for what in ("whole batch", "micro-batches", "Pliant"):
            torch.manual_seed(0)
            model, inputs_of, loss_of = make()
            model.cuda()
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
            data = TensorDataset(*inputs_of(size * STEPS))
            if what == "Pliant":
                seconds[what] = with_pliant(model, optimizer, data, loss_of)
            else:
                parts = 1 if what == "whole batch" else SHARDS
                seconds[what] = plain(model, optimizer, data, parts, loss_of)
            print(f"{name}, {what}: {seconds[what] * 1e3:.1f} ms a step", flush=True)
            if options.profiles and what != "whole batch":
                few = TensorDataset(*inputs_of(size * STEPS))
                again = with_pliant if what == "Pliant" else partial(plain, parts=SHARDS)
                file = options.profiles / f"profile-{make.__name__}-{what.lower()}.txt"
                profiled(partial(again, model, optimizer, few, loss_of=loss_of), file)
            del model, optimizer
            torch.cuda.empty_cache()
        rows.append({
            "name": name, "value": seconds["Pliant"], "unit": "s", "rival": seconds["micro-batches"],
            "ratio": seconds["Pliant"] / seconds["micro-batches"],
        })
        if options.json:
            Path(options.json).write_text(json.dumps(rows, indent=2))
        print(f"{name}: Pliant {rows[-1]['ratio']:.2f} x plain micro-batches, "
              f"{seconds['Pliant'] / seconds['whole batch']:.2f} x the whole batch", flush=True)


if __name__ == "__main__":
    sys.exit(main())
