"""Discrete Laplace noise: the one source of randomness, and the exact chances of what it draws.

P[Z = z] = (1 - a)/(1 + a) * a^|z| on the integers, with a = exp(-epsilon): the two-sided geometric distribution
(Ghosh, Roughgarden, Sundararajan 2012). One counter that changes by one, plus Z, is epsilon-differentially private.

Two kinds of numbers live here and are kept apart. Chances that the privacy promise rests on are decimals of 60 digits,
rounded so that they are never below the true value. Quantiles, which only size intervals, may use floats; they are
never below the true quantile either. Derivations: docs/privacy.md sections 4 and 5.
"""

from __future__ import annotations

import hashlib
import math
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from dptop import _native
from dptop.errors import InvalidParameter
from dptop.privacy import EPSILON_STEP, PRECISE, to_decimal

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

__all__ = [
    "difference_pmf",
    "difference_tail",
    "draw",
    "log_difference_at_least",
    "log_difference_ratio",
    "pmf",
    "quantile",
    "simultaneous_difference_quantile",
    "simultaneous_quantile",
    "smallest",
    "tail",
]

ONE: Final = Decimal(1)

ROUND_UP: Final = PRECISE.add(ONE, Decimal("1e-45"))
"""Lifts a chance above all rounding: 60 digits, of which at most 10 cancel in 1 - a, leave an error below 1e-48."""

SLACK: Final = 1e-9
"""Relative error granted to a chance in floats, at the cost of a wider interval; floats err by less than 1e-11."""

LONGEST_SUM: Final = 4096
"""Terms of the sum behind a simultaneous quantile; a wider support is summed in blocks, each at its worst end."""


def draw(epsilon: Fraction, count: int, seed: int | None = None) -> list[int]:
    """Return `count` independent draws of Z, exact: integers only, no rounding, fresh entropy of the system per call.

    Args:
        epsilon: a positive multiple of 2^-32.
        count: how many draws, at least 0.
        seed: None, always, outside tests. A seed makes the draws repeatable and whatever carries them not private.

    Raises:
        InvalidParameter: epsilon is off the grid.

    Source: Canonne, Kamath, Steinke 2020; the protocol, word by word, is dptop/reference/discrete_laplace.py.
    """
    numerator = epsilon / EPSILON_STEP
    if numerator.denominator != 1 or numerator <= 0:
        raise InvalidParameter(
            f"epsilon must be a positive multiple of 2**-32; got {epsilon}. Round it with dptop.privacy.exact_epsilon."
        )
    return _native.discrete_laplace(numerator.numerator, count, None if seed is None else seed_bytes(seed))


def seed_bytes(seed: int) -> bytes:
    """Return the 32 bytes that stand for an integer seed."""
    return hashlib.sha256(str(seed).encode()).digest()


def pmf(epsilon: Fraction, z: int) -> Decimal:
    """Return P[Z = z], to a relative error below 1e-45.

    >>> from fractions import Fraction
    >>> round(pmf(Fraction(1), 0), 6)
    Decimal('0.462117')
    """
    a = _decay(epsilon, 1)
    return PRECISE.multiply(PRECISE.divide(PRECISE.subtract(ONE, a), PRECISE.add(ONE, a)), _decay(epsilon, abs(z)))


def tail(epsilon: Fraction, g: int) -> Decimal:
    """Return P[Z > g]: never below it, and above it by at most a relative 2e-45.

    a^(g+1) / (1 + a) for g >= 0; below that 1 - P[Z > -g-1], by symmetry.

    >>> from fractions import Fraction
    >>> round(tail(Fraction(1), 0), 6)
    Decimal('0.268941')
    """
    return _at_most_one(_tail(epsilon, g))


def difference_pmf(epsilon: Fraction, w: int) -> Decimal:
    """Return P[W = w] for the difference W of two independent draws, to a relative error below 1e-45.

    ((1-a)/(1+a))^2 * a^|w| * (|w| + (1 + a^2)/(1 - a^2)).
    """
    a = _decay(epsilon, 1)
    square = PRECISE.multiply(a, a)
    ratio = PRECISE.divide(PRECISE.subtract(ONE, a), PRECISE.add(ONE, a))
    bracket = PRECISE.add(Decimal(abs(w)), PRECISE.divide(PRECISE.add(ONE, square), PRECISE.subtract(ONE, square)))
    return PRECISE.multiply(PRECISE.multiply(PRECISE.multiply(ratio, ratio), _decay(epsilon, abs(w))), bracket)


def difference_tail(epsilon: Fraction, g: int) -> Decimal:
    """Return P(g) = P[W > g] for the difference W = Z_x - Z_0 of two independent draws, never below it.

    P(g) = a^(g+1) * ((1-a) (g+1) + (1 + a + 2 a^2)/(1 + a)) / (1 + a)^2 for g >= 0; below that 1 - P(-g-1).
    Above the true value by at most a relative 2e-45. Derived in docs/privacy.md section 4.

    >>> from fractions import Fraction
    >>> difference_tail(Fraction(1), 15) <= Decimal("1e-6") < difference_tail(Fraction(1), 14)
    True
    """
    return _at_most_one(_difference_tail(epsilon, g))


def quantile(epsilon: Fraction, p: Decimal) -> int:
    """Return the smallest q >= 0 with P[Z < -q] <= p, which is also P[Z > q] <= p.

    >>> from fractions import Fraction
    >>> quantile(Fraction(1), Decimal("0.025"))
    3
    """
    # a^(q+1) <= p (1 + a); the logarithm gets within one of q, the exact tail decides
    bound = PRECISE.ln(PRECISE.multiply(p, PRECISE.add(ONE, _decay(epsilon, 1))))
    q = max(0, math.floor(PRECISE.divide(PRECISE.minus(bound), to_decimal(epsilon))) - 2)
    while tail(epsilon, q) > p:
        q += 1
    return q


def simultaneous_quantile(epsilon: Fraction, counters: int, p: Decimal) -> int:
    """Return the smallest q >= 0 such that, of `counters` independent draws, some Z < -q with chance at most `p`.

    1 - (1 - P[Z < -q])^counters <= p; the root is taken to 30 digits and rounded against q.
    """
    each = PRECISE.subtract(ONE, PRECISE.power(PRECISE.subtract(ONE, p), PRECISE.divide(ONE, Decimal(counters))))
    return quantile(epsilon, PRECISE.multiply(each, PRECISE.subtract(ONE, Decimal("1e-30"))))


@lru_cache(maxsize=256)
def simultaneous_difference_quantile(epsilon: Fraction, counters: int, p: Decimal) -> int:
    """Return a q >= 0 such that some Z_x - Z_0 > q, among `counters` draws Z_x with one common Z_0, with chance <= `p`.

    The smallest q with 1 - sum over z of P[Z = z] P[Z <= q + z]^counters <= p, where the z that are left out of the
    sum count as failures. Above about 4096 terms (epsilon below 0.01, say) neighbouring z are summed as a block at its
    worst end: q is then still safe, and too large by less than 1 % of 1/epsilon.
    """
    eps, target = float(epsilon), float(p) * (1 - SLACK)
    reach = quantile(epsilon, PRECISE.multiply(p, Decimal("1e-6")))
    block = max(1, math.ceil(2 * reach / LONGEST_SUM))
    blocks = math.ceil(reach / block)
    normalise = 1 / (1 + math.exp(-eps))
    inside = -math.expm1(-eps * block) * normalise
    beyond = math.exp(-eps * (blocks * block + 1)) * normalise

    def failure(q: int) -> float:
        def some_above(z: int) -> float:  # the chance that some Z_x > q + z; falls as z grows
            return -math.expm1(counters * _log_at_most(eps, q + z))

        total = -math.expm1(-eps) * normalise * some_above(0) + beyond * (1 + some_above(blocks * block))
        for i in range(blocks):
            mass = math.exp(-eps * (i * block + 1)) * inside
            total += mass * (some_above(i * block + 1) + some_above(-(i + 1) * block))
        return total

    return smallest(lambda q: failure(q) <= target)


def log_difference_at_least(epsilon: float, k: int) -> float:
    """Return ln P[W >= k] in floats, for any integer k."""
    if k >= 1:
        return -epsilon * k + _log_bracket(epsilon, k)
    return math.log1p(-math.exp(log_difference_at_least(epsilon, 1 - k)))


def log_difference_ratio(epsilon: float, j: int, k: int) -> float:
    """Return ln(P[W >= j] / P[W >= k]) in floats; where both are far out their common factor is left out first."""
    if j >= 1 and k >= 1:
        return -epsilon * (j - k) + _log_bracket(epsilon, j) - _log_bracket(epsilon, k)
    return log_difference_at_least(epsilon, j) - log_difference_at_least(epsilon, k)


def smallest(holds: Callable[[int], bool]) -> int:
    """Return the smallest integer >= 0 at which `holds` is true, for a condition that stays true once it is."""
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


def _log_bracket(epsilon: float, k: int) -> float:
    """Return ln P[W >= k] + epsilon * k for k >= 1: the part of `difference_tail` that is not a power of a."""
    a = math.exp(-epsilon)
    return math.log(-math.expm1(-epsilon) * k + (1 + a + 2 * a * a) / (1 + a)) - 2 * math.log1p(a)


def _log_at_most(epsilon: float, y: int) -> float:
    """Return ln P[Z <= y] in floats."""
    if y < 0:
        return epsilon * y - math.log1p(math.exp(-epsilon))
    return math.log1p(-math.exp(-epsilon * (y + 1)) / (1 + math.exp(-epsilon)))


def _decay(epsilon: Fraction, steps: int) -> Decimal:
    """Return a^steps = exp(-epsilon * steps), correctly rounded to 60 digits."""
    return PRECISE.exp(PRECISE.minus(PRECISE.multiply(to_decimal(epsilon), Decimal(steps))))


def _tail(epsilon: Fraction, g: int) -> Decimal:
    if g < 0:
        return PRECISE.subtract(ONE, _tail(epsilon, -g - 1))
    return PRECISE.divide(_decay(epsilon, g + 1), PRECISE.add(ONE, _decay(epsilon, 1)))


def _difference_tail(epsilon: Fraction, g: int) -> Decimal:
    if g < 0:
        return PRECISE.subtract(ONE, _difference_tail(epsilon, -g - 1))
    a = _decay(epsilon, 1)
    plus = PRECISE.add(ONE, a)
    constant = PRECISE.divide(PRECISE.add(plus, PRECISE.multiply(2, PRECISE.multiply(a, a))), plus)
    linear = PRECISE.multiply(PRECISE.subtract(ONE, a), Decimal(g + 1))
    return PRECISE.divide(
        PRECISE.multiply(_decay(epsilon, g + 1), PRECISE.add(linear, constant)), PRECISE.multiply(plus, plus)
    )


def _at_most_one(chance: Decimal) -> Decimal:
    return min(ONE, PRECISE.multiply(chance, ROUND_UP))
