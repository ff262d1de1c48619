"""The hash family of the sketches: what is proved of it, and what is assumed, each seen to fail for a broken copy."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import binom, chi2, chisquare

from dptop._native import LabelBatch
from dptop.reference.row_hash import RowHash
from sketching import extend, sketch_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ALARM = 1e-6
FALSE_ALARM = "this alarm is false once in 10^6 runs, so look for a cause"

Words = np.ndarray[Any, np.dtype[np.uint64]]

# pairs of fingerprints that a weaker family tells apart badly: neighbours, one bit, halves alike or swapped
PAIRS = [
    (0, 1),
    (0, 2**63),
    (1, 3),
    (1, 2**32),
    (5, 5 + 2**32),
    (2**32, 2**33),
    (2**31, 2**63),
    (2**64 - 1, 2**64 - 2),
    (0x0123456789ABCDEF, 0x89ABCDEF01234567),
    (0xFFFFFFFF, 0xFFFFFFFF00000000),
]
ROWS = 65_535
"""Rows of a sketch, each hash drawn by itself: a sample of the family."""


def rows_of(seed: int | None = None) -> Words:
    _, rows = sketch_of("count-sketch", 1, ROWS, seed).keys()
    return np.array(rows, dtype=np.uint64)


def multiply_shift(rows: Words, f: int) -> Words:
    """Return 8 classes for each row: 2 bits of the bucket and the sign, as the twin has them."""
    low, high = np.uint64(f % 2**32), np.uint64(f >> 32)
    h: Words = rows[:, 0] * low + rows[:, 1] * high + rows[:, 2]
    return (h >> np.uint64(62)) * np.uint64(2) + (h >> np.uint64(31) & np.uint64(1))


def without_sum(rows: Words, f: int) -> Words:
    return multiply_shift(rows * np.array([1, 1, 0], dtype=np.uint64), f)


def low_half_alone(rows: Words, f: int) -> Words:
    return multiply_shift(rows, f % 2**32)


def low_bits(rows: Words, f: int) -> Words:
    low, high = np.uint64(f % 2**32), np.uint64(f >> 32)
    h: Words = rows[:, 0] * low + rows[:, 1] * high + rows[:, 2]
    return h & np.uint64(7)


def joint_law(family: Callable[[Words, int], Words], rows: Words, pair: tuple[int, int]) -> float:
    """Return the p-value of bucket and sign of both fingerprints being uniform together, over the 64 classes."""
    one, other = (family(rows, f) for f in pair)
    counted = np.bincount((one * np.uint64(8) + other).astype(np.int64), minlength=64)
    return float(chisquare(counted).pvalue)


def test_the_vectorised_copy_here_is_the_twin() -> None:
    """So that what holds of it holds of the twin, and by test_sketches_native.py of the native hash."""
    rows = rows_of(1)[:200]
    for pair, row in itertools.product(PAIRS, rows):
        for f in pair:
            twin = RowHash(*map(int, row))
            expected = twin.bucket(f, 4) * 2 + (twin.sign(f) < 0)
            assert int(multiply_shift(row[None], f)[0]) == expected


@pytest.mark.parametrize("pair", PAIRS)
def test_buckets_and_signs_of_a_pair_are_independent(pair: tuple[int, int]) -> None:
    """For any two fingerprints: uniform on all 64 combinations of two buckets of 4 and two signs."""
    p = joint_law(multiply_shift, rows_of(), pair)
    assert p > ALARM / len(PAIRS), f"p-value {p}; {FALSE_ALARM}"


@pytest.mark.parametrize("family", [without_sum, low_half_alone, low_bits])
def test_weaker_families_are_seen(family: Callable[[Words, int], Words]) -> None:
    """No c; one half of the fingerprint alone; the low bits in place of the high ones."""
    rows = rows_of(2)
    assert min(joint_law(family, rows, pair) for pair in PAIRS) < ALARM / len(PAIRS)


LABELS: dict[str, Callable[[int], Any]] = {
    "sequential": lambda i: i,
    "multiples of 2^32": lambda i: i << 32,
    "powers of two apart": lambda i: i << 40,
    "around 2^63": lambda i: 2**63 + i,
    "strings": lambda i: f"user-{i:08d}",
    "bytes": lambda i: bytes([0, i % 256, 0, i // 256]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_native_buckets_and_signs_of_two_labels_are_independent(kind: str) -> None:
    """The whole way from label to cell: with weights 1 and 3 the cells of a row tell where both labels are."""
    width = 4
    sketch = sketch_of("count-sketch", width, ROWS)
    extend(sketch, [LABELS[kind](1), LABELS[kind](2)], [1, 3])
    counted = Counter(map(tuple, sketch.cells()))
    expected = {}
    for one, other, s, t in itertools.product(range(width), range(width), (1, -1), (1, -1)):
        cells = [0] * width
        cells[one] += s
        cells[other] += 3 * t
        expected[tuple(cells)] = 1 / 64
    assert len(expected) == 64
    assert counted.keys() <= expected.keys()
    p = float(chisquare([counted[cells] for cells in expected]).pvalue)
    assert p > ALARM / len(LABELS), f"p-value {p}; {FALSE_ALARM}"


def filling(buckets: Sequence[int], width: int) -> float:
    """Return the chance of labels that are thrown into buckets to fill them as unevenly, or as evenly, as these."""
    counted = np.bincount(buckets, minlength=width)
    expected = len(buckets) / width
    statistic = float(((counted - expected) ** 2).sum() / expected)
    return 2 * min(float(chi2.sf(statistic, width - 1)), float(chi2.cdf(statistic, width - 1)))


@pytest.mark.parametrize("kind", LABELS)
def test_labels_fill_a_row_as_if_thrown(kind: str) -> None:
    """What the proofs assume beyond pairs: also labels in a sequence fall like independent ones, with either sign."""
    labels = [LABELS[kind](i) for i in range(1, 20_001)]
    sketch = sketch_of("count-sketch", 64, 5)
    fingerprints = sketch.fingerprints(LabelBatch.from_sequence(labels))
    assert len(set(fingerprints)) == len(labels)
    for key in sketch.keys()[1]:
        row = RowHash(*key)
        cells = [row.bucket(f, 64) * 2 + (row.sign(f) < 0) for f in fingerprints if f is not None]
        p = filling(cells, 128)
        assert p > ALARM / (5 * len(LABELS)), f"chance {p}; {FALSE_ALARM}"


def test_labels_without_fingerprints_do_not_fall_as_if_thrown() -> None:
    """Multiply-shift alone spreads a sequence too evenly: it is pairs that are independent, and no more."""
    row = RowHash(*map(int, rows_of(3)[0]))
    assert filling([row.bucket(i, 128) for i in range(1, 20_001)], 128) < ALARM


SKETCHES = 20_000
DEPTH = 8
WIDTH = 16


def binomial_law(collisions: Sequence[int]) -> float:
    """Return the p-value of the number of rows in which a pair collides being binomial: 0, 1, 2, 3, 4 or more."""
    counted = Counter(min(count, 4) for count in collisions)
    chances = [*(float(binom.pmf(k, DEPTH, 1 / WIDTH)) for k in range(4)), float(binom.sf(3, DEPTH, 1 / WIDTH))]
    assert min(chances) * len(collisions) > 15
    return float(chisquare([counted[k] for k in range(5)], [chance * len(collisions) for chance in chances]).pvalue)


@pytest.mark.parametrize("pair", [(0, 1), ("a", "b")])
def test_rows_are_independent(pair: tuple[Any, Any]) -> None:
    """A pair that collides in one row is no more likely to in another: exactly binomial, as 16 divides 2^32."""
    collisions = []
    for _ in range(SKETCHES):
        sketch = sketch_of("count-min", WIDTH, DEPTH)
        extend(sketch, list(pair))
        collisions.append(sum(2 in row for row in sketch.cells()))
    p = binomial_law(collisions)
    assert p > ALARM / 2, f"p-value {p}; {FALSE_ALARM}"


def double_hashing(generator: random.Random) -> list[RowHash]:
    """Return the rows of a broken copy: row r has the hash h + r * g, from two hashes for all rows."""
    h, g = (RowHash(*(generator.getrandbits(64) for _ in range(3))) for _ in range(2))
    return [RowHash(*((x + r * y) % 2**64 for x, y in zip(h, g, strict=True))) for r in range(DEPTH)]


def shifted_rows(generator: random.Random) -> list[RowHash]:
    """Return the rows of a broken copy: all multiply by the same numbers."""
    a, b = generator.getrandbits(64), generator.getrandbits(64)
    return [RowHash(a, b, generator.getrandbits(64)) for _ in range(DEPTH)]


def independent_rows(generator: random.Random) -> list[RowHash]:
    return [RowHash(*(generator.getrandbits(64) for _ in range(3))) for _ in range(DEPTH)]


def collisions_of(draw: Callable[[random.Random], list[RowHash]]) -> list[int]:
    generator = random.Random(10)
    keys = (draw(generator) for _ in range(SKETCHES))
    return [sum(row.bucket(12345, WIDTH) == row.bucket(67890, WIDTH) for row in rows) for rows in keys]


@pytest.mark.parametrize("draw", [double_hashing, shifted_rows])
def test_rows_that_share_numbers_are_seen(draw: Callable[[random.Random], list[RowHash]]) -> None:
    """The same test finds double hashing, and rows that differ by what is added alone."""
    assert binomial_law(collisions_of(draw)) < ALARM
    assert binomial_law(collisions_of(independent_rows)) > ALARM
