"""Searches in the whole numbers."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["smallest_between", "smallest_by_bisection", "smallest_sum"]

EXACT_BITS: Final = 16


def smallest_by_bisection(holds: Callable[[int], bool]) -> int:
    """Return the smallest integer >= 0 at which `holds` is true, for a condition that stays true once it is.

    The search doubles a bound until the condition holds there, then halves: about 2 log2 of the result in calls.

    >>> smallest_by_bisection(lambda x: x * x >= 1000)
    32
    """
    high = 1
    while not holds(high - 1):
        high *= 2
    return smallest_between(high // 2, high - 1, holds)


def smallest_between(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the smallest integer from `low` to `high` at which `holds` is true, or `high` if it is at none below.

    >>> smallest_between(10, 40, lambda x: x * x >= 1000)
    32
    """
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def smallest_sum(
    first: Callable[[int], float], second: Callable[[int], float], allowed: float, most: int, times: int = 1
) -> tuple[int, int] | None:
    """Return the integers x, y >= 0 of the smallest times * x + y with first(x) + second(y) <= allowed.

    None if there are none with times * x + y <= most. Both functions must never grow. The minimum is exact below 2^16,
    above it at most one in 2^16 too large. A range of x from a to b, whose y at b is y_b, holds no sum below
    times * a + y_b; ranges are halved, the one with the least such bound first, until none leaves room for a better
    sum. Nothing else is assumed of the functions, whose calls are what the search costs.

    >>> smallest_sum(lambda x: 100 / (x + 1), lambda y: 400 / (y + 1), allowed=1, most=10_000)
    (299, 599)
    >>> smallest_sum(lambda x: 100 / (x + 1), lambda y: 400 / (y + 1), allowed=1, most=897) is None
    True
    """
    if most < 0 or first(most // times) + second(most) > allowed:
        return None

    def y_of(x: int, low: int, high: int) -> int:
        part = first(x)
        return smallest_between(low, high, lambda y: part + second(y) <= allowed)

    right = most // times
    left = smallest_between(0, right, lambda x: first(x) + second(most) <= allowed)
    ranges = [(times * left, left, right, y_of(right, 0, most), most)]
    best: tuple[int, int] | None = None
    below = most + 1
    while ranges:
        bound, a, b, y_b, y_a = heappop(ranges)
        if bound >= below - (below >> EXACT_BITS):
            break
        middle = (a + b) // 2
        y = y_of(middle, y_b, y_a)
        if times * middle + y < below:
            best, below = (middle, y), times * middle + y
        for low, high, y_high, y_low in ((a, middle - 1, y, y_a), (middle + 1, b, y_b, y)):
            if low <= high and times * low + y_high < below:
                heappush(ranges, (times * low + y_high, low, high, y_high, y_low))
    return best
