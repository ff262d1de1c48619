"""Discrete Laplace noise: the one source of randomness, and the exact chances of what it draws.

P[Z = z] = (1 - a)/(1 + a) * a^|z| on the integers, with a = exp(-epsilon): the two-sided geometric distribution
(Ghosh, Roughgarden, Sundararajan 2012). One counter that changes by one, plus Z, is epsilon-differentially private.

The privacy promise rests on these chances: decimals of 60 digits, rounded so that they are never below the true value.
Derivations: docs/privacy.md sections 3 and 4.
"""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from dptop import _native
from dptop._native import MAX_LENGTH
from dptop.errors import InvalidParameter
from dptop.privacy import EPSILON_STEP, PRECISE, to_decimal

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = [
    "decay",
    "difference_pmf",
    "difference_tail",
    "draw",
    "pmf",
    "tail",
]

ONE: Final = Decimal(1)

LENGTH_SEED, CELLS_SEED, COUNTS_SEED, NEXT_SHARD = (parts * (MAX_LENGTH + 1) for parts in range(1, 5))
"""Added to a seed for tests, which is below all of them: what is drawn for one purpose must not repeat what is drawn
for another. Counters have the seed itself, and from each shard to the next one `NEXT_SHARD` is added."""

ROUND_UP: Final = PRECISE.add(ONE, Decimal("1e-45"))
"""Lifts a chance above all rounding: 60 digits, of which at most 10 cancel in 1 - a, leave an error below 1e-48."""


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
    a = decay(epsilon, 1)
    return PRECISE.multiply(PRECISE.divide(PRECISE.subtract(ONE, a), PRECISE.add(ONE, a)), decay(epsilon, abs(z)))


def tail(epsilon: Fraction, g: int) -> Decimal:
    """Return P[Z > g]: never below it, and above it by at most a relative 2e-45.

    a^(g+1) / (1 + a) for g >= 0; below that 1 - P[Z > -g-1], by symmetry.

    >>> from fractions import Fraction
    >>> round(tail(Fraction(1), 0), 6)
    Decimal('0.268941')
    """
    return _rounded_up(_tail(epsilon, g))


def difference_pmf(epsilon: Fraction, w: int) -> Decimal:
    """Return P[W = w] for the difference W of two independent draws, to a relative error below 1e-45.

    ((1-a)/(1+a))^2 * a^|w| * (|w| + (1 + a^2)/(1 - a^2)).
    """
    a = decay(epsilon, 1)
    square = PRECISE.multiply(a, a)
    ratio = PRECISE.divide(PRECISE.subtract(ONE, a), PRECISE.add(ONE, a))
    bracket = PRECISE.add(Decimal(abs(w)), PRECISE.divide(PRECISE.add(ONE, square), PRECISE.subtract(ONE, square)))
    return PRECISE.multiply(PRECISE.multiply(PRECISE.multiply(ratio, ratio), decay(epsilon, abs(w))), bracket)


def difference_tail(epsilon: Fraction, g: int) -> Decimal:
    """Return P(g) = P[W > g] for the difference W = Z_x - Z_0 of two independent draws, never below it.

    P(g) = a^(g+1) * ((1-a) (g+1) + (1 + a + 2 a^2)/(1 + a)) / (1 + a)^2 for g >= 0; below that 1 - P(-g-1).
    Above the true value by at most a relative 2e-45. Derived in docs/privacy.md section 4.

    >>> from fractions import Fraction
    >>> difference_tail(Fraction(1), 15) <= Decimal("1e-6") < difference_tail(Fraction(1), 14)
    True
    """
    return _rounded_up(_difference_tail(epsilon, g))


def decay(epsilon: Fraction, steps: int) -> Decimal:
    """Return a^steps = exp(-epsilon * steps), correctly rounded to 60 digits."""
    return PRECISE.exp(PRECISE.minus(PRECISE.multiply(to_decimal(epsilon), Decimal(steps))))


def _tail(epsilon: Fraction, g: int) -> Decimal:
    if g < 0:
        return PRECISE.subtract(ONE, _tail(epsilon, -g - 1))
    return PRECISE.divide(decay(epsilon, g + 1), PRECISE.add(ONE, decay(epsilon, 1)))


def _difference_tail(epsilon: Fraction, g: int) -> Decimal:
    if g < 0:
        return PRECISE.subtract(ONE, _difference_tail(epsilon, -g - 1))
    a = decay(epsilon, 1)
    plus = PRECISE.add(ONE, a)
    constant = PRECISE.divide(PRECISE.add(plus, PRECISE.multiply(2, PRECISE.multiply(a, a))), plus)
    linear = PRECISE.multiply(PRECISE.subtract(ONE, a), Decimal(g + 1))
    return PRECISE.divide(
        PRECISE.multiply(decay(epsilon, g + 1), PRECISE.add(linear, constant)), PRECISE.multiply(plus, plus)
    )


def _rounded_up(chance: Decimal) -> Decimal:
    """Return a chance lifted above all rounding, and never above one."""
    return min(ONE, PRECISE.multiply(chance, ROUND_UP))
