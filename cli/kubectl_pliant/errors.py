"""The errors that a user reads: one sentence with the remedy, and the exit code."""

from __future__ import annotations

import os
import traceback

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130


class CommandError(Exception):
    """Ends the command with this sentence on standard error."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code


class NotFoundError(CommandError):
    """The object does not exist."""


class ForbiddenError(CommandError):
    """The API server does not allow the request."""


def bug(error: Exception) -> CommandError:
    """The sentence for an error that this program should not have made."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"
    return CommandError(f"a bug of kubectl-pliant, please report it: {type(error).__name__} in {where}")
