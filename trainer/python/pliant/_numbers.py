"""Converts numbers that a program reports, in any form, to float."""

from collections.abc import Callable
from typing import Any

from .errors import InvalidProgram


def one_number(what: str, value: Any) -> float:
    """The float of a number, or of a tensor with one element."""
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidProgram(f"{what} is a {type(value).__name__}: it must be one number") from None


def loss_and_correct(
    said: Any, number: Callable[[str, Any], Any] = one_number
) -> tuple[Any, Any]:
    """The two values of `evaluate`'s result: the loss, and the number of correct samples (0 if it
    returned only the loss). `number` converts each."""
    if isinstance(said, tuple) and len(said) == 2:
        return number("the loss that evaluate returned", said[0]), number(
            "the number of right samples that evaluate returned", said[1]
        )
    if said is None or isinstance(said, tuple):
        raise InvalidProgram(
            f"evaluate returned {'None' if said is None else f'{len(said)} values'}: it must "
            "return the loss of the batch, or (loss, number of correct samples)"
        )
    return number("the loss that evaluate returned", said), 0.0
