"""The upper tail of a binomial: the chance that more than half of a sketch's rows are wrong."""

from __future__ import annotations

from functools import cache
from math import comb

from dptop.envelope.rounding import up

__all__ = ["majority"]


def majority(rows: int, chance: float) -> float:
    """Return P[Bin(rows, chance) >= (rows + 1)/2], rows odd: never below it, and it grows with `chance`.

    The median of the rows errs only if at least so many do. All terms are positive, so that floats err by less than
    1e-13 of the sum.

    >>> round(majority(3, 0.25), 6)  # 3 * 0.25^2 * 0.75 + 0.25^3
    0.15625
    """
    if chance >= 1:
        return 1.0
    right = 1 - chance
    return up(sum(choose * chance**k * right ** (rows - k) for k, choose in _terms(rows)))


@cache
def _terms(rows: int) -> tuple[tuple[int, int], ...]:
    return tuple((k, comb(rows, k)) for k in range((rows + 1) // 2, rows + 1))
