"""Prints the times to import torch, then Pliant, and then to attach a model."""

import json
import time

began = time.monotonic()
import torch  # noqa: F401

with_torch = time.monotonic()
from pliant import attach

with_pliant = time.monotonic()

import workloads

workload = workloads.make("transformer")
before = time.monotonic()
attach(workload.model, workload.optimizer, workload.data, epochs=1, batch_size=workload.batch)
after = time.monotonic()
print(
    json.dumps(
        {
            "torch": with_torch - began,
            "pliant": with_pliant - with_torch,
            "attach": after - before,
        }
    )
)
