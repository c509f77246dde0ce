"""Converts numbers that a program reports, in any form, to float."""

from typing import Any

from .errors import InvalidProgram


def one_number(what: str, value: Any) -> float:
    """The float of a number, or of a tensor with one element."""
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidProgram(f"{what} is a {type(value).__name__}: it must be one number") from None
