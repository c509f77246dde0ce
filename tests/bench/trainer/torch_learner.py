"""The rival: the same models and data, trained by a plain loop or, with several processes, by
DistributedDataParallel over gloo.

torch_learner.py MODEL COMMITS [--core N] [--paced SOCKET] [--whole] [--snapshot FILE]
                 [--save sync|async --save-every STEPS --save-to FOLDER]
                 [--rendezvous FILE --rank R --world N]

Under torchrun the ranks are torchrun's. --whole: each process passes its part of the batch as a
whole; otherwise in as many pieces as it has shards. --snapshot: the state from which a process
starts; rank 0 writes it every tenth step, as torchrun's own tutorial does. --save: with torch.save,
or with torch.distributed.checkpoint.async_save.
"""

import argparse
import contextlib
import itertools
import os
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

os.environ.setdefault("USE_LIBUV", "0")  # Debian's torch is built without it
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

import pacing
import without_libuv  # noqa: F401
import workloads
from commits import CommitLog
from mortal import Mortal
from sizes import SIZES
from workloads import Workload

_SNAPSHOT_EVERY = 10


def _pieces(workload: Workload, first_step: int, own: range, whole: bool) -> Iterator[list[int]]:
    """The samples that a rank passes through its model, as lists one after another."""
    steps_per_epoch = len(workload.data) // workload.batch
    size = workload.batch // workload.shards
    for epoch in itertools.count(first_step // steps_per_epoch):
        generator = torch.Generator().manual_seed(epoch)
        order = torch.randperm(len(workload.data), generator=generator).tolist()
        begin = first_step % steps_per_epoch if epoch == first_step // steps_per_epoch else 0
        for step in range(begin, steps_per_epoch):
            at = [step * workload.batch + shard * size for shard in own]
            shards = [order[first : first + size] for first in at]
            yield from [sum(shards, [])] if whole else shards


def _load_snapshot(path: Path | None, workload: Workload) -> int:
    if path is None or not path.exists():
        return 0
    saved = torch.load(path, weights_only=True)
    workload.model.load_state_dict(saved["model"])
    workload.optimizer.load_state_dict(saved["optimizer"])
    return saved["step"]


def _save_snapshot(path: Path, workload: Workload, step: int) -> None:
    unfinished = path.with_suffix(".unfinished")
    state = {"model": workload.model.state_dict(), "optimizer": workload.optimizer.state_dict()}
    torch.save({**state, "step": step}, unfinished)
    unfinished.replace(path)


class Saver:
    """Keeps the newest checkpoint."""

    def __init__(self, how: str, folder: Path) -> None:
        self._how = how
        self._path = folder
        self._running: Future | None = None

    def save(self, workload: Workload) -> None:
        state = {"model": workload.model.state_dict(), "optimizer": workload.optimizer.state_dict()}
        if self._how == "sync":
            torch.save(state, self._path)
            return
        if self._running:
            self._running.result()
        self._running = dcp.async_save(state, checkpoint_id=self._path)


def _join(options: argparse.Namespace) -> tuple[int, int] | None:
    """The rank and the world size; None: alone, without torch.distributed."""
    if options.rendezvous:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{options.rendezvous}",
            rank=options.rank,
            world_size=options.world,
        )
    elif "TORCHELASTIC_RUN_ID" in os.environ:
        dist.init_process_group("gloo")
    else:
        return None
    return dist.get_rank(), dist.get_world_size()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=SIZES)
    parser.add_argument("commits", type=Path)
    parser.add_argument("--core", type=int)
    parser.add_argument("--paced", metavar="SOCKET")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--snapshot", type=Path)
    parser.add_argument("--save", choices=["sync", "async"])
    parser.add_argument("--save-every", type=int, default=0)
    parser.add_argument("--save-to", type=Path)
    parser.add_argument("--rendezvous")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--world", type=int, default=1)
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    torch.set_num_threads(1)

    ranks = _join(options)
    rank, world = ranks or (0, 1)
    workload = workloads.make(options.model)
    first_step = _load_snapshot(options.snapshot, workload)
    model = DistributedDataParallel(workload.model) if ranks else workload.model
    own = range(workload.shards * rank // world, workload.shards * (rank + 1) // world)
    loader = iter(
        DataLoader(workload.data, batch_sampler=_pieces(workload, first_step, own, options.whole))
    )
    pieces = 1 if options.whole else len(own)
    # DistributedDataParallel takes the mean over the ranks.
    share = len(own) / pieces * world / workload.shards
    log = CommitLog(options.commits)
    mortal = Mortal(options.commits, list(workload.model.parameters()))
    saver = Saver(options.save, options.save_to) if options.save else None
    pace = pacing.Paced(options.paced) if options.paced else pacing.Free()
    waited = 0.0
    for step in itertools.count(first_step + 1):
        pace.before_step()
        workload.optimizer.zero_grad()
        for piece in range(pieces):
            reduces = ranks is None or piece == pieces - 1
            if ranks and reduces:
                mortal.before_reduction()
            with contextlib.nullcontext() if reduces else model.no_sync():
                (workload.loss(model, next(loader)) * share).backward()
        workload.optimizer.step()
        pace.after_step()
        log.add(step, len(own), waited=waited)
        waited = 0.0
        if options.snapshot and rank == 0 and step % _SNAPSHOT_EVERY == 0:
            _save_snapshot(options.snapshot, workload, step)
        if saver and step % options.save_every == 0:
            began = time.monotonic()
            saver.save(workload)
            waited = time.monotonic() - began


if __name__ == "__main__":
    main()
