"""The exact discrete Gaussian sampler of Canonne, Kamath, Steinke 2020 (Algorithms 1 and 3), in whole numbers only.

P[Z = z] is proportional to exp(-z^2 / (2 variance)) for a whole variance. The fast twin in the crate `summaries` reads
the same 64-bit words in the same order, so that both return the same draws from the same words.
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING

from dptop.reference import discrete_laplace
from dptop.reference.discrete_laplace import seeded_words, system_words

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["bernoulli_exp", "discrete_gaussian", "one_draw", "uniform"]


def discrete_gaussian(variance: int, count: int, seed: bytes | None) -> list[int]:
    """Return `count` independent draws.

    Args:
        variance: at least 1.
        count: at least 0.
        seed: None for entropy of the system; 32 bytes for a repeatable stream, in tests only.

    >>> discrete_gaussian(10, 8, bytes(32)) == discrete_gaussian(10, 8, bytes(32))
    True
    """
    words = system_words() if seed is None else seeded_words(seed)
    return [one_draw(variance, words) for _ in range(count)]


def one_draw(variance: int, words: Iterator[int]) -> int:
    """Return one draw, for variance >= 1.

    A discrete Laplace candidate y of scale t is kept with probability exp(-(|y| - variance/t)^2 / (2 variance)). The
    two exponents add up to -y^2 / (2 variance) and a constant; t near sigma refuses the fewest.
    """
    t = isqrt(variance) + 1  # floor(sigma) + 1
    while True:
        y = discrete_laplace.one_draw(1, t, words)
        if bernoulli_exp((abs(y) * t - variance) ** 2, 2 * variance * t**2, words):
            return y


def bernoulli_exp(num: int, den: int, words: Iterator[int]) -> bool:
    """Return True with probability exp(-num / den), for num >= 0 and den >= 1; num may exceed den.

    exp(-1) once for each whole unit that num / den exceeds, then what is left, at most 1, by the run of successes at
    chances g/1, g/2, g/3, ...
    """
    while num > den:
        if not discrete_laplace.bernoulli_exp(1, 1, words):
            return False
        num -= den
    k = 1
    while uniform(den * k, words) < num:
        k += 1
    return k % 2 == 1


def uniform(n: int, words: Iterator[int]) -> int:
    """Return a whole number below `n`, each with the same chance; n >= 1. n = 1 reads no word.

    Each attempt reads as many words as n - 1 needs, the lowest first, and drops the bits above it.
    """
    if n == 1:
        return 0
    bits = (n - 1).bit_length()
    while True:
        r = sum(next(words) << at for at in range(0, bits, 64)) & ((1 << bits) - 1)
        if r < n:
            return r
