"""Checks of arguments: one place for what a whole number or a number is. Messages say rule, value and remedy."""

from __future__ import annotations

import operator
from typing import Final

from dptop.errors import InvalidParameter

__all__ = ["one_of", "real_number", "shown", "whole_number"]

MAX_SHOWN: Final = 80


def whole_number(name: str, value: object, low: int, high: int, remedy: str) -> int:
    """Return `value` as an int between `low` and `high`; a bool, a float and a text are none.

    >>> whole_number("top", 20, 1, 2**31, "Ask for at least one row.")
    20
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]  # the except clause is the check
    except TypeError:
        number = low - 1
    if not low <= number <= high:
        raise InvalidParameter(
            f"{name} must be a whole number from {low} to {_power(high)}; got {shown(value)}. {remedy}"
        )
    return number


def shown(value: object) -> str:
    """Return a refused value as it is written, cut to a line; its type, if it cannot be written.

    >>> shown("abc"), shown(10**5000)
    ("'abc'", 'a value of type int')
    """
    try:
        text = repr(value)
    except Exception:
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


def _power(number: int) -> str:
    for text, value in (("2**31", 2**31), ("2**63 - 1", 2**63 - 1)):
        if number == value:
            return text
    return str(number)


def real_number(name: str, value: object, rule: str) -> float:
    """Return `value` as a float, or refuse it with the rule: a bool and a text are no numbers.

    >>> real_number("epsilon", 1, "2**-20 <= epsilon <= 64")
    1.0
    """
    try:
        if isinstance(value, (bool, str, bytes)):
            raise TypeError
        return float(value)  # type: ignore[arg-type]  # the except clause is the check
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter(f"{name} must be a number with {rule}; got {shown(value)}. Pass a float.") from None


def one_of(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of the choices.

    >>> one_of("tie", "least-recent", ("least-recent", "most-recent"))
    'least-recent'
    """
    if isinstance(value, str) and value in choices:
        return value
    raise InvalidParameter(
        f"{name} must be one of {', '.join(map(repr, choices))}; got {shown(value)}. Choose one of them."
    )
