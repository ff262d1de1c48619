"""Checks of arguments: one place for what a whole number, a number and a text is.

Messages say rule, value and remedy.
"""

from __future__ import annotations

import math
import numbers
import operator
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from dptop.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["as_written", "encoded", "one_of", "real_number", "shown", "whole_number"]

MAX_SHOWN: Final = 40


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


def real_number(name: str, value: object, rule: str, holds: Callable[[float], bool], remedy: str) -> float:
    """Return `value` as a float for which `holds` is true; NaN holds nothing.

    A bool and a text are no numbers. A number that no float equals is refused: the nearest one may be above it.

    >>> real_number("share", 1, "0 < share <= 1", lambda x: 0 < x <= 1, "0.01 asks for 1 %.")
    1.0
    """
    try:
        number = float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not holds(number) or number != value:
        raise InvalidParameter(f"{name} must be a float with {rule}; got {shown(value)}. {remedy}")
    return number


def as_written(number: float) -> Decimal:
    """Return a float as the decimal that it is written as: 0.1 means 1/10, not the nearest binary fraction.

    >>> as_written(0.1)
    Decimal('0.1')
    """
    return Decimal(repr(float(number)))


def encoded(name: str, value: object, remedy: str) -> bytes:
    """Return a text as UTF-8, or as the bytes that `os.fsdecode` made it of; other lone surrogates are refused.

    >>> encoded("column", "größe", "Name one column.").decode()
    'größe'
    """
    try:
        if not isinstance(value, str):
            raise TypeError
        return value.encode(errors="surrogateescape")
    except (TypeError, UnicodeEncodeError):
        raise InvalidParameter(f"{name} must be a str that UTF-8 can hold; got {shown(value)}. {remedy}") from None


def shown(value: object) -> str:
    """Return a refused parameter as messages say it: numbers and short texts as they are, all else by its type.

    Only for what is declared without looking at the data. Items and weights are never shown.

    >>> shown("abc"), shown(-1), shown(["/home"]), shown(10**5000)
    ("'abc'", '-1', 'a value of type list', 'a value of type int')
    """
    try:
        text = repr(value) if value is None or isinstance(value, (numbers.Number, str)) else ""
    except ValueError:  # int refuses to write very large ones
        text = ""
    return text if 0 < len(text) <= MAX_SHOWN else f"a value of type {type(value).__name__}"


def _power(number: int) -> str:
    for text, value in (("2**31", 2**31), ("2**40", 2**40), ("2**63 - 1", 2**63 - 1)):
        if number == value:
            return text
    return str(number)


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
