"""The upper tail of a binomial: the chance that more than half of a sketch's rows are wrong."""

from __future__ import annotations

import math
from functools import cache
from typing import Final

from dptop.envelope.rounding import SLACK, up

__all__ = ["majority"]

MOST_FACTORS: Final = 1023
"""Rows up to which a binomial coefficient is a float."""
SMALLEST_POWER: Final = -290 * math.log(10)
"""The logarithm of a power that is a float with room to spare."""


def majority(rows: int, chance: float) -> float:
    """Return P[Bin(rows, chance) >= (rows + 1)/2], rows odd: never below it, and it grows with `chance`.

    The median of the rows errs only if at least so many do. All terms are positive, so that floats err by less than
    1e-13 of the sum; where a factor is no float they come from logarithms, and err by less than 1e-9 of it.

    >>> round(majority(3, 0.25), 6)  # 3 * 0.25^2 * 0.75 + 0.25^3
    0.15625
    """
    if chance >= 1:
        return 1.0
    if chance <= 0:
        return up(0.0)
    if rows > MOST_FACTORS or rows * math.log(chance) < SMALLEST_POWER:
        right, wrong = math.log1p(-chance), math.log(chance)
        terms = (math.exp(choose + k * wrong + (rows - k) * right) for k, choose in _logarithms(rows))
        return up(sum(terms) * (1 + SLACK))
    rest = 1 - chance
    return up(sum(choose * chance**k * rest ** (rows - k) for k, choose in _terms(rows)))


@cache
def _terms(rows: int) -> tuple[tuple[int, int], ...]:
    return tuple((k, math.comb(rows, k)) for k in range((rows + 1) // 2, rows + 1))


@cache
def _logarithms(rows: int) -> tuple[tuple[int, float], ...]:
    whole = math.lgamma(rows + 1)
    return tuple((k, whole - math.lgamma(k + 1) - math.lgamma(rows - k + 1)) for k in range((rows + 1) // 2, rows + 1))
