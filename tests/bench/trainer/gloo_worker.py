"""The rival of all_reduce_worker.cc: torch.distributed over gloo. It reads the same commands.

gloo_worker.py RANK WORLD FILE     FILE: through which the ranks find each other
"""

import os
import sys
import time

os.environ.setdefault("USE_LIBUV", "0")  # Debian's torch is built without it
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch
import torch.distributed as dist


def _reduce(rank: int, world: int, size: int, repeats: int) -> str:
    times = []
    for _ in range(repeats):
        values = torch.full((size // 4,), float(rank + 1))
        dist.barrier()
        begin = time.monotonic_ns()
        dist.all_reduce(values)
        times += [begin, time.monotonic_ns()]
    if not bool((values == world * (world + 1) / 2).all()):
        raise SystemExit("the sum is wrong")
    return " ".join(map(str, times))


def main() -> None:
    rank, world, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world)
    print("-", flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "peers":
            dist.barrier()
            print("connected", flush=True)
        else:
            print(_reduce(rank, world, int(rest[0]), int(rest[1])), flush=True)


if __name__ == "__main__":
    main()
