"""The steps of a pipeline of the library datasets: files, then maps, filters, and others.

The library has no public way to ask for them. So the private one is read with care: a step that is
unknown here has an unknown number of samples.
"""

import re
from collections.abc import Iterator
from typing import Any

from ..errors import InvalidProgram

# Steps of .shuffle, by version of the library.
_SHUFFLES = {
    "BufferShuffledExamplesIterable",
    "InterleavedShardsExamplesIterable",
    "ShuffledDataSourcesArrowExamplesIterable",
    "ShuffledDataSourcesExamplesIterable",
}
_FIRST_EXACT = (5, 2)  # the library's version
_OF_FILES = "ArrowExamplesIterable"
_MAP = "MappedExamplesIterable"
# Steps that yield as many samples as they get. A map of batches may not, which is checked later.
_SAME_NUMBER = {
    "FormattedExamplesIterable",
    "RebatchedArrowExamplesIterable",
    "SelectColumnsIterable",
    _MAP,
}


def steps_of(data: Any) -> Iterator[Any]:
    """The steps from the last to the first. Several sources follow one another."""
    waiting = [getattr(data, "_ex_iterable", None)]
    while waiting:
        step = waiting.pop()
        if step is not None:
            yield step
            sources = getattr(step, "ex_iterables", None)
            waiting += (
                sources if isinstance(sources, list) else [getattr(step, "ex_iterable", None)]
            )


def check(data: Any) -> None:
    """Raises InvalidProgram for steps after which a sample is not used once, in one order."""
    names = {type(step).__name__ for step in steps_of(data)}
    if names & _SHUFFLES or getattr(data, "_shuffling", None) is not None:
        raise InvalidProgram(
            "data has .shuffle(...), whose buffer is lost when a learner takes over: take it off, "
            "and give shuffle=10000, or another number of samples, to pliant.data.HuggingFace"
        )
    if getattr(data, "_distributed", None) is not None:
        raise InvalidProgram(
            "data was divided by split_dataset_by_node(...): take it off, as the job divides the "
            "samples among its learners"
        )
    if any(getattr(step, "with_indices", False) for step in steps_of(data)):
        raise InvalidProgram(
            "data has .map(..., with_indices=True), .filter(..., with_indices=True) or "
            ".add_column(...): they number the samples of each part from 0, and the parts depend "
            "on the number of logical shards. Make the number a column of the files"
        )


def parquet_files_of(data: Any) -> list[tuple[list[str], tuple[int, ...] | None]] | None:
    """The parquet files that each part of the data is made of, and its row groups (None: all of
    them). None: the data are made of something else, or samples are left out."""
    *later, first = steps_of(data)
    if type(first).__name__ != _OF_FILES:
        return None
    for step in later:
        if type(step).__name__ not in _SAME_NUMBER or getattr(step, "drop_last_batch", False):
            return None
    builder = getattr(getattr(first, "generate_tables_fn", None), "__self__", None)
    config = getattr(builder, "config", None)
    if type(builder).__name__ != "Parquet" or getattr(config, "filters", None) is not None:
        return None
    given = getattr(first, "kwargs", None)
    if not isinstance(given, dict) or not isinstance(given.get("files"), list):
        return None
    files = [_paths(file) for file in given["files"]]
    groups = given.get("row_groups_list") or [None] * len(files)
    if not all(files) or len(groups) != len(files):
        return None
    return [
        (paths, None if group is None else tuple(group))
        for paths, group in zip(files, groups, strict=True)
    ]


def _paths(file: Any) -> list[str]:
    """The files that the library lists as one: a path or, before version 4.5, several. Empty: it is
    something else."""
    paths = list(file) if type(file).__name__ == "FilesIterable" else [file]
    return paths if all(isinstance(path, str) for path in paths) else []


def has_exact_states(data: Any, version: str) -> bool:
    """Whether the library continues from its state exactly where it was. It did not before version
    5.2, and its manual excludes maps of batches of tables."""
    if tuple(int(number) for number in re.findall(r"\d+", version)[:2]) < _FIRST_EXACT:
        return False
    tables = bool(getattr(getattr(data, "_formatting", None), "is_table", False))
    return not (tables and has_batches(data))


def has_batches(data: Any) -> bool:
    """Whether a step computes several samples at once."""
    return any(getattr(step, "batched", False) for step in steps_of(data))
