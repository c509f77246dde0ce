"""Errors before `pliant.attach`: they reach the job, too."""

import contextlib
from collections.abc import Iterator

from ..errors import InvalidProgram
from ..process import Guard


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Reports InvalidProgram to the job, so that it is not tried again. Inside a training its own
    guard does that."""
    try:
        yield
    except InvalidProgram:
        if Guard.present() is not None:
            raise
        with Guard().beginning():
            raise
