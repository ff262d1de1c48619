"""Streams that are drawn: Zipf's law, and a stand-in for the packet trace that cannot be shipped."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments.streams.stream import Stream

__all__ = ["DISTINCT", "LENGTH", "TRACE_DISTINCT", "TRACE_LENGTH", "trace_stand_in", "zipf"]

LENGTH: Final = 2**24
DISTINCT: Final = 100_001
TRACE_LENGTH: Final = 26_600_000
"""Packets of the paper's trace, section 6.2."""
TRACE_DISTINCT: Final = 312_000
"""Its source addresses."""
TRACE_SKEW: Final = 1.1
"""Not published: the smallest skew of the synthetic streams."""

Integers = npt.NDArray[np.int64]


def zipf(skew: float, seed: int, repetition: int, *, length: int = LENGTH, distinct: int = DISTINCT) -> Stream:
    """Return independent draws, the label of rank r with probability proportional to r^-skew.

    Labels are numbers in an order that has nothing to do with their ranks: Misra-Gries prefers small ones.
    """
    random = _random(seed, round(10 * skew), repetition)
    items = random.permutation(distinct)[_ranks(random, skew, length, distinct)]
    return Stream("zipf", pa.array(items), f"Zipf {skew:g} over {distinct:,} labels, drawn")


def trace_stand_in(seed: int, *, length: int = TRACE_LENGTH, distinct: int = TRACE_DISTINCT) -> Stream:
    """Return a stream with the published length and number of labels of the paper's trace: no more is known of it.

    Every label occurs once; the other items are drawn by Zipf's law; all are shuffled.
    """
    random = _random(seed, length, distinct)
    ranks = np.concatenate([np.arange(distinct), _ranks(random, TRACE_SKEW, length - distinct, distinct)])
    random.shuffle(ranks)
    words = (
        f"a synthetic stand-in and not the CAIDA trace: its published size, {length:,} items over {distinct:,} labels"
    )
    return Stream("trace-stand-in", pa.array(random.permutation(distinct)[ranks]), f"{words}, Zipf {TRACE_SKEW:g}")


def _random(*entropy: int) -> np.random.Generator:
    return np.random.default_rng(entropy)


def _ranks(random: np.random.Generator, skew: float, length: int, distinct: int) -> Integers:
    """Draw ranks from 0, by inversion."""
    cumulated: npt.NDArray[Any] = np.cumsum(np.arange(1, distinct + 1, dtype=np.float64) ** -skew)
    ranks: Integers = np.searchsorted(cumulated, random.random(length) * cumulated[-1], side="right")
    return np.minimum(ranks, distinct - 1)  # a product that is rounded up may reach the end
