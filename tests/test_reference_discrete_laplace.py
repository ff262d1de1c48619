"""The exact sampler: the reference has the right distribution, and the native one returns the same draws."""

from __future__ import annotations

import hashlib
from collections import Counter
from fractions import Fraction
from itertools import count, islice

import pytest
from scipy.stats import binomtest, chisquare

from dptop import _native
from dptop.noise import pmf, tail
from dptop.reference.discrete_laplace import (
    bernoulli_exp,
    discrete_laplace,
    one_draw,
    seeded_words,
    system_words,
    uniform,
)

SEED = hashlib.sha256(b"dptop tests").digest()
GRID = 2**32
NUMERATORS = [GRID // 20, GRID // 4 + 1, GRID, 5 * GRID // 2, 7 * GRID + 3]
FALSE_ALARM = 1e-6


def assert_fits(draws: list[int], epsilon: Fraction, about: str) -> None:
    """Compare draws with the exact probabilities: by chi-square in the middle, and by count in both tails."""
    total = len(draws)
    edge = next(z for z in count() if float(tail(epsilon, z)) * total < 20)
    counts = Counter(max(-edge - 1, min(edge + 1, z)) for z in draws)
    chances = {z: float(pmf(epsilon, z)) for z in range(-edge, edge + 1)}
    chances[edge + 1] = chances[-edge - 1] = float(tail(epsilon, edge))
    cells = [z for z in chances if chances[z] * total >= 5]
    rest = 1 - sum(chances[z] for z in cells)
    observed = [counts[z] for z in cells]
    expected = [chances[z] * total for z in cells]
    if rest * total > 1e-6:
        observed.append(total - sum(observed))
        expected.append(rest * total)
    p = chisquare(observed, expected, sum_check=False).pvalue
    assert p > FALSE_ALARM, f"chi-square p = {p}, {about}; false-alarm rate 1e-6, so look for a cause"
    for side, hits in (("upper", sum(z > edge for z in draws)), ("lower", sum(z < -edge for z in draws))):
        p = binomtest(hits, total, float(tail(epsilon, edge))).pvalue
        assert p > FALSE_ALARM, f"{side} tail p = {p}, {about}; false-alarm rate 1e-6, so look for a cause"


@pytest.mark.parametrize("numerator", NUMERATORS)
def test_draws_have_the_exact_distribution(numerator: int) -> None:
    """Draws of the reference fit the exact probabilities, in the middle and in both tails."""
    draws = discrete_laplace(numerator, 20_000, SEED)
    assert_fits(draws, Fraction(numerator, GRID), f"numerator {numerator}, seed {SEED.hex()}")


def test_a_wrong_scale_is_seen() -> None:
    """The check above fails on noise for twice the epsilon, and on noise that never is negative."""
    draws = discrete_laplace(GRID, 20_000, SEED)
    with pytest.raises(AssertionError, match="chi-square"):
        assert_fits(draws, Fraction(2), "noise for epsilon 1 read as noise for epsilon 2")
    with pytest.raises(AssertionError):
        assert_fits([abs(z) for z in draws], Fraction(1), "one-sided noise")


def test_zero_with_two_signs_is_seen() -> None:
    """Leaving out the rejection of a negative zero makes zero too frequent, and the check says so."""
    # geometric magnitudes with a free sign: what one_draw gives without its last rejection
    magnitudes = [abs(z) for z in discrete_laplace(GRID, 20_000, SEED) if z != 0]
    geometric = [m - 1 for m in magnitudes]  # P[m - 1 = y] is proportional to exp(-y), by memorylessness
    signs = [w & 1 for w in islice(seeded_words(SEED[::-1]), len(geometric))]
    with pytest.raises(AssertionError, match="chi-square"):
        assert_fits([-y if s else y for y, s in zip(geometric, signs, strict=True)], Fraction(1), "two zeros")


@pytest.mark.parametrize("numerator", [1, 4096, *NUMERATORS, 64 * GRID, 64 * GRID - 1])
def test_native_draws_equal_reference_draws(numerator: int) -> None:
    """From the same seed the native sampler returns the same draws, one by one."""
    assert _native.discrete_laplace(numerator, 2_000, SEED) == discrete_laplace(numerator, 2_000, SEED)


def test_the_seeded_stream_is_sha256_in_counter_mode() -> None:
    """The words are those of SHA-256(seed, block number), four little-endian words from each block."""
    blocks = b"".join(hashlib.sha256(bytes(32) + bytes([i]) + bytes(7)).digest() for i in range(3))
    expected = [int.from_bytes(blocks[at : at + 8], "little") for at in range(0, 96, 8)]
    assert list(islice(seeded_words(bytes(32)), 12)) == expected


def test_words_are_consumed_as_the_protocol_says() -> None:
    """A hand-made stream of words, step by step: the twins agree only if each reads exactly these."""
    # n = 1 reads nothing; n = 5 masks to three bits and throws 7 and 5 away
    words = iter([0b1111, 0b1101, 0b1100])
    assert uniform(1, words) == 0
    assert uniform(5, words) == 4
    assert next(words, None) is None
    # exp(-1): success at 1/1 reads nothing, failure at 1/2 on the word 1: a run of one success, k = 2, False
    words = iter([1])
    assert bernoulli_exp(1, 1, words) is False
    assert next(words, None) is None
    # exp(-0): uniform(1) < 0 fails at once: True, without a word
    assert bernoulli_exp(0, 1, iter([])) is True
    # epsilon = 1: u = 0 is kept; exp(-1) succeeds (1/1, then 1/2 on 0, then 1/3 masked to 2): v = 1;
    # it fails on 1 at 1/2; the sign 1 makes -1
    words = iter([0, 2, 1, 1])
    assert one_draw(1, 1, words) == -1
    assert next(words, None) is None
    # v = 0 with the sign 1 starts over
    words = iter([1, 1, 1, 0])
    assert one_draw(1, 1, words) == 0
    assert next(words, None) is None


def test_system_words_differ() -> None:
    """Two streams of the system's entropy do not repeat each other (by chance: once in 2^512 runs)."""
    assert list(islice(system_words(), 8)) != list(islice(system_words(), 8))
    assert discrete_laplace(GRID // 1000, 40, None) != discrete_laplace(GRID // 1000, 40, None)
