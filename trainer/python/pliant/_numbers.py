"""Numbers that a program says, in whichever form."""

from typing import Any

from .errors import InvalidProgram


def loss_and_correct(said: Any) -> tuple[float, float]:
    """What `evaluate` returned: the loss, or the loss and how many samples are right."""
    if isinstance(said, tuple) and len(said) == 2:
        return one_number("the loss that evaluate returned", said[0]), one_number(
            "the number of right samples that evaluate returned", said[1]
        )
    if said is None or isinstance(said, tuple):
        raise InvalidProgram(
            f"evaluate returned {'None' if said is None else f'{len(said)} values'}: it returns "
            "the loss of the batch, or (loss, how many of its samples are right)"
        )
    return one_number("the loss that evaluate returned", said), 0.0


def one_number(what: str, value: Any) -> float:
    """Of a number, or a tensor of one."""
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidProgram(f"{what} is a {type(value).__name__}: it must be one number") from None
