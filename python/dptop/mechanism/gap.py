"""What noise adds to a threshold, so that labels which one neighbour alone tracks stay below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dptop.privacy import PRECISE
from dptop.search import smallest_by_bisection

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal
    from fractions import Fraction

    from dptop.tie import Tie

__all__ = ["failure", "smallest_gap"]


def smallest_gap(chance: Callable[[Fraction, int], Decimal], epsilon: Fraction, delta: Decimal, tie: Tie) -> int:
    """Return the smallest gap >= 0 at which such a label is published with chance at most delta."""
    return smallest_by_bisection(lambda g: failure(chance, epsilon, g, tie) <= delta)


def failure(chance: Callable[[Fraction, int], Decimal], epsilon: Fraction, gap: int, tie: Tie) -> Decimal:
    """Return the chance that a label tracked by one neighbour only is published, at 1 + gap above its minimum.

    `chance` is that of more than so many items of noise. Theorem B: one such label may exceed its own minimum, by one;
    a second, under most recent, may only equal it.
    """
    total = chance(epsilon, gap)
    for i in range(1, tie.isolated_per_side):
        total = PRECISE.add(total, chance(epsilon, gap + i))
    return total
