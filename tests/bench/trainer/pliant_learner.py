"""One Pliant learner; in a job, or alone.

pliant_learner.py MODEL COMMITS [--core N] [--epochs N] [--paced SOCKET] [--hash-every STEPS]
"""

import argparse
import hashlib
import os
import time
from pathlib import Path

import torch

import pliant
import pacing
import workloads
from commits import CommitLog
from mortal import Mortal
from sizes import SIZES


def parameters_sha(model: torch.nn.Module) -> str:
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    return digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=SIZES)
    parser.add_argument("commits", type=Path)
    parser.add_argument("--core", type=int)
    parser.add_argument("--epochs", type=int, default=100_000)
    parser.add_argument("--paced", metavar="SOCKET")
    parser.add_argument("--hash-every", type=int, default=0)
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})

    workload = workloads.make(options.model)
    elastic = pliant.attach(
        workload.model, workload.optimizer, workload.data, epochs=options.epochs,
        batch_size=workload.batch, logical_shards=workload.shards, drop_last=True,
    )  # fmt: skip
    log = CommitLog(options.commits)
    mortal = Mortal(options.commits, list(workload.model.parameters()))
    pace = pacing.Paced(options.paced) if options.paced else pacing.Free()
    done = time.monotonic()
    for step in elastic.steps():
        # Time not spent in the model: between two steps, and between two batches.
        waited = time.monotonic() - done
        pace.before_step()
        ends = []
        done = time.monotonic()
        for batch in step:
            waited += time.monotonic() - done
            if step.shard.travels_early:
                mortal.before_reduction()
            step.backward(workload.loss(workload.model, batch))
            done = time.monotonic()
            ends.append(done)
        waited += time.monotonic() - done
        step.commit()
        pace.after_step()
        due = options.hash_every and (step.number + 1) % options.hash_every == 0
        sha = parameters_sha(workload.model) if due else None
        log.add(step.number + 1, len(ends), ends=ends, sha=sha, waited=waited)
        done = time.monotonic()


if __name__ == "__main__":
    main()
