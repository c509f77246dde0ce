"""Numbers of rows of parquet files, from their metadata."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..errors import InvalidProgram
from .hf_pipeline import parquet_files_of

_THREADS = 16  # wait for files elsewhere
_MAX_FILES_ELSEWHERE = 64  # that are divided into row groups


def are_local(data: Any) -> bool:
    """Whether the data are parquet files of this machine, so that their metadata cost nothing."""
    parts = parquet_files_of(data)
    return parts is not None and not any("://" in file for files, _ in parts for file in files)


def with_rows(data: Any) -> tuple[Any, Sequence[int]] | None:
    """The data in the smallest parts that the library can read, and the rows of each. None: the
    rows are unknown."""
    parts = parquet_files_of(data)
    if parts is None:
        return None
    # The library looks for row groups in one file after the other.
    if hasattr(data, "reshard") and (are_local(data) or len(parts) <= _MAX_FILES_ELSEWHERE):
        data = data.reshard()
        parts = parquet_files_of(data)
    if parts is None or len(parts) != data.num_shards:
        return None
    names = list(dict.fromkeys(file for files, _ in parts for file in files))
    with ThreadPoolExecutor(_THREADS) as threads:
        rows = dict(zip(names, threads.map(_rows_of_groups, names), strict=True))
    return data, [
        sum(
            count
            for file in files
            for group, count in enumerate(rows[file])
            if groups is None or group in groups
        )
        for files, groups in parts
    ]


def _rows_of_groups(file: str) -> list[int]:
    import fsspec
    import pyarrow
    from pyarrow import parquet

    try:
        with fsspec.open(file, "rb") as opened:
            metadata = parquet.ParquetFile(opened).metadata
    except (FileNotFoundError, pyarrow.ArrowInvalid) as error:
        raise InvalidProgram(
            f"data: the rows of {file!r} cannot be read ({error}): correct or leave out the file, "
            "or give samples=N, the samples of an epoch"
        ) from None
    return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
