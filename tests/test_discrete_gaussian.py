"""The exact discrete Gaussian sampler: its law against the exact chances, its twin, its words, and broken samplers."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from itertools import pairwise
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import binomtest, chi2_contingency, chisquare

from dptop import _native, gaussian
from dptop.errors import InvalidParameter
from dptop.noise import seed_bytes
from dptop.reference import discrete_gaussian as reference
from dptop.reference import discrete_laplace
from dptop.search import smallest_by_bisection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ALARM = 1e-6
DRAWS = 200_000
SHARES = [0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005]
"""Chances of a draw above the end of a cell."""


def cells(variance: int, draws: int) -> list[int]:
    """Return ends of cells e_0 < e_1 < ...: a draw is in cell i if e_(i-1) < z <= e_i. Each expects 25 or more."""
    ends: list[int] = []
    beyond = Decimal("0.5")
    for share in SHARES:
        end = smallest_by_bisection(lambda q, share=share: gaussian.tail(variance, q) <= share)  # type: ignore[misc]
        chance = gaussian.tail(variance, end)
        if min(beyond - chance, chance) * draws >= 25:
            ends.append(end)
            beyond = chance
    return sorted(-end - 1 for end in ends) + ends


def counted(draws: Sequence[int], ends: list[int]) -> list[int]:
    found = Counter(np.searchsorted(ends, np.asarray(draws)).tolist())
    return [found[i] for i in range(len(ends) + 1)]


def law(draws: Sequence[int], variance: int) -> float:
    """Return the p-value of the draws under the exact law, by chi-square."""
    ends = cells(variance, len(draws))
    tails = [Decimal(1), *(gaussian.tail(variance, end) for end in ends), Decimal(0)]
    chances = [float(a - b) for a, b in pairwise(tails)]
    assert len(chances) >= 5
    assert min(chances) * len(draws) >= 25
    return float(chisquare(counted(draws, ends), [chance * len(draws) for chance in chances], sum_check=False).pvalue)


@pytest.mark.parametrize("variance", [1, 2, 3, 5, 17, 100, 10**4, 2**32 - 1, 2**40])
def test_draws_have_the_exact_law(variance: int) -> None:
    """Fresh draws fit the exact chances, in every cell and far out on each side."""
    draws = gaussian.draw(variance, DRAWS)
    p = law(draws, variance)
    assert p > ALARM, f"p-value {p}; this alarm is false once in 10^6 runs, so look for a cause"
    far = smallest_by_bisection(lambda q: gaussian.tail(variance, q) <= Decimal("1e-3"))
    chance = float(gaussian.tail(variance, far))
    for side, beyond in (("upper", sum(z > far for z in draws)), ("lower", sum(z < -far for z in draws))):
        p = binomtest(beyond, DRAWS, chance).pvalue
        assert p > ALARM / 2, f"{side} tail: {beyond} of {DRAWS} at chance {chance}; false-alarm rate 1e-6"


@pytest.mark.parametrize("variance", [1, 3, 100, 10**6])
def test_a_wrong_law_is_seen(variance: int) -> None:
    """Half and twice the variance, one-sided noise and Laplace noise of the same scale fail the same test."""
    assert law(gaussian.draw(2 * variance, DRAWS), variance) < ALARM
    assert law(gaussian.draw(max(1, variance // 2), DRAWS), variance) < ALARM or variance == 1
    assert law([abs(z) for z in gaussian.draw(variance, DRAWS)], variance) < ALARM
    assert law(_native.discrete_laplace(2**32 // (isqrt(variance) + 1), DRAWS), variance) < ALARM
    if variance <= 3:  # rounding shows where the scale is small: it adds 1/12 to the variance
        rounded = np.rint(np.random.default_rng(1).normal(scale=variance**0.5, size=DRAWS)).astype(int)
        assert law(rounded.tolist(), variance) < ALARM


def sampled(accepts: Callable[[int, int, int, Iterator[int]], bool], variance: int, count: int) -> list[int]:
    """Return draws of a sampler like the reference, but for what it accepts: a candidate y, t, the variance, words."""
    words, t = discrete_laplace.seeded_words(seed_bytes(5)), isqrt(variance) + 1
    candidates = (discrete_laplace.one_draw(1, t, words) for _ in iter(int, 1))
    draws = (y for y in candidates if accepts(y, t, variance, words))
    return [next(draws) for _ in range(count)]


def exactly(y: int, t: int, variance: int, words: Iterator[int]) -> bool:
    return reference.bernoulli_exp((abs(y) * t - variance) ** 2, 2 * variance * t * t, words)


def with_floors(y: int, t: int, variance: int, words: Iterator[int]) -> bool:
    return reference.bernoulli_exp((abs(y) - variance // t) ** 2, 2 * variance, words)


def without_the_whole_part(y: int, t: int, variance: int, words: Iterator[int]) -> bool:
    num, den = (abs(y) * t - variance) ** 2, 2 * variance * t * t
    return discrete_laplace.bernoulli_exp(min(num, den), den, words)


def always(y: int, t: int, variance: int, words: Iterator[int]) -> bool:
    return True


def test_the_reference_has_the_exact_law() -> None:
    """The twin passes the test by itself, and is what the sampler below is with the exact acceptance."""
    draws = reference.discrete_gaussian(5, 20_000, seed_bytes(5))
    assert law(draws, 5) > ALARM, "seeded: this does not change between runs"
    assert sampled(exactly, 5, 1000) == draws[:1000]


@pytest.mark.parametrize("accepts", [with_floors, without_the_whole_part, always])
def test_a_wrong_acceptance_is_seen(accepts: Callable[[int, int, int, Iterator[int]], bool]) -> None:
    """An acceptance with floors, one that forgets exponents above 1, and none at all fail the test."""
    assert law(sampled(accepts, 5, 20_000), 5) < ALARM


@pytest.mark.parametrize("variance", [1, 4, 100, 2**20])
def test_draws_agree_with_those_of_opendp(variance: int) -> None:
    """OpenDP's sampler of the same law, which shares no code with ours, fills the cells in the same proportions."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = dp.m.make_gaussian(*space, scale=float(isqrt(variance)))([0] * (DRAWS // 4))
    ends = cells(variance, DRAWS // 4)
    ours = counted(gaussian.draw(variance, DRAWS), ends)
    p = chi2_contingency([ours, counted(theirs, ends)]).pvalue
    assert p > ALARM, f"p-value {p}; this alarm is false once in 10^6 runs, so look for a cause"
    doubled = counted(gaussian.draw(2 * variance, DRAWS), ends)
    assert chi2_contingency([np.add(doubled, 1), np.add(counted(theirs, ends), 1)]).pvalue < ALARM


VARIANCES = [1, 2, 3, 4, 8, 9, 99, 100, 101, 2**20, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**39, 2**40 - 1, 2**40]


@pytest.mark.parametrize("variance", VARIANCES)
def test_native_draws_are_those_of_the_twin(variance: int) -> None:
    """From the same seed the crate and its twin return the same numbers; from 2^31 on, fractions take two words."""
    for number in range(3):
        seed = seed_bytes(number)
        assert _native.discrete_gaussian(variance, 200, seed) == reference.discrete_gaussian(variance, 200, seed)


def test_native_draws_are_those_of_the_twin_at_any_variance() -> None:
    """The same for 300 variances of all sizes."""
    generator = random.Random(11)
    for _ in range(300):
        variance = generator.randrange(1, 1 << generator.randrange(1, 41))
        seed = generator.randbytes(32)
        assert _native.discrete_gaussian(variance, 20, seed) == reference.discrete_gaussian(variance, 20, seed)


def test_words_are_consumed_as_the_protocol_says() -> None:
    """A hand-made stream of words, step by step: the twins agree only if each reads exactly these."""
    # n = 1 reads nothing; up to 2^64 one word is enough; beyond, the first is the lower one, and high bits are dropped
    words = iter([7, 5, 0b1011])
    assert reference.uniform(1, words) == 0
    assert reference.uniform(2**64, words) == 7
    assert reference.uniform(2**66, words) == 3 * 2**64 + 5
    assert next(words, None) is None
    # 2^65 + 1 takes 66 bits; an upper word of 3 makes it too large, and both words are drawn anew
    words = iter([0, 3, 1, 4])
    assert reference.uniform(2**65 + 1, words) == 1
    assert next(words, None) is None
    # exp(-5/2): exp(-1) succeeds twice (1/1, then 1/2 on 0, then 1/3 fails on 2), then exp(-1/2) on 1 at 1/2
    words = iter([0, 2, 0, 2, 1])
    assert reference.bernoulli_exp(5, 2, words) is True
    assert next(words, None) is None
    # exp(-2): one exp(-1) for the part above 1, and it fails: 1/2 on 1
    words = iter([1])
    assert reference.bernoulli_exp(2, 1, words) is False
    assert next(words, None) is None
    # variance 1, t = 2. The candidate: u = 0; exp(-0) at 2 reads no success: uniform(2) < 0 fails on 1; v = 0 (1/2 on
    # 1); the sign 0: y = 0. Kept with exp(-(0 - 1)^2 / 8): a word 5 of three bits is not below 1
    words = iter([0, 1, 1, 0, 5])
    assert reference.one_draw(1, words) == 0
    assert next(words, None) is None


def test_a_seed_repeats_and_another_does_not() -> None:
    """A seeded stream does not depend on how many draws are asked for; another seed gives another."""
    some = gaussian.draw(10**6, 50, seed=1)
    assert gaussian.draw(10**6, 100, seed=1)[:50] == some
    assert gaussian.draw(10**6, 50, seed=2) != some


def test_every_call_has_fresh_entropy() -> None:
    """Two calls differ: 100 draws at variance 2^40 repeat by chance once in 2^2000. The twin's do not repeat either."""
    assert len({tuple(gaussian.draw(2**40, 100)) for _ in range(20)}) == 20
    assert reference.discrete_gaussian(2**40, 40, None) != reference.discrete_gaussian(2**40, 40, None)


@pytest.mark.parametrize("variance", [0, -1, 2**40 + 1, 2**64, 1.0, True, None])
def test_a_variance_out_of_range_draws_nothing(variance: Any) -> None:
    """The face refuses it with a remedy."""
    with pytest.raises(InvalidParameter, match=r"variance must be a whole number from 1 to 2\*\*40.*smallest_variance"):
        gaussian.draw(variance, 1)


@pytest.mark.parametrize(
    "arguments", [(0, 1), (-1, 1), (2**40 + 1, 1), (2**64, 1), (1, -1), (1.5, 1), (1, 1, b"short"), (1, 1, bytes(33))]
)
def test_the_border_refuses_bad_arguments(arguments: tuple[Any, ...]) -> None:
    """No argument out of range reaches the sampler."""
    with pytest.raises((InvalidParameter, OverflowError, TypeError)):
        _native.discrete_gaussian(*arguments)


def test_no_draws() -> None:
    """Zero draws are none."""
    assert gaussian.draw(1, 0) == []
