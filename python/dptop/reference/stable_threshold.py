"""The release of a SpaceSaving summary, formula by formula: docs/privacy.md sections 4 and 5, as text that runs.

It shares no code with `dptop.mechanism` and `dptop.noise`: chances are sums over the probabilities of single values,
not closed forms. Slow; meant for epsilon of about 0.05 and more.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from dptop.tie import Tie

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

__all__ = ["chance_above", "interval", "laplace", "release", "smallest_offset"]

Label = TypeVar("Label")

LEFT_OUT = Decimal("1e-40")
"""Sums over all integers stop where less than this is left, and count what is left against the promise."""


def release(
    counters: Mapping[Label, int],
    minimum: int,
    *,
    offset: int,
    minimum_noise: int,
    noise: Mapping[Label, int],
) -> tuple[int, dict[Label, int]]:
    """Return (u, v): the noisy minimum u = m + Z_0, and v[x] = C[x] + Z_x where it exceeds u by more than `offset`.

    >>> release({"a": 40, "b": 12}, 12, offset=16, minimum_noise=-1, noise={"a": 2, "b": 0})
    (11, {'a': 42})
    """
    u = minimum + minimum_noise
    v = {x: count + noise[x] for x, count in counters.items()}
    return u, {x: v[x] for x in v if v[x] - u > offset}


def smallest_offset(epsilon: Fraction, delta: Decimal, tie: Tie) -> int:
    """Return 1 + G, G the smallest integer >= 0 at which an isolated label is published with chance at most delta.

    Least recent: one such label, one above the minimum. Most recent: another one at the minimum.
    """
    gap = 0
    while True:
        chance = chance_above(epsilon, gap)
        if tie is Tie.MOST_RECENT:
            chance += chance_above(epsilon, gap + 1)
        if chance <= delta:
            return 1 + gap
        gap += 1


def interval(noisy_count: int, noisy_minimum: int, *, epsilon: Fraction, offset: int, beta: Decimal) -> tuple[int, int]:
    """Return (low, high) for one published label, given that it was published, at risk beta.

    high = v + q with q the smallest at which P[Z < -q] <= beta/2; low = the smallest D >= 0 at which
    P[W >= w - D] > (beta/2) P[W > offset - D], with w = v - u and W = Z_x - Z_0.
    """
    q = 0
    while sum(p for z, p in laplace(epsilon).items() if z < -q) > beta / 2:
        q += 1
    w = noisy_count - noisy_minimum
    d = 0
    while chance_above(epsilon, w - d - 1) <= beta / 2 * chance_above(epsilon, offset - d):
        d += 1
    return d, noisy_count + q


def chance_above(epsilon: Fraction, g: int) -> Decimal:
    """Return P[Z_x - Z_0 > g], what the sums left out included."""
    chances = differences_above(epsilon)
    reach = max(chances)
    return chances[max(-reach, min(g, reach))]


@lru_cache(maxsize=8)
def differences_above(epsilon: Fraction) -> dict[int, Decimal]:
    """Return P[Z_x - Z_0 > g] for every g that matters: sum over z of P[Z_0 = z] P[Z_x > g + z]."""
    with localcontext() as context:
        context.prec = 60
        p = laplace(epsilon)
        reach = max(p)
        above = dict.fromkeys(range(reach, 2 * reach + 1), Decimal(0))  # P[Z_x > y]
        for y in range(reach - 1, -2 * reach - 1, -1):
            above[y] = above[y + 1] + p.get(y + 1, Decimal(0))
        return {g: 4 * LEFT_OUT + sum(p[z] * above[g + z] for z in p) for g in range(-reach, reach + 1)}


@lru_cache(maxsize=8)
def laplace(epsilon: Fraction) -> dict[int, Decimal]:
    """Return P[Z = z] = (1 - a)/(1 + a) a^|z| for every z that matters."""
    with localcontext() as context:
        context.prec = 60
        a = (-Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        powers = [Decimal(1)]
        while powers[-1] > LEFT_OUT * (1 - a):
            powers.append(powers[-1] * a)
        return {z: (1 - a) / (1 + a) * powers[abs(z)] for z in range(1 - len(powers), len(powers))}
