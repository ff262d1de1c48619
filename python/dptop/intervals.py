"""Intervals around true counts, from noisy counts and the noisy minimum alone: they cost no privacy.

Two kinds, derived in docs/privacy.md section 5: of each label given that it was released, and of all labels at once.
They only have to be wide enough, so that floats will do: every chance is moved to the safe side by more than they err.
"""

from __future__ import annotations

import math
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from dptop._native import MAX_LENGTH
from dptop.noise import decay, tail
from dptop.privacy import PRECISE, to_decimal
from dptop.search import smallest_by_bisection

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

__all__ = [
    "clipped",
    "given_common_noise",
    "given_release",
    "given_threshold",
    "quantile",
    "simultaneous",
    "simultaneous_common_noise",
    "simultaneous_counters",
    "simultaneous_difference_quantile",
    "simultaneous_quantile",
]

ONE: Final = Decimal(1)
HALF: Final = Decimal("0.5")

SLACK: Final = 1e-9
"""Relative error granted to a chance in floats, at the cost of a wider interval; floats err by less than 1e-11."""

LONGEST_SUM: Final = 4096
"""Terms of the sum behind a simultaneous quantile; a wider support is summed in blocks, each at its worst end."""


def given_release(
    epsilon: Fraction, offset: int, beta: float, noisy_counts: Sequence[int], noisy_minimum: int
) -> list[tuple[int, int]]:
    """Return (low, high) for each label, which holds its true count with chance 1 - beta given that it was released.

    Args:
        epsilon: of the noise.
        offset: items that a released count exceeds the noisy minimum by, at the least one more.
        beta: 0 < beta < 1; at most half of it goes to either end.
        noisy_counts: of the released labels.
        noisy_minimum: of their table.

    >>> from fractions import Fraction
    >>> given_release(Fraction(1), 16, 0.05, [217, 117], 100)
    [(113, 220), (0, 120)]
    """
    ends = _settled_ends(epsilon, offset, beta)
    unsettled = sorted({v - noisy_minimum for v in noisy_counts if v - noisy_minimum < ends.settled})
    early = _early_lows(float(epsilon), offset, beta, unsettled)
    shift = noisy_minimum + ends.below
    return [_widened(v, early.get(v - noisy_minimum, v - shift), v + ends.above) for v in noisy_counts]


def simultaneous(
    epsilon: Fraction, counters: int, tables: int, beta: float, noisy_counts: Sequence[int], noisy_minimum: int
) -> list[tuple[int, int]]:
    """Return (low, high) for each label; they hold all true counts at once with chance 1 - beta, released or not.

    Args:
        epsilon: of the noise.
        counters: the capacity of one table, at least 1. It is public; the number of labels tracked is not.
        tables: how many are released together, at least 1.
        beta: 0 < beta < 1; at most half of it goes to either end.
        noisy_counts: of labels of one table.
        noisy_minimum: of that table.

    >>> from fractions import Fraction
    >>> simultaneous(Fraction(1), 2000, 1, 0.05, [217, 117], 100)
    [(106, 227), (6, 127)]
    """
    above, below = _simultaneous_ends(epsilon, counters, tables, beta)
    shift = noisy_minimum + below
    return [_widened(v, v - shift, v + above) for v in noisy_counts]


def given_common_noise(
    epsilon: Fraction, threshold: int, beta: float, noisy_counts: Sequence[int]
) -> list[tuple[int, int]]:
    """Return (low, high) for the counter of each label that reached a threshold, given that it did.

    The noise of a count is that of all counts together and one of its own: it has the law of Z_x - Z_0, so that the
    lower end is that of `given_release` with a minimum of 0.

    >>> from fractions import Fraction
    >>> given_common_noise(Fraction(1), 17, 0.05, [217, 17])
    [(213, 221), (0, 21)]
    """
    reach = _settled_ends(epsilon, threshold - 1, beta).below
    ends = given_release(epsilon, threshold - 1, beta, noisy_counts, 0)
    return [(low, max(0, v + reach)) for (low, _), v in zip(ends, noisy_counts, strict=True)]


def simultaneous_common_noise(
    epsilon: Fraction, counters: int, beta: float, noisy_counts: Sequence[int]
) -> list[tuple[int, int]]:
    """Return (low, high) for the counters of labels whose noise has a common part; they hold all at once.

    >>> from fractions import Fraction
    >>> simultaneous_common_noise(Fraction(1), 2000, 0.05, [217])
    [(206, 228)]
    """
    reach = simultaneous_difference_quantile(epsilon, counters, PRECISE.multiply(HALF, Decimal(beta)))
    return [_widened(v, v - reach, v + reach) for v in noisy_counts]


def given_threshold(
    epsilon: Fraction, threshold: int, beta: float, noisy_counts: Sequence[int], excess: int
) -> list[tuple[int, int]]:
    """Return (low, high) for each label that exceeded a threshold without noise, given that it did.

    The counter is at least the smallest D >= 0 with P[Z >= v - D] > (beta/2) P[Z > threshold - D], and at most
    v + q, q smallest with P[Z < -q] <= beta/2; the true count is at most `excess` below the counter, and not above.

    >>> from fractions import Fraction
    >>> given_threshold(Fraction(1), 100, 0.05, [217, 101], 5)
    [(209, 220), (0, 104)]
    """
    eps, doubt = float(epsilon), _log_doubt(beta)
    above = quantile(epsilon, PRECISE.multiply(HALF, Decimal(beta)))

    def counter(v: int) -> int:
        def plausible(d: int) -> bool:
            if v - d >= 1 and threshold + 1 - d >= 1:  # both far out: their common factor is left out
                return -eps * (v - threshold - 1) > doubt
            return _log_at_least(eps, v - d) - _log_at_least(eps, threshold + 1 - d) > doubt

        return smallest_by_bisection(plausible)

    return [_widened(v, counter(v) - excess, v + above) for v in noisy_counts]


def simultaneous_counters(
    epsilon: Fraction, counters: int, beta: float, noisy_counts: Sequence[int], excess: int
) -> list[tuple[int, int]]:
    """Return (low, high) for each label of a table; they hold all true counts at once, released or not.

    >>> from fractions import Fraction
    >>> simultaneous_counters(Fraction(1), 2000, 0.05, [217], 5)
    [(202, 227)]
    """
    reach = simultaneous_quantile(epsilon, counters, PRECISE.multiply(HALF, Decimal(beta)))
    return [_widened(v, v - reach - excess, v + reach) for v in noisy_counts]


def quantile(epsilon: Fraction, p: Decimal) -> int:
    """Return the smallest q >= 0 with P[Z < -q] <= p, which is also P[Z > q] <= p.

    >>> from fractions import Fraction
    >>> quantile(Fraction(1), Decimal("0.025"))
    3
    """
    # a^(q+1) <= p (1 + a); the logarithm gets within one of q, the exact tail decides
    bound = PRECISE.ln(PRECISE.multiply(p, PRECISE.add(ONE, decay(epsilon, 1))))
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

    return smallest_by_bisection(lambda q: failure(q) <= target)


class _SettledEnds(NamedTuple):
    """high = count + above; low = gap - below for gap = count - minimum >= settled, and below that `_early_lows`."""

    above: int
    below: int
    settled: int


@lru_cache(maxsize=256)
def _settled_ends(epsilon: Fraction, offset: int, beta: float) -> _SettledEnds:
    above = quantile(epsilon, PRECISE.multiply(HALF, Decimal(beta)))
    eps, doubt = float(epsilon), _log_doubt(beta)
    below = smallest_by_bisection(lambda q: _log_difference_at_least(eps, q + 1) <= doubt)

    def settled(i: int) -> bool:  # once low = gap - below it stays so: docs/privacy.md section 5, "What refuses D"
        gap = offset + 1 + i
        return not _plausible(eps, offset, doubt, gap, gap - below - 1)

    return _SettledEnds(above, below, offset + 1 + smallest_by_bisection(settled))


@lru_cache(maxsize=256)
def _simultaneous_ends(epsilon: Fraction, counters: int, tables: int, beta: float) -> tuple[int, int]:
    p = PRECISE.multiply(HALF, Decimal(beta))
    above = simultaneous_quantile(epsilon, counters * tables, p)
    below = simultaneous_difference_quantile(epsilon, counters, PRECISE.divide(p, Decimal(tables)))
    return above, below


def _early_lows(epsilon: float, offset: int, beta: float, gaps: list[int]) -> dict[int, int]:
    """Return, for each of the increasing `gaps`, the smallest D >= 0 with P[W >= gap - D] > (beta/2) P[W > offset - D].

    D says how far the counter is above the minimum; smaller D are refused, at a risk of beta/2 given release. Once
    above 0, D grows by at least as much as the gap (docs/privacy.md section 5, "What refuses D"), so that each search
    starts where the last one ended.
    """
    lows: dict[int, int] = {}
    doubt, last, low = _log_doubt(beta), 0, 0
    for gap in gaps:
        start = low + gap - last if low > 0 else 0
        low = _smallest_plausible(epsilon, offset, doubt, gap, start)
        last = gap
        lows[gap] = low
    return lows


def _smallest_plausible(epsilon: float, offset: int, doubt: float, gap: int, start: int) -> int:
    return start + smallest_by_bisection(lambda i: _plausible(epsilon, offset, doubt, gap, start + i))


def _plausible(epsilon: float, offset: int, doubt: float, gap: int, excess: int) -> bool:
    return _log_difference_ratio(epsilon, gap - excess, offset + 1 - excess) > doubt


def _log_doubt(beta: float) -> float:
    """Return ln(beta/2), lowered by far more than floats err: what it decides can only widen an interval."""
    return math.log(beta / 2) - SLACK


def _widened(noisy_count: int, low: int, high: int) -> tuple[int, int]:
    """Return the ends so that they hold the noisy count and no true count below 0, which only makes them wider."""
    return max(0, min(low, noisy_count)), max(0, high)


def _log_difference_at_least(epsilon: float, k: int) -> float:
    """Return ln P[W >= k] in floats, for any integer k."""
    if k >= 1:
        return -epsilon * k + _log_bracket(epsilon, k)
    return math.log1p(-math.exp(_log_difference_at_least(epsilon, 1 - k)))


def _log_difference_ratio(epsilon: float, j: int, k: int) -> float:
    """Return ln(P[W >= j] / P[W >= k]) in floats; where both are far out their common factor is left out first."""
    if j >= 1 and k >= 1:
        return -epsilon * (j - k) + _log_bracket(epsilon, j) - _log_bracket(epsilon, k)
    return _log_difference_at_least(epsilon, j) - _log_difference_at_least(epsilon, k)


def _log_bracket(epsilon: float, k: int) -> float:
    """Return ln P[W >= k] + epsilon * k for k >= 1: the part of `difference_tail` that is not a power of a."""
    a = math.exp(-epsilon)
    return math.log(-math.expm1(-epsilon) * k + (1 + a + 2 * a * a) / (1 + a)) - 2 * math.log1p(a)


def _log_at_least(epsilon: float, k: int) -> float:
    """Return ln P[Z >= k] in floats, for any integer k."""
    return _log_at_most(epsilon, -k)  # Z is symmetric


def _log_at_most(epsilon: float, y: int) -> float:
    """Return ln P[Z <= y] in floats."""
    if y < 0:
        return epsilon * y - math.log1p(math.exp(-epsilon))
    return math.log1p(-math.exp(-epsilon * (y + 1)) / (1 + math.exp(-epsilon)))


def clipped(count: int, low: int, high: int, floor: int | None = 0) -> tuple[int, int]:
    """Return the ends within the range of counts, no true one of which is below the floor, and around the noisy one."""
    least = -MAX_LENGTH if floor is None else floor
    return min(count, max(least, low)), max(count, least, min(MAX_LENGTH, high))
