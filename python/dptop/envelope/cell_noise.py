"""The noise in the cells of a sketch, as the error envelopes see it: chances, a tail and moments, all on the safe side.

Every cell gets its own draw Z, symmetric around 0. What is summed over Z here are chances that shrink as Z falls, so a
block of values may stand at its largest one: the sum is then never below the true one. A support of up to 8192 values
is summed value by value, that of epsilon_cell >= 0.012 for one; a wider one in about as many blocks.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from typing import Final, NamedTuple, Protocol

from dptop.envelope.rounding import SLACK, up
from dptop.errors import InvalidParameter
from dptop.noise import decay
from dptop.parameters import shown
from dptop.privacy import EPSILON_STEP, PRECISE

__all__ = ["CellNoise", "GaussianCells", "LaplaceCells", "Moments", "NoNoise", "Spread"]

MOST_BLOCKS: Final = 8192

NEGLECTED: Final = 1e-20
"""Values of Z whose tail is below this are not listed: those above count as errors, those below join the lowest block.

No row's chance that matters is as small: two labels alone collide with one of 2^-32 or more."""

MOMENT_SLACK: Final = Fraction(1, 10**30)
"""Decimals of 60 digits, of which at most 10 cancel in 1 - a, err by far less than this."""


class Spread(NamedTuple):
    """The values of Z in blocks, from the lowest: Z is at most `lasts[i]` in block i, with at least the chance it has.

    Attributes:
        lasts: the largest value of each block.
        chances: of each block.
        above: of block i and all that is above it, whatever is not listed included; one more than there are blocks.
    """

    lasts: tuple[int, ...]
    chances: tuple[float, ...]
    above: tuple[float, ...]

    @classmethod
    def mirrored(cls, zero: float, positive: list[tuple[int, int, float]], beyond: float) -> Spread:
        """Return the blocks of a symmetric Z from those of its positive half, (first, last, chance), and the rest."""
        down = [(-first, chance) for first, _, chance in reversed(positive)]
        blocks = [*down, (0, zero), *((last, chance) for _, last, chance in positive)]
        lasts, chances = zip(*blocks, strict=True)
        lifted = [chance * (1 + SLACK) for chance in chances]
        lifted[0] += beyond * (1 + SLACK)
        above = [*accumulate(reversed(lifted), initial=beyond * (1 + SLACK))]
        return cls(lasts, tuple(lifted), tuple(reversed(above)))


class Moments(NamedTuple):
    """What is known of Z^2 for certain: square_low <= E[Z^2] <= square_high and Var(Z^2) <= variance_high."""

    square_low: Fraction
    square_high: Fraction
    variance_high: Fraction


class CellNoise(Protocol):
    """A symmetric law of whole numbers, one independent draw a cell."""

    @property
    def spread(self) -> Spread:
        """The law, in blocks."""

    @property
    def moments(self) -> Moments:
        """Bounds on its second and fourth moments."""

    def tail(self, g: int) -> float:
        """Return P[Z > g] = P[Z < -g], for g >= 0: never below it."""


@dataclass(frozen=True)
class NoNoise:
    """Cells as they are counted.

    >>> NoNoise().tail(0)
    0.0
    """

    spread: Spread = field(init=False, repr=False, compare=False, default=Spread((0,), (1.0,), (1.0, 0.0)))
    moments: Moments = field(
        init=False, repr=False, compare=False, default=Moments(Fraction(0), Fraction(0), Fraction(0))
    )

    def tail(self, g: int) -> float:
        """Return P[Z > g] for g >= 0."""
        return 0.0 if g >= 0 else 1.0


@dataclass(frozen=True)
class LaplaceCells:
    """Discrete Laplace noise: P[Z = z] = (1-a)/(1+a) * a^|z|, a = exp(-epsilon_cell).

    One item changes one cell of each of d rows by one, so that epsilon_cell = epsilon/d keeps epsilon.

    Args:
        epsilon_cell: a positive multiple of 2^-32.

    Raises:
        InvalidParameter: it is none.

    >>> noise = LaplaceCells(Fraction(1, 4))
    >>> round(noise.tail(9), 6)  # a^10/(1 + a)
    0.046146
    """

    epsilon_cell: Fraction
    spread: Spread = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        steps = self.epsilon_cell / EPSILON_STEP
        if steps.denominator != 1 or steps <= 0:
            raise InvalidParameter(
                "epsilon_cell must be a positive multiple of 2**-32;"
                f" got {shown(self.epsilon_cell)}. Round epsilon / depth down with dptop.privacy.floor_epsilon."
            )
        object.__setattr__(self, "spread", self._spread())

    def _spread(self) -> Spread:
        eps = float(self.epsilon_cell)
        normalise = 1 / (1 + math.exp(-eps))
        reach = math.ceil(-math.log(NEGLECTED) / eps)
        block = max(1, math.ceil(2 * reach / MOST_BLOCKS))
        inside = -math.expm1(-eps * block) * normalise
        firsts = range(1, reach + 1, block)
        positive = [(z, z + block - 1, math.exp(-eps * z) * inside) for z in firsts]
        last = positive[-1][1]
        return Spread.mirrored(-math.expm1(-eps) * normalise, positive, math.exp(-eps * (last + 1)) * normalise)

    @property
    def moments(self) -> Moments:
        """E[Z^2] = 2a/(1-a)^2 and Var(Z^2) = 2a (1 + 8a + a^2)/(1-a)^4, from sums of k^2 a^k and k^4 a^k."""
        a = decay(self.epsilon_cell, 1)
        gap = PRECISE.subtract(Decimal(1), a)
        square = Fraction(PRECISE.divide(PRECISE.multiply(Decimal(2), a), PRECISE.multiply(gap, gap)))
        exact = Fraction(a)
        variance = square * square * (1 + 8 * exact + exact * exact) / (2 * exact)
        return Moments(square * (1 - MOMENT_SLACK), square * (1 + MOMENT_SLACK), variance * (1 + MOMENT_SLACK))

    def tail(self, g: int) -> float:
        """Return P[Z > g] = a^(g+1)/(1+a) for g >= 0: never below it."""
        eps = float(self.epsilon_cell)
        return up(math.exp(-eps * (g + 1)) / (1 + math.exp(-eps)))


@dataclass(frozen=True)
class GaussianCells:
    """Discrete Gaussian noise: P[Z = z] is proportional to exp(-z^2/(2 v)), v a whole number.

    The sum of exp(-k^2/(2v)) over all k is sqrt(2 pi v) (1 + 2 exp(-2 pi^2 v) + ...), by Poisson's summation formula;
    the terms left out are positive.

    Args:
        variance: v >= 1.

    Raises:
        InvalidParameter: it is no whole number from 1.

    >>> noise = GaussianCells(100)
    >>> round(noise.tail(19), 6)
    0.02554
    """

    variance: int
    spread: Spread = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.variance, bool) or not isinstance(self.variance, int) or self.variance < 1:
            raise InvalidParameter(
                f"variance must be a whole number from 1; got {shown(self.variance)}. Round it up to the next one."
            )
        object.__setattr__(self, "spread", self._spread())

    def _spread(self) -> Spread:
        reach = math.ceil(math.sqrt(-2 * math.log(NEGLECTED) * self.variance))
        block = max(1, math.ceil(2 * reach / MOST_BLOCKS))
        firsts = range(1, reach + 1, block)
        positive = [(z, z + block - 1, self._mass(z, z + block - 1)) for z in firsts]
        return Spread.mirrored(self._pmf(0), positive, self._normal_tail(positive[-1][1]))

    def _pmf(self, z: float) -> float:
        v = self.variance
        return math.exp(-z * z / (2 * v)) / (math.sqrt(2 * math.pi * v) * (1 + 2 * math.exp(-2 * math.pi**2 * v)))

    def _mass(self, first: int, last: int) -> float:
        """Return at least P[first <= Z <= last] for 1 <= first: by Jensen's inequality, by the chord, or by the first.

        exp(-z^2/(2v)) is concave where z^2 <= v and convex where z^2 >= v.
        """
        values = last - first + 1
        if values == 1 or last * last <= self.variance:
            return values * self._pmf((first + last) / 2)
        if first * first >= self.variance:
            return values * (self._pmf(first) + self._pmf(last)) / 2
        return values * self._pmf(first)

    @property
    def moments(self) -> Moments:
        """Known: v - 80 v^2 e <= E[Z^2] <= v and Var(Z^2) <= 2 v^2 (1 + 1600 v^2 e), e = exp(-19.7 v).

        From the derivatives of ln sum exp(-s k^2) at s = 1/(2v), with Poisson's formula; 8 pi^2 < 80, 16 pi^4 < 1600.
        """
        v = Fraction(self.variance)
        small = Fraction(math.exp(-19.7 * min(self.variance, 36)))  # above it a float would be 0
        return Moments(v - 80 * v * v * small, v, 2 * v * v * (1 + 1600 * v * v * small))

    def tail(self, g: int) -> float:
        """Return P[Z > g] for g >= 0: never below it; as it is listed, or the normal tail where that is less."""
        listed = min(1.0, self.spread.above[bisect_right(self.spread.lasts, g)]) if g < self.spread.lasts[-1] else 1.0
        return min(listed, self._normal_tail(g)) if g * g >= self.variance else listed

    def _normal_tail(self, g: int) -> float:
        """Return the normal tail from g + 1/2, which is at least P[Z > g] for g^2 >= v.

        exp(-z^2/(2v)) is convex there, so that each summand is at most the integral around it.
        """
        return up(math.erfc((g + 0.5) / math.sqrt(2 * self.variance)) / 2)
