"""Discrete Gaussian noise: draws, the chances of what is drawn, and the delta that it costs at an epsilon.

P[Z = z] is proportional to exp(-z^2 / (2 variance)) on the integers, for a whole variance (Canonne, Kamath, Steinke
2020). It is the noise for many numbers that change together: a sketch of `depth` rows changes in one cell of each row,
by one, and the variance that hides it grows with depth where that of Laplace noise grows with its square.

The privacy promise rests on these chances: decimals of 80 digits, rounded so that they are never below the true value.
Derivations: docs/privacy.md.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import floor, isqrt
from typing import Final

from dptop import _native
from dptop._native import MAX_VARIANCE
from dptop.errors import InvalidParameter
from dptop.gaussian_sums import MAX_EXPONENT, ONE, PI, ROUNDING, WIDE, Layout, correction, exp, normaliser, rounded_up
from dptop.noise import seed_bytes
from dptop.parameters import shown, whole_number
from dptop.privacy import EPSILON_MAX
from dptop.search import smallest_by_bisection

__all__ = ["MAX_DEPTH", "MAX_VARIANCE", "delta", "draw", "pmf", "smallest_variance", "tail"]

MAX_DEPTH: Final = 2**16

MIN_DELTA: Final = Decimal("1e-300")

BLOCKS: Final = 4096
"""Terms of a sum: it is taken integer by integer while there are no more of them, and in as many blocks above."""

COARSE_BLOCKS: Final = 64
"""For a first look, at a hundredth of the price."""


def draw(variance: int, count: int, seed: int | None = None) -> list[int]:
    """Return `count` independent draws of Z, exact: integers only, no rounding, fresh entropy of the system per call.

    It is for tests: a release draws the noise of its cells natively, where they are, by the same sampler.

    Args:
        variance: 1 to 2^40.
        count: how many draws, at least 0.
        seed: None, always, outside tests. A seed makes the draws repeatable and whatever carries them not private.

    Raises:
        InvalidParameter: a variance out of range.

    Source: Canonne, Kamath, Steinke 2020; the protocol, word by word, is dptop/reference/discrete_gaussian.py.
    """
    return _native.discrete_gaussian(_variance(variance), count, None if seed is None else seed_bytes(seed))


def pmf(variance: int, z: int) -> Decimal:
    """Return P[Z = z], to a relative error below 1e-50 wherever z^2 / (2 variance) is below 10^9.

    >>> round(pmf(1, 0), 6)
    Decimal('0.398942')
    """
    return WIDE.divide(exp(Fraction(-z * z, 2 * variance)), normaliser(variance))


@lru_cache(maxsize=4096, typed=True)
def tail(variance: int, g: int) -> Decimal:
    """Return P[Z > g]: never below it, and above it by at most a relative 1e-25 up to a variance of 2^16.

    Above that variance the sum is taken in blocks, and is too large by at most a relative 1e-6.

    Args:
        variance: 1 to 2^40.
        g: any integer.

    Raises:
        InvalidParameter: a variance out of range.

    >>> round(tail(1, 0), 6), round(tail(1, -1), 6)
    (Decimal('0.300529'), Decimal('0.699471'))
    """
    layout = Layout.of(_variance(variance), max(g, -g - 1) + 1, BLOCKS)
    sums = layout.weights(0)
    unit = WIDE.divide(layout.scale, normaliser(variance))
    if g >= 0:
        return rounded_up(WIDE.multiply(unit, WIDE.add(sums, layout.left_out)))
    if layout.start > isqrt(2 * MAX_EXPONENT * variance):
        return ONE  # what is to be taken away from it was rounded up
    least = WIDE.multiply(unit, WIDE.divide(sums, layout.excess))
    return rounded_up(WIDE.subtract(ONE, WIDE.multiply(least, WIDE.subtract(ONE, ROUNDING))))


@lru_cache(maxsize=1024, typed=True)
def delta(epsilon: Fraction, variance: int, depth: int) -> Decimal:
    """Return the delta at which `depth` cells with this noise are (epsilon, delta)-private if each changes by one.

    The sum over s of P[S = s] max(0, 1 - exp(epsilon + (2s - depth) / (2 variance))), where S is the sum of `depth`
    independent draws; no smaller delta holds. Never below the true value; above it by at most a relative 3e-4 at a
    variance of 1 and depth up to 100, 2e-8 at 2, 1e-12 at 3 and 4e-17 from 4 on; and by at most 4e-6 where the sum is
    taken in blocks, which starts at depth * variance = 32000 at the earliest.

    Args:
        epsilon: 0 < epsilon <= 64, exact.
        variance: 1 to 2^40, of each cell.
        depth: 1 to 2^16 cells.

    Raises:
        InvalidParameter: a value out of range.

    Source: for one cell, Canonne, Kamath, Steinke 2020, Theorem 7; for more, docs/privacy.md.

    >>> round(delta(Fraction(1), 4, 1), 6)
    Decimal('0.007249')
    """
    return _delta(_epsilon(epsilon), _variance(variance), _depth(depth), BLOCKS)


@lru_cache(maxsize=256, typed=True)
def smallest_variance(epsilon: Fraction, delta: Decimal, depth: int) -> int:
    """Return a whole variance at which `depth` cells are (epsilon, delta)-private if each changes by one: the smallest.

    `dptop.gaussian.delta` is at most `delta` at the variance returned and above it at the one before: it is the
    smallest if delta falls as the variance grows, which is tested and not proved; the privacy does not rest on it.
    Where `delta` sums in blocks, the variance may be too large by a few parts in 10^7.

    Args:
        epsilon: 0 < epsilon <= 64, exact.
        delta: 1e-300 <= delta < 1.
        depth: 1 to 2^16 cells.

    Raises:
        InvalidParameter: a value out of range, or no variance up to 2^40 is enough.

    >>> smallest_variance(Fraction(1), Decimal("0.006"), 1)
    5
    """
    _epsilon(epsilon), _depth(depth)
    if not (isinstance(delta, Decimal) and delta.is_finite() and MIN_DELTA <= delta < 1):
        raise InvalidParameter(
            f"delta must be a Decimal with 1e-300 <= delta < 1; got {shown(delta)}."
            " Choose it well below 1 / (number of items)."
        )

    def holds(variance: int, blocks: int = BLOCKS) -> bool:
        return _delta(epsilon, variance, depth, blocks) <= delta

    if not holds(MAX_VARIANCE):
        raise InvalidParameter(
            f"the variance of the noise must be a whole number up to 2**40; epsilon {float(epsilon)!r} and delta"
            f" {shown(delta)} need more for {depth} cells. Ask for a larger epsilon or delta, or fewer rows."
        )
    # what holds for a coarse sum holds, and the smallest is near
    high = 1 + smallest_by_bisection(lambda v: v + 1 >= MAX_VARIANCE or holds(v + 1, COARSE_BLOCKS))
    while not holds(high):  # a fine sum hardly ever exceeds a coarse one, and then by the last digits
        high += 1
    step = 1
    while high - step >= 1 and holds(high - step):
        high, step = high - step, 2 * step
    low = max(high - step, 0)  # does not hold, or is no variance
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _delta(epsilon: Fraction, variance: int, depth: int, blocks: int) -> Decimal:
    """Return `delta` with its sum taken in at most `blocks` blocks, or a few more.

    With V = depth * variance, P[S = s] is at most c exp(-s^2 / (2V)) / sqrt(2 pi V), with c of `correction`; and
    exp(-s^2 / (2V)) exp(epsilon - (2s + depth) / (2 variance)) = e^epsilon exp(-(s + depth)^2 / (2V)), so that delta is
    the difference of two sums of the same weights, `depth` apart.
    """
    first = floor(epsilon * variance - Fraction(depth, 2)) + 1  # the terms below are 0; s stands for -s, by symmetry
    layout = Layout.of(depth * variance, first, blocks)
    here = layout.weights(0)
    there = exp(epsilon - Fraction(2 * layout.start + depth, 2 * variance))
    gain = WIDE.subtract(here, WIDE.multiply(there, layout.weights(depth)))
    total = WIDE.add(WIDE.add(gain, layout.left_out), WIDE.multiply(here, ROUNDING))
    scale = WIDE.divide(
        WIDE.multiply(layout.scale, correction(variance, depth)),
        WIDE.sqrt(WIDE.multiply(2 * depth * variance, PI)),
    )
    return rounded_up(WIDE.multiply(scale, total))


def _epsilon(epsilon: Fraction) -> Fraction:
    if not (isinstance(epsilon, Fraction) and 0 < epsilon <= EPSILON_MAX):
        raise InvalidParameter(
            f"epsilon must be a Fraction with 0 < epsilon <= 64; got {shown(epsilon)}."
            " Round it with dptop.privacy.exact_epsilon."
        )
    return epsilon


def _variance(variance: int) -> int:
    return whole_number("variance", variance, 1, MAX_VARIANCE, "Find one with dptop.gaussian.smallest_variance.")


def _depth(depth: int) -> int:
    return whole_number("depth", depth, 1, MAX_DEPTH, "It is the number of rows of the sketch.")
