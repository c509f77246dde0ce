"""Checks of values that a program passes. A check takes the value's name and the value, and returns
it in the form that is used. It raises InvalidProgram, with the name, the value and the accepted
values."""

import operator
import os
from collections.abc import Callable
from typing import Any

from .errors import InvalidProgram

Check = Callable[[str, Any], Any]


def whole(least: int, most: int) -> Check:
    """A whole number of any integer type, also numpy's, but not a bool."""
    accepted = f"a whole number from {least} to {most}"

    def check(name: str, value: Any) -> int:
        try:
            number = operator.index(value)
        except TypeError:
            raise _wrong(name, value, accepted) from None
        if isinstance(value, bool) or not least <= number <= most:
            raise _wrong(name, value, accepted)
        return number

    return check


def clip_limit(name: str, value: Any) -> float:
    """A number above 0, which may be infinite: it then clips nothing."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise _wrong(name, value, "a number above 0") from None
    if not number > 0:
        raise _wrong(name, value, "a number above 0")
    return number


def powers_around(number: int) -> str:
    """The powers of two next to a number that is none."""
    below = 1 << (number.bit_length() - 1)
    return f"{below} or {2 * below}"


def power_of_two(most: int) -> Check:
    is_whole = whole(1, most)

    def check(name: str, value: Any) -> int:
        number: int = is_whole(name, value)
        if number & (number - 1):
            raise _wrong(name, number, f"a power of two, such as {powers_around(number)}")
        return number

    return check


def one_of(*accepted: str) -> Check:
    def check(name: str, value: Any) -> Any:
        if not isinstance(value, str) or value not in accepted:
            raise _wrong(name, value, " or ".join(map(repr, accepted)))
        return value

    return check


def or_none(other: Check) -> Check:
    return lambda name, value: None if value is None else other(name, value)


def with_methods(accepted: str, *methods: str) -> Check:
    """An object with all of these methods."""

    def check(name: str, value: Any) -> Any:
        if not all(callable(getattr(value, method, None)) for method in methods):
            raise InvalidProgram(f"the {name} is a {type(value).__name__}: it must be {accepted}")
        return value

    return check


def anything(name: str, value: Any) -> Any:
    return value


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, value, "True or False")
    return value


def text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise _wrong(name, value, "a text that is not empty")
    return value


def function(name: str, value: Any) -> Any:
    if not callable(value):
        raise _wrong(name, value, "a function")
    return value


def folder(name: str, value: Any) -> str | None:
    """None: the path is empty."""
    try:
        return os.fsdecode(value) or None
    except TypeError:
        raise _wrong(name, value, "a path") from None


def whole_of_text(written: str, least: int, most: int) -> int | None:
    """The number in the text of an environment variable. None: it is no whole number in the
    range."""
    if not written.isascii() or not written.isdigit() or len(written) > 20:
        return None
    return int(written) if least <= int(written) <= most else None


def _wrong(name: str, value: Any, accepted: str) -> InvalidProgram:
    shown = repr(value)
    if len(shown) > 60:
        shown = f"a {type(value).__name__}"
    return InvalidProgram(f"{name} is {shown}: it must be {accepted}")
