"""The mean and the variance of squared noise: what a sum of squared noisy cells is too large by, and how it spreads.

Both are computed in decimals and rounded up: each float is at least the true value, and above it by at most a relative
4.5e-16 (two units in its last place). Whoever takes a mean away and must not take too much, takes away `below(mean)`.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from dptop.gaussian import MAX_VARIANCE
from dptop.gaussian_sums import ONE, PI, ROUNDING, WIDE, dual
from dptop.parameters import whole_number
from dptop.privacy import PrivacyParameters

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = ["SquareMoments", "below", "of_gaussian", "of_laplace"]


class SquareMoments(NamedTuple):
    """E[Z^2] and Var[Z^2] of a noise Z."""

    mean: float
    variance: float


def of_laplace(epsilon: Fraction) -> SquareMoments:
    """Return the moments of discrete Laplace noise: 2a/(1-a)^2 and 2a (1 + 8a + a^2)/(1-a)^4, a = exp(-epsilon).

    From sum of z^2 a^z = a (1+a)/(1-a)^3 and sum of z^4 a^z = a (1+a)(1 + 10a + a^2)/(1-a)^5 over z >= 1.

    Args:
        epsilon: a positive multiple of 2^-32.

    Raises:
        InvalidParameter: epsilon is off the grid.

    >>> from fractions import Fraction
    >>> round(of_laplace(Fraction(1)).mean, 6)
    1.841347
    """
    PrivacyParameters(epsilon, Decimal(0))  # refuses what is off the grid
    a = WIDE.exp(WIDE.divide(-epsilon.numerator, epsilon.denominator))
    square = WIDE.power(WIDE.subtract(ONE, a), 2)
    mean = WIDE.divide(WIDE.multiply(2, a), square)
    bracket = WIDE.add(ONE, WIDE.multiply(a, WIDE.add(8, a)))
    return SquareMoments(_up(mean), _up(WIDE.divide(WIDE.multiply(mean, bracket), square)))


def of_gaussian(variance: int) -> SquareMoments:
    """Return the moments of discrete Gaussian noise: `variance` and 2 `variance`^2, but for what only small ones show.

    Derivatives of ln(sum of exp(-b z^2)) at b = 1 / (2 variance). By Poisson's formula that sum is sqrt(pi / b) N with
    N = 1 + 2 sum over k >= 1 of q^(k^2), q = exp(-pi^2 / b). With U_j = sum of k^j q^(k^2) and v = `variance`,

        E[Z^2] = v - 8 pi^2 v^2 U_2 / N
        Var[Z^2] = 2 v^2 + 32 pi^2 v^3 (pi^2 v U_4 - U_2) / N - (8 pi^2 v^2 U_2 / N)^2

    Args:
        variance: 1 to 2^40.

    Raises:
        InvalidParameter: a variance out of range.

    >>> of_gaussian(100).mean - 100 < 1e-13, 1 - of_gaussian(1).mean > 2e-7
    (True, True)
    """
    v = whole_number("variance", variance, 1, MAX_VARIANCE, "Find one with dptop.gaussian.smallest_variance.")
    powers = [(k, dual(k * k * v)) for k in ((1, 2, 3) if v <= 16 else ())]  # beyond, less than 1e-130

    def u(j: int) -> Decimal:
        total = Decimal(0)
        for k, power in powers:
            total = WIDE.add(total, WIDE.multiply(k**j, power))
        return total

    n = WIDE.add(ONE, WIDE.multiply(2, u(0)))
    square_of_pi = WIDE.multiply(PI, PI)
    short = WIDE.divide(WIDE.multiply(WIDE.multiply(8 * v**2, square_of_pi), u(2)), n)
    bend = WIDE.subtract(WIDE.multiply(WIDE.multiply(square_of_pi, v), u(4)), u(2))
    more = WIDE.divide(WIDE.multiply(WIDE.multiply(32 * v**3, square_of_pi), bend), n)
    spread = WIDE.subtract(WIDE.add(2 * v**2, more), WIDE.multiply(short, short))
    return SquareMoments(_up(WIDE.subtract(Decimal(v), short)), _up(spread))


def below(mean: float) -> float:
    """Return a number that is not above the moment that was rounded up to `mean`, and below it by a relative 1e-15."""
    return mean * (1 - 2.0**-51)


def _up(x: Decimal) -> float:
    lifted = WIDE.multiply(x, WIDE.add(ONE, ROUNDING))
    number = float(lifted)
    return number if Decimal(number) >= lifted else math.nextafter(number, math.inf)
