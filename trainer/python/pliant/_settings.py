"""Checks the settings that a program passes: an error names the setting, its value, and the
accepted values."""

import operator
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from .errors import InvalidProgram

OnNonFinite = Literal["stop", "skip", "warn"]
LossReduction = Literal["mean", "sum"]

_BATCH_MAX = 1 << 32
_SHARDS_MAX = 1 << 16
_SEED_MAX = (1 << 64) - 1
_WORKERS_MAX = 1 << 10
_THREADS_MAX = 1 << 10
_EPOCHS_MAX = 1 << 40


@dataclass(frozen=True)
class Settings:
    """The settings common to all frameworks. None: the job's value, or a default."""

    epochs: int
    batch_size: int | None
    logical_shards: int | None
    seed: int | None
    drop_last: bool
    on_nonfinite: OnNonFinite
    num_workers: int
    threads: int | None
    checkpoint_dir: str | None
    name: str | None

    @staticmethod
    def of(
        *,
        epochs: Any,
        batch_size: Any,
        logical_shards: Any,
        seed: Any,
        drop_last: Any,
        on_nonfinite: Any,
        num_workers: Any,
        threads: Any,
        checkpoint_dir: Any,
        name: Any,
    ) -> "Settings":
        """Raises InvalidProgram if a setting is wrong."""
        shards = whole_or_none("logical_shards", logical_shards, 1, _SHARDS_MAX)
        if shards is not None and shards & (shards - 1):
            raise InvalidProgram(f"logical_shards is {shards}: it must be a power of two")
        return Settings(
            epochs=whole("epochs", epochs, 1, _EPOCHS_MAX),
            batch_size=whole_or_none("batch_size", batch_size, 1, _BATCH_MAX),
            logical_shards=shards,
            seed=whole_or_none("seed", seed, 0, _SEED_MAX),
            drop_last=flag("drop_last", drop_last),
            on_nonfinite=one_of("on_nonfinite", on_nonfinite, get_args(OnNonFinite)),
            num_workers=whole("num_workers", num_workers, 0, _WORKERS_MAX),
            threads=whole_or_none("threads", threads, 1, _THREADS_MAX),
            checkpoint_dir=_folder("checkpoint_dir", checkpoint_dir),
            name=text_or_none("name", name),
        )


def whole(name: str, value: Any, least: int, most: int) -> int:
    """A whole number of any integer type, also numpy's, but not a bool."""
    accepted = f"a whole number from {least} to {most}"
    try:
        number = operator.index(value)
    except TypeError:
        raise _wrong(name, value, accepted) from None
    if isinstance(value, bool) or not least <= number <= most:
        raise _wrong(name, value, accepted)
    return number


def whole_or_none(name: str, value: Any, least: int, most: int) -> int | None:
    return None if value is None else whole(name, value, least, most)


def whole_of_text(text: str, least: int, most: int) -> int | None:
    """The number in the text of an environment variable. None: it is no whole number in the
    range."""
    if not text.isascii() or not text.isdigit() or len(text) > 20:
        return None
    return int(text) if least <= int(text) <= most else None


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, value, "True or False")
    return value


def one_of(name: str, value: Any, accepted: tuple[Any, ...]) -> Any:
    if not isinstance(value, str) or value not in accepted:
        raise _wrong(name, value, " or ".join(map(repr, accepted)))
    return value


def text_or_none(name: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value or "\0" in value:
        raise _wrong(name, value, "a text that is not empty")
    return value


def function_or_none(name: str, value: Any) -> Callable[..., Any] | None:
    if value is not None and not callable(value):
        raise _wrong(name, value, "a function")
    return value  # type: ignore[no-any-return]


def threads_from_environment() -> int:
    """OMP_NUM_THREADS, else 1. It may be a list, one number for each nesting level: the first
    counts."""
    said = os.environ.get("OMP_NUM_THREADS") or "1"
    threads = whole_of_text(said.partition(",")[0].strip(), 1, _THREADS_MAX)
    if threads is None:
        raise InvalidProgram(
            f"OMP_NUM_THREADS is {said!r}: it must be a whole number from 1 to {_THREADS_MAX}"
        )
    return threads


def _folder(name: str, value: Any) -> str | None:
    if value is None or value == "":
        return None
    try:
        return os.fsdecode(value)
    except TypeError:
        raise _wrong(name, value, "a path") from None


def _wrong(name: str, value: Any, accepted: str) -> InvalidProgram:
    shown = repr(value)
    if len(shown) > 60:
        shown = f"a {type(value).__name__}"
    return InvalidProgram(f"{name} is {shown}: it must be {accepted}")
