"""Vectors with discrete Gaussian noise are (epsilon, delta)-private: exact enumeration of all noisy vectors.

Neighbouring sketches of `depth` rows differ by +1 or -1 in one cell of each row; the other cells have the same law on
both sides and change nothing. The smallest delta that holds at epsilon is the sum over all noisy vectors y of
max(0, P[y] - e^epsilon P'[y]). It is summed here over the vectors themselves, without the sum S of the proof.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dptop.gaussian import delta, smallest_variance

FLOATS = 1e-10
"""What floats may err by, relatively: sums of at most 10^6 positive terms."""

EXCESS = {1: 3e-4, 2: 2e-8}
"""By how much `delta` may exceed the true value at small variances, where it is more than floats err by."""


def divergence(epsilon: float, variance: int, signs: tuple[int, ...]) -> float:
    """Return the sum over y of max(0, P[y] - e^epsilon P'[y]): P of noise alone, P' of noise around `signs`."""
    reach = math.isqrt(140 * variance) + 2
    values = np.arange(-reach - 1, reach + 2)
    weights = np.exp(-(values**2) / (2 * variance))
    single = weights / weights.sum()
    here, there = np.ones(1), np.ones(1)
    for sign in signs:
        shifted = np.exp(-((values - sign) ** 2) / (2 * variance)) / weights.sum()
        here, there = np.multiply.outer(here, single).ravel(), np.multiply.outer(there, shifted).ravel()
    return float(np.maximum(0, here - math.exp(epsilon) * there).sum())


CASES = [
    (variance, depth, epsilon)
    for variance in (1, 2, 4, 10)
    for depth in (1, 2, 3)
    for epsilon in (Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(5, 2))
]


@pytest.mark.parametrize(("variance", "depth", "epsilon"), CASES)
def test_delta_is_the_divergence_of_neighbouring_vectors(variance: int, depth: int, epsilon: Fraction) -> None:
    """For every pattern of signs, so in both directions: at most delta, and equal to it but for rounding."""
    promised = float(delta(epsilon, variance, depth))
    for signs in product((1, -1), repeat=depth):
        exact = divergence(float(epsilon), variance, signs)
        assert exact <= promised * (1 + FLOATS)
        assert promised <= exact * (1 + FLOATS + EXCESS.get(variance, 0))


@pytest.mark.parametrize(("variance", "depth", "epsilon"), [case for case in CASES if case[1] > 1])
def test_a_condition_without_the_depth_is_seen(variance: int, depth: int, epsilon: Fraction) -> None:
    """The delta of one cell, of twice the variance, and of one cell less are all broken promises for these vectors."""
    exact = divergence(float(epsilon), variance, (1,) * depth)
    assert exact > float(delta(epsilon, variance, 1)) * (1 + 1e-3)
    assert exact > float(delta(epsilon, 2 * variance, depth)) * (1 + 1e-3)
    assert exact > float(delta(epsilon, variance, depth - 1)) * (1 + 1e-3)


@pytest.mark.parametrize(
    ("epsilon", "target", "depth"), [(Fraction(1), "1e-3", 2), (Fraction(2), "1e-4", 3), (Fraction(1, 2), "0.05", 3)]
)
def test_the_smallest_variance_is_private_and_one_less_is_not(epsilon: Fraction, target: str, depth: int) -> None:
    """The vectors' divergence is at most delta at the variance found, and above it at the one before."""
    variance = smallest_variance(epsilon, Decimal(target), depth)
    assert divergence(float(epsilon), variance, (1,) * depth) <= float(target)
    assert divergence(float(epsilon), variance - 1, (1,) * depth) > float(target)


def test_a_cell_that_changes_by_two_is_not_covered() -> None:
    """The promise is for changes by one: a cell that two rows shared would change by two, and break it."""
    promised = float(delta(Fraction(1), 4, 2))
    assert divergence(1.0, 4, (2,)) > promised
    assert divergence(1.0, 4, (1, -1)) <= promised * (1 + FLOATS)
