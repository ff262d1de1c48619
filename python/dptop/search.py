"""Searches in the whole numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["smallest_by_bisection"]


def smallest_by_bisection(holds: Callable[[int], bool]) -> int:
    """Return the smallest integer >= 0 at which `holds` is true, for a condition that stays true once it is.

    The search doubles a bound until the condition holds there, then halves: about 2 log2 of the result in calls.

    >>> smallest_by_bisection(lambda x: x * x >= 1000)
    32
    """
    high = 1
    while not holds(high - 1):
        high *= 2
    low, high = high // 2, high - 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
