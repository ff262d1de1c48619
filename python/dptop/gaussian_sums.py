"""Sums of the weights exp(-s^2 / (2 spread)) over integers, in decimals of 80 digits: never below the true sum.

Beside them, what the weights are divided by, for one discrete Gaussian variable and for a sum of some.
Derivations: docs/privacy.md.
"""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from math import isqrt
from typing import Final, NamedTuple

__all__ = [
    "MAX_EXPONENT",
    "ONE",
    "PI",
    "ROUNDING",
    "WIDE",
    "Layout",
    "correction",
    "exp",
    "normaliser",
    "rounded_up",
]

ONE: Final = Decimal(1)

WIDE: Final = Context(prec=80, Emin=-(10**9), Emax=10**9)

PI: Final = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803483")

ROUNDING: Final = Decimal("1e-50")
"""More than rounding takes from any sum: of 80 digits at most 18 cancel, over at most 2^13 steps of a recurrence."""

NEGLIGIBLE: Final = 64
"""Sums stop where a weight is exp(-64) of the first one; the chance of all that is left out is added to them."""

MAX_EXPONENT: Final = 10**9
"""exp(-x) is rounded up to exp(-10^9) for larger x: decimals end a little below."""


class Layout(NamedTuple):
    """How the sum over s >= first of the weights exp(-s^2 / (2 spread)) is taken, and what it leaves out.

    Weights are relative to that of `start`: multiplied by `scale` they are absolute. `left_out` bounds the weights of
    all s >= first that are in no block.
    """

    spread: int
    start: int
    block: int
    blocks: int
    left_out: Decimal

    @classmethod
    def of(cls, spread: int, first: int, blocks: int) -> Layout:
        """Lay out the sum from `first` on, in at most `blocks` blocks of equal size."""
        # from reach on, weights are below exp(-64) of the first, and fall at least as a geometric series
        reach = isqrt(max(first, 0) ** 2 + 2 * NEGLIGIBLE * spread) + 1
        start = max(first, -reach)
        width = max(reach - start, 16)
        block = -(-width // blocks)
        farthest = exp(Fraction(start * start - reach * reach, 2 * spread))
        beyond = WIDE.divide(farthest, WIDE.subtract(ONE, exp(Fraction(-reach, spread))))
        left_out = beyond if start == first else WIDE.add(beyond, beyond)
        return cls(spread, start, block, -(-width // block), left_out)

    @property
    def scale(self) -> Decimal:
        """Return the weight of `start`."""
        return exp(Fraction(-self.start * self.start, 2 * self.spread))

    @property
    def excess(self) -> Decimal:
        """Return the most that `weights` is too large by, as a factor."""
        return exp(Fraction((self.block - 1) ** 2, 8 * self.spread))

    def weights(self, shift: int) -> Decimal:
        """Return the sum of exp(-(s+shift)^2 / (2 spread)) over all blocks, relative to s = start.

        In a block with the middle m, -s^2 is replaced by its tangent -m^2 - 2m (s - m), which is never below it, and
        above it by at most ((block-1)/2)^2. So a block is a geometric series. It is the same replacement for every
        shift, in that exp(-(s+shift)^2 / (2 spread)) is multiplied by the same number, at least 1, for all shifts: a
        difference of two sums is a sum of differences, each multiplied by at least 1.
        """
        at, block = self.start + shift, self.block

        def power(exponent: int) -> Decimal:
            return exp(Fraction(-exponent, 2 * self.spread))

        total, weight = Decimal(0), ONE
        step, bend = power((2 * at + block) * block), power(2 * block * block)
        if block == 1:
            for _ in range(self.blocks):
                total = WIDE.add(total, weight)
                weight = WIDE.multiply(weight, step)
                step = WIDE.multiply(step, bend)
            return total
        ratio, bend_ratio, lift = power(2 * at + block - 1), power(2 * block), power(-block)
        for i in range(self.blocks):
            if 2 * (at + i * block) + block == 1:  # the middle is 0: all weights are 1
                series = Decimal(block)
            else:  # the sum of ratio^j for j < block; step * lift is ratio^block
                series = WIDE.divide(WIDE.subtract(ONE, WIDE.multiply(step, lift)), WIDE.subtract(ONE, ratio))
            total = WIDE.add(total, WIDE.multiply(weight, series))
            weight = WIDE.multiply(weight, step)
            step = WIDE.multiply(step, bend)
            ratio = WIDE.multiply(ratio, bend_ratio)
        return WIDE.multiply(total, self.excess)


def normaliser(variance: int) -> Decimal:
    """Return the sum of exp(-z^2 / (2 variance)) over all z, by Poisson's formula; it leaves out less than 1e-130."""
    total = ONE
    if variance <= 16:  # beyond, less than 1e-136
        for k in (1, 2, 3):
            total = WIDE.add(total, WIDE.multiply(2, _dual(k * k * variance)))
    return WIDE.multiply(total, WIDE.sqrt(WIDE.multiply(2 * variance, PI)))


def correction(variance: int, depth: int) -> Decimal:
    """Return c with P[S = s] <= c exp(-s^2 / (2V)) / sqrt(2 pi V) for all s, where V = depth * variance.

    The product of 1 + 2 sum over k of exp(-2 pi^2 k^2 variance i/(i+1)) over i = 1 .. depth-1, bounded from above, over
    (`normaliser` / sqrt(2 pi variance))^depth.
    """
    if variance > 16:
        return ONE  # ROUNDING is more than what c exceeds 1 by: 2^18 exp(-16 pi^2) < 1e-62
    exponent = Decimal(0)
    for i in range(1, min(depth, 33)):
        terms = depth - 32 if i == 32 else 1  # they fall with i, so that the rest is at most this one, each
        q = _dual(Fraction(variance * i, i + 1))
        exponent = WIDE.add(exponent, WIDE.multiply(2 * terms, WIDE.divide(q, WIDE.subtract(ONE, q))))
    one_cell = WIDE.divide(normaliser(variance), WIDE.sqrt(WIDE.multiply(2 * variance, PI)))
    return WIDE.divide(WIDE.exp(exponent), WIDE.power(one_cell, depth))


def _dual(x: int | Fraction) -> Decimal:
    """Return exp(-2 pi^2 x)."""
    x = Fraction(x)
    return WIDE.exp(WIDE.divide(WIDE.multiply(WIDE.multiply(PI, PI), -2 * x.numerator), x.denominator))


def exp(x: Fraction) -> Decimal:
    """Return e to the power of max(x, -10^9), correct to 80 digits but for the rounding of x."""
    x = max(x, Fraction(-MAX_EXPONENT))
    return WIDE.exp(WIDE.divide(x.numerator, x.denominator))


def rounded_up(chance: Decimal) -> Decimal:
    """Return a chance lifted above all rounding, and never above one."""
    return min(ONE, WIDE.multiply(chance, WIDE.add(ONE, ROUNDING)))
