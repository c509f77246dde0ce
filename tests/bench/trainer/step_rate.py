"""Measures the time of a step: alone, compared with a plain loop that passes the same small batches
through the model; and of two learners, compared with two processes of DistributedDataParallel over
gloo.

Each process has one thread and a core of its own. They take turns, a few steps at a time.
"""

import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from paced import start_alone, start_ddp, start_pliant
from rows import Aim, Measured, Row, line, measured_row

_MODELS = ("cnn", "transformer", "resnet18")
_QUICK_MODELS = ("transformer",)
# Only these models also get the rows without an aim: a step of the others takes too long.
_MODELS_WITHOUT_AIM = ("cnn", "transformer")
_ROUNDS = 30
_STEPS = {1: 2, 2: 3}  # per turn, by the number of processes
_WARM_UP = 5
_OVERHEAD = Aim("ratio", 0.97)  # at most 3 % slower
_NOT_SLOWER = Aim("ratio", 1.0)


def measure(binaries: Path, *, quick: bool) -> Iterator[Row]:
    del binaries
    for model in _QUICK_MODELS if quick else _MODELS:
        yield from _of_model(model, quick, without_aim=model in _MODELS_WITHOUT_AIM and not quick)


def _of_model(model: str, quick: bool, *, without_aim: bool) -> Iterator[Row]:
    """`without_aim`: also measure the rows that have no aim."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pliant-bench-")))
        groups = {
            "plain": (1, start_alone(stack, scratch, "plain", "torch_learner.py", model)),
            "pliant": (1, start_alone(stack, scratch, "pliant", "pliant_learner.py", model)),
            "ddp 2": (2, start_ddp(stack, scratch, "ddp", model)),
            "pliant 2": (2, start_pliant(stack, scratch, "two", model)),
        }
        if not quick:
            shm = start_pliant(stack, scratch, "shm", model, PLIANT_SHARED_MEMORY_DIR=str(scratch))
            groups["pliant 2 shm"] = (2, shm)
        if without_aim:
            whole = start_alone(stack, scratch, "whole", "torch_learner.py", model, "--whole")
            # Statistical mode computes a learner's share as one batch.
            merged = {"PLIANT_REPRODUCIBILITY": "Statistical"}
            groups |= {
                "statistical": (
                    1,
                    start_alone(
                        stack, scratch, "statistical", "pliant_learner.py", model, **merged
                    ),
                ),
                "statistical 2": (2, start_pliant(stack, scratch, "merged", model, **merged)),
                "whole": (1, whole),
                "ddp 2 whole": (2, start_ddp(stack, scratch, "ddp-whole", model, "--whole")),
            }
        times = defaultdict(list)
        for _, pacer in groups.values():
            pacer.steps(_WARM_UP)
        for _ in range(2 if quick else _ROUNDS):
            for name, (processes, pacer) in groups.items():
                # The mean of a turn, not of each step, so that occasional work counts, too.
                times[name].append(statistics.mean(pacer.steps(_STEPS[processes])) * 1000)
        measured = {name: Measured.of(found) for name, found in times.items()}
    comparisons = [
        ("1", "pliant", "plain", _OVERHEAD, ""),
        ("1/whole-batch", "pliant", "whole", None, "the rival's batch is not cut into shards"),
        ("1/plain", "plain", "whole", None, "what small batches cost a plain loop"),
        (
            "1/bitwise",
            "pliant",
            "statistical",
            None,
            "what bitwise mode costs (the rival has none)",
        ),
        ("2/bitwise", "pliant 2", "statistical 2", None, "the same of two learners"),
        ("2", "pliant 2", "ddp 2", _NOT_SLOWER, "under TLS, as in a job; the rival's is plain"),
        ("2/whole-batch", "pliant 2", "ddp 2 whole", None, "the rival's halves are not cut"),
        ("2/shm", "pliant 2 shm", "ddp 2", None, "gradients by shared memory"),
    ]
    for what, ours, rival, aim, note in comparisons:
        if ours not in measured or rival not in measured:
            continue
        row = measured_row(
            f"step/{model}/{what}",
            "ms",
            measured[ours],
            measured[rival],
            aim=aim,
            note=note or None,
        )
        print(line(row), flush=True)
        yield row
