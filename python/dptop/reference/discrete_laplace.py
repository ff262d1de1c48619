"""The exact discrete Laplace sampler of Canonne, Kamath, Steinke 2020 (Algorithms 1 and 2), in whole numbers only.

P[Z = z] is proportional to exp(-s |z| / t) for integers s, t >= 1; epsilon = s / t. The fast twin in the crate
`summaries` reads the same 64-bit words in the same order, so that both return the same draws from the same words.
"""

from __future__ import annotations

import hashlib
import secrets
from itertools import count as counting
from math import gcd
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["bernoulli", "bernoulli_exp", "discrete_laplace", "one_draw", "seeded_words", "system_words", "uniform"]

EPSILON_DENOMINATOR: Final = 2**32


def discrete_laplace(numerator: int, count: int, seed: bytes | None) -> list[int]:
    """Return `count` independent draws with epsilon = numerator / 2^32.

    Args:
        numerator: at least 1.
        count: at least 0.
        seed: None for entropy of the system; 32 bytes for a repeatable stream, in tests only.

    >>> discrete_laplace(2**32, 8, bytes(32)) == discrete_laplace(2**32, 8, bytes(32))
    True
    """
    common = gcd(numerator, EPSILON_DENOMINATOR)
    words = system_words() if seed is None else seeded_words(seed)
    return [one_draw(numerator // common, EPSILON_DENOMINATOR // common, words) for _ in range(count)]


def one_draw(s: int, t: int, words: Iterator[int]) -> int:
    """Return one draw with epsilon = s / t, for s, t >= 1 without a common factor."""
    while True:
        # u + t v is geometric: P[x] is proportional to exp(-x / t)
        u = uniform(t, words)
        if not bernoulli_exp(u, t, words):
            continue
        v = 0
        while bernoulli_exp(1, 1, words):
            v += 1
        y = (u + t * v) // s  # geometric again: P[y] is proportional to exp(-s y / t)
        negative = uniform(2, words) == 1
        if negative and y == 0:
            continue  # 0 has one sign only
        return -y if negative else y


def bernoulli_exp(num: int, den: int, words: Iterator[int]) -> bool:
    """Return True with probability exp(-num / den), for 0 <= num <= den.

    The run of successes at chances g/1, g/2, g/3, ... has an even length with probability exp(-g).
    """
    k = 1
    while bernoulli(num, den * k, words):
        k += 1
    return k % 2 == 1


def bernoulli(num: int, den: int, words: Iterator[int]) -> bool:
    """Return True with probability num / den, for 0 <= num <= den."""
    return uniform(den, words) < num


def uniform(n: int, words: Iterator[int]) -> int:
    """Return a whole number below `n`, each with the same chance; 1 <= n <= 2^63. n = 1 reads no word."""
    if n == 1:
        return 0
    mask = (1 << (n - 1).bit_length()) - 1
    while True:
        r = next(words) & mask
        if r < n:
            return r


def system_words() -> Iterator[int]:
    """Yield 64-bit words from the entropy of the operating system, each fresh."""
    while True:
        yield int.from_bytes(secrets.token_bytes(8), "little")


def seeded_words(seed: bytes) -> Iterator[int]:
    """Yield the words of SHA-256(seed, 0), SHA-256(seed, 1), ...: four little-endian words from each block."""
    for i in counting():
        block = hashlib.sha256(seed + i.to_bytes(8, "little")).digest()
        for at in range(0, 32, 8):
            yield int.from_bytes(block[at : at + 8], "little")
