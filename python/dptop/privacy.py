"""What is protected and what it costs: epsilon and delta as exact numbers, the unit, the budget.

The promise (add/remove neighbours): two streams are neighbours if one is the other with a single item added or
removed at any position. A release with total (epsilon, delta) satisfies, for neighbours X and X' and every set S of
outputs, P[release(X) in S] <= e^epsilon * P[release(X') in S] + delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Final

from dptop.errors import InvalidParameter
from dptop.parameters import as_written, real_number, shown

__all__ = [
    "Budget",
    "PrivacyParameters",
    "exact_delta",
    "exact_epsilon",
    "per_item",
]

EPSILON_STEP: Final = Fraction(1, 2**32)
"""Every epsilon is a whole multiple of this, so that the noise is drawn with integers only."""

EPSILON_MIN: Final = 2.0**-20
EPSILON_MAX: Final = 64.0

PRECISE: Final = Context(prec=60, Emin=-(10**9), Emax=10**9)
"""Arithmetic for probabilities: 60 digits, and no underflow for any epsilon and delta that are accepted."""


def exact_epsilon(epsilon: float) -> Fraction:
    """Return `epsilon` rounded DOWN to a multiple of 2^-32: the epsilon that is kept, never more than was asked.

    Args:
        epsilon: a float with 2^-20 <= epsilon <= 64.

    Raises:
        InvalidParameter: not a number, NaN, infinite or out of range.

    Source: Canonne, Kamath, Steinke 2020 need a rational epsilon.

    >>> exact_epsilon(1.0)
    Fraction(1, 1)
    >>> exact_epsilon(0.1) <= 0.1
    True
    """
    number = real_number(
        "epsilon",
        epsilon,
        "2**-20 <= epsilon <= 64",
        lambda x: EPSILON_MIN <= x <= EPSILON_MAX,
        "Typical values lie between 0.1 and 4.",
    )
    return floor_epsilon(Fraction(number))


def floor_epsilon(epsilon: Fraction) -> Fraction:
    """Return the largest multiple of 2^-32 that is at most `epsilon`."""
    return math.floor(epsilon / EPSILON_STEP) * EPSILON_STEP


def exact_delta(delta: float) -> Decimal:
    """Return `delta` as the decimal number that it is written as: 1e-9 means 10^-9, not the nearest binary fraction.

    Args:
        delta: a float with 0 < delta < 1.

    Raises:
        InvalidParameter: not a number, NaN or out of range.

    >>> exact_delta(1e-9)
    Decimal('1E-9')
    """
    remedy = "Choose it well below 1 / (number of items)."
    return as_written(real_number("delta", delta, "0 < delta < 1", lambda x: 0 < x < 1, remedy))


@dataclass(frozen=True, slots=True)
class PrivacyParameters:
    """An exact (epsilon, delta), as the mechanisms compute with them.

    Attributes:
        epsilon: a positive multiple of 2^-32.
        delta: a decimal, 0 <= delta < 1.

    Raises:
        InvalidParameter: a value that is none.

    >>> PrivacyParameters.of(0.5, 1e-9)
    PrivacyParameters(epsilon=Fraction(1, 2), delta=Decimal('1E-9'))
    """

    epsilon: Fraction
    delta: Decimal

    def __post_init__(self) -> None:
        steps = self.epsilon / EPSILON_STEP
        if steps.denominator != 1 or steps <= 0 or not 0 <= self.delta < 1:
            raise InvalidParameter(
                "epsilon must be a positive multiple of 2**-32 and 0 <= delta < 1;"
                f" got ({shown(self.epsilon)}, {shown(self.delta)}). Use PrivacyParameters.of for floats."
            )

    @classmethod
    def of(cls, epsilon: float, delta: float) -> PrivacyParameters:
        """Return what is promised for floats: epsilon rounded down to the grid, delta as written.

        Args:
            epsilon: 2^-20 <= epsilon <= 64.
            delta: 0 < delta < 1.

        Raises:
            InvalidParameter: a value out of range.
        """
        return cls(exact_epsilon(epsilon), exact_delta(delta))


def per_item(total: PrivacyParameters, max_contributions: int) -> PrivacyParameters:
    """Return the parameters for one item that protect a unit owning items of total weight at most `max_contributions`.

    With eps0 = epsilon / c and delta0 = delta * (e^eps0 - 1) / (e^(c eps0) - 1), c-fold group privacy gives back at
    most (epsilon, delta). eps0 is rounded down to the grid first, delta0 down after.

    Source: group privacy, for example Dwork and Roth 2014 and Vadhan 2017, Lemma 2.2.

    >>> per_item(PrivacyParameters.of(1.0, 1e-6), 1) == PrivacyParameters.of(1.0, 1e-6)
    True
    """
    if max_contributions == 1:
        return total
    epsilon = floor_epsilon(total.epsilon / max_contributions)
    if epsilon <= 0:
        raise InvalidParameter(
            f"epsilon / max_contributions must be at least 2**-32; got {float(total.epsilon)!r} / {max_contributions}."
            " Ask for fewer contributions or a larger epsilon."
        )
    one = Decimal(1)
    e0 = PRECISE.exp(to_decimal(epsilon))
    group = PRECISE.power(e0, max_contributions)
    ratio = PRECISE.divide(PRECISE.subtract(e0, one), PRECISE.subtract(group, one))
    # 60 digits minus the cancellation in e^eps0 - 1 (at most 10) leave far more than the 30 that are kept
    down = Context(prec=30, rounding=ROUND_FLOOR, Emin=PRECISE.Emin, Emax=PRECISE.Emax)
    return PrivacyParameters(
        epsilon, down.multiply(total.delta, down.multiply(ratio, PRECISE.subtract(one, Decimal("1e-28"))))
    )


def to_decimal(value: Fraction) -> Decimal:
    """Return a multiple of 2^-32 as a decimal; exact, since 60 digits hold every accepted epsilon."""
    return PRECISE.divide(Decimal(value.numerator), Decimal(value.denominator))


@dataclass(frozen=True)
class Budget:
    """The privacy that all releases of a summary may spend together, by basic composition: the sums are at most these.

    The first release says which unit the budget protects, by its `max_contributions`; the others must say the same.

    Args:
        epsilon: 2^-20 <= epsilon <= 64; rounded down to a multiple of 2^-32.
        delta: 0 < delta < 1.

    Raises:
        InvalidParameter: a value out of range.

    >>> Budget(epsilon=2.0, delta=2e-9).total.delta
    Decimal('2E-9')
    """

    epsilon: float
    delta: float
    total: PrivacyParameters = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", PrivacyParameters.of(self.epsilon, self.delta))
