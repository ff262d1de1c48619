"""The paper's Algorithm 3, corrected, formula by formula: docs/privacy.md section 12, as text that runs.

It shares no code with `dptop.mechanism` and `dptop.noise`: chances are sums over the probabilities of single values.
"""

from __future__ import annotations

from decimal import Decimal
from math import floor
from typing import TYPE_CHECKING, TypeVar

from dptop.reference.stable_threshold import LEFT_OUT, laplace
from dptop.tie import Tie

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

__all__ = ["chance_above", "release", "smallest_gap", "smallest_slack", "threshold"]

Label = TypeVar("Label")


def release(counters: Mapping[Label, int], noise: Mapping[Label, int], *, threshold: int) -> dict[Label, int]:
    """Return v[x] = C[x] + Z_x where it exceeds the threshold.

    >>> release({"a": 40, "b": 12}, {"a": 2, "b": 0}, threshold=30)
    {'a': 42}
    """
    v = {x: count + noise[x] for x, count in counters.items()}
    return {x: v[x] for x in v if v[x] > threshold}


def threshold(length: int, *, share: Fraction, capacity: int, gap: int) -> int:
    """Return max(floor(N/k) - g, floor(N/K) + 1 + g), with 1/k the share and K the capacity."""
    return max(floor(length * share) - gap, length // capacity + 1 + gap)


def smallest_gap(epsilon: Fraction, delta: Decimal, tie: Tie) -> int:
    """Return the smallest g >= 0 at which an isolated label is published with chance at most delta.

    Least recent: one such label, one above the minimum. Most recent: another one at the minimum.
    """
    g = 0
    while True:
        chance = chance_above(epsilon, g)
        if tie is Tie.MOST_RECENT:
            chance += chance_above(epsilon, g + 1)
        if chance <= delta:
            return g
        g += 1


def smallest_slack(epsilon: Fraction, delta: Decimal) -> int:
    """Return the smallest t >= 0 at which n + Z + t falls short of n with chance at most delta."""
    t = 0
    while chance_above(epsilon, t) > delta:
        t += 1
    return t


def chance_above(epsilon: Fraction, g: int) -> Decimal:
    """Return P[Z > g], what the sum leaves out included."""
    return LEFT_OUT + sum((p for z, p in laplace(epsilon).items() if z > g), Decimal(0))
