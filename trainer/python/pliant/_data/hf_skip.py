"""Leaves out the first rows of a part of parquet files, before any step of the pipeline sees them.

The library can skip rows only by reading them through all steps, and in older versions its states
may lead to another row than the next.
"""

from collections.abc import Callable, Iterator
from math import lcm
from typing import Any

from .hf_pipeline import steps_of


def without_rows(part: Any, data: Any, count: int) -> int:
    """Changes `part`, which was just made of `data`, so that it begins up to `count` rows later.
    Returns the number of rows that are left out: batches of a map keep their limits."""
    *later, first = steps_of(part)
    batches = [step.batch_size for step in later if getattr(step, "batched", False)]
    if not all(isinstance(size, int) and size > 0 for size in batches):
        return 0  # a batch is the whole part
    if any(first is step for step in steps_of(data)) or getattr(part, "num_shards", None) != 1:
        return 0
    left_out = count - count % lcm(*batches)
    first.generate_tables_fn = _later(first.generate_tables_fn, left_out)
    return left_out


def _later(tables: Callable[..., Iterator[Any]], count: int) -> Callable[..., Iterator[Any]]:
    def generate(*sources: Any, **named: Any) -> Iterator[Any]:
        left = count
        for key, table in tables(*sources, **named):
            rows = len(table)
            if left < rows:
                yield key, table.slice(left) if left else table
            left = max(0, left - rows)

    return generate
