"""The exact stability histogram is (epsilon, delta)-private: exact sums over its noise, as for StableThreshold."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binomtest, chisquare

from dptop.errors import InvalidParameter
from dptop.noise import pmf, tail
from experiments.methods.exact import ExactCounts, counted
from experiments.methods.histogram import StabilityHistogram
from test_exact_divergence import ONE, Enclosure, Shape, noise, worst

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

ALARM = 1e-6

PARAMETERS = [(1.0, 1e-6), (1.0, 1e-2), (0.5, 1e-4), (0.1, 1e-3), (2.0, 1e-6), (3.0, 0.3), (8.0, 0.9)]

NEW = Shape((0, 0), only_first=(1,))
"""A label that one neighbour has once and the other one lacks."""


def known(threshold: int) -> frozenset[Shape]:
    """Return neighbours that both have the label: below, at and above the threshold."""
    return frozenset(
        Shape((0, 0), common=((c + 1, c),))
        for c in {1, 2, max(1, threshold - 1), threshold, threshold + 1, 3 * threshold}
    )


def largest(kinds: frozenset[Shape], epsilon: Fraction, keeps: Callable[[int], bool], of: Fraction) -> Enclosure:
    """Return the largest divergence at epsilon, in both directions, with the noise of another epsilon."""
    return worst(kinds, epsilon, lambda v, _: keeps(v), noise(of), {0: ONE})


@pytest.mark.parametrize(("epsilon", "delta"), PARAMETERS)
def test_a_label_that_both_have_costs_no_delta(epsilon: float, delta: float) -> None:
    histogram = StabilityHistogram.calibrate(epsilon=epsilon, delta=delta)
    found = largest(known(histogram.threshold), histogram.epsilon, histogram.keeps, histogram.epsilon)
    assert found.high <= Decimal("1e-14")


@pytest.mark.parametrize(("epsilon", "delta"), PARAMETERS)
def test_a_label_that_one_has_costs_delta_and_no_less(epsilon: float, delta: float) -> None:
    """The divergence is P[Z > g] itself, at most delta; with a threshold less by one it is more than delta."""
    histogram = StabilityHistogram.calibrate(epsilon=epsilon, delta=delta)
    kinds = frozenset([NEW])
    found = largest(kinds, histogram.epsilon, histogram.keeps, histogram.epsilon)
    assert found.low <= histogram.failure_probability <= found.high <= histogram.delta

    def less_by_one(noisy_count: int) -> bool:
        return noisy_count > histogram.threshold - 1

    if histogram.threshold > 1:  # at g = 0 the threshold is as low as the rule lets it be
        assert largest(kinds, histogram.epsilon, less_by_one, histogram.epsilon).low > histogram.delta


def test_a_comparison_that_is_not_strict_breaks_the_promise() -> None:
    histogram = StabilityHistogram.calibrate(epsilon=1.0, delta=1e-4)

    def not_strict(noisy_count: int) -> bool:
        return noisy_count >= histogram.threshold

    assert largest(frozenset([NEW]), histogram.epsilon, not_strict, histogram.epsilon).low > histogram.delta


def test_half_the_noise_breaks_the_promise() -> None:
    """On a label that both have; on one that only one has it is the threshold that protects, and noise that harms."""
    histogram = StabilityHistogram.calibrate(epsilon=1.0, delta=1e-4)
    half = 2 * histogram.epsilon
    assert largest(known(histogram.threshold), histogram.epsilon, histogram.keeps, half).low > histogram.delta


@pytest.mark.parametrize(("epsilon", "delta"), PARAMETERS)
def test_thresholds_are_those_of_the_formula(epsilon: float, delta: float) -> None:
    """P[Z > g] = a^(g+1)/(1+a) <= delta, solved for g in floats; and by adding up the noise."""
    closed_form = max(0, math.ceil(math.log(1 / ((1 + math.exp(-epsilon)) * delta)) / epsilon) - 1)
    histogram = StabilityHistogram.calibrate(epsilon=epsilon, delta=delta)
    assert histogram.threshold == 1 + closed_form
    beyond = sum((p for z, p in noise(histogram.epsilon).items() if z > closed_form), Decimal(0))
    assert beyond <= histogram.delta


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-6), (math.nan, 1e-6), (1.0, 0.0), (1.0, 1.0), (1.0, math.nan)])
def test_parameters_out_of_range_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidParameter):
        StabilityHistogram.calibrate(epsilon=epsilon, delta=delta)


@dataclass(frozen=True, slots=True)
class HalfTheNoise(StabilityHistogram):
    """A broken copy: the threshold of epsilon, the noise of 2 epsilon."""

    def release(
        self, exact: ExactCounts, *, seed: int | None = None, least_count: int | None = None
    ) -> dict[int | str, int]:
        noise_only = StabilityHistogram(2 * self.epsilon, self.delta)
        object.__setattr__(noise_only, "threshold", self.threshold)
        return noise_only.release(exact, seed=seed, least_count=least_count)


def audit(histogram: StabilityHistogram) -> tuple[float, float]:
    """Return p-values of what is seen of 200,000 labels: how many with one item are published, and all noise."""
    labels = 200_000
    once = ExactCounts(pa.array(range(labels)), np.ones(labels, np.int64))
    published = len(histogram.release(once, seed=1))
    chance = binomtest(published, labels, float(tail(histogram.epsilon, histogram.threshold - 1))).pvalue
    often = ExactCounts(pa.array(range(labels)), np.full(labels, 1000, np.int64))
    seen = Counter(np.clip([v - 1000 for v in histogram.release(often, seed=2).values()], -9, 9).tolist())
    expected = {z: float(pmf(histogram.epsilon, z)) for z in range(-8, 9)}
    expected[9] = expected[-9] = float(tail(histogram.epsilon, 8))
    fit = chisquare([seen[z] for z in expected], [p * labels for p in expected.values()], sum_check=False).pvalue
    return float(chance), float(fit)


def test_what_is_released_has_the_noise_that_was_promised() -> None:
    """How often a label with one item appears, and the noise on labels that always do; a broken copy is seen."""
    for kind in (StabilityHistogram, HalfTheNoise):
        chances = audit(kind.calibrate(epsilon=1.0, delta=1e-2))
        if kind is StabilityHistogram:
            assert min(chances) > ALARM, f"false alarm with chance {2 * ALARM:g}: {chances}"
        else:
            assert max(chances) < ALARM, chances


def test_a_release_is_what_the_comparison_keeps_largest_first() -> None:
    items = ["b"] * 900 + ["a"] * 900 + ["c"] * 500 + ["d"]
    exact = counted(pa.array(items))
    histogram = StabilityHistogram.calibrate(epsilon=64.0, delta=1e-6)  # noise of 0 but with chance 4e-28
    assert histogram.threshold == 1
    assert list(histogram.release(exact, seed=1).items()) == [("a", 900), ("b", 900), ("c", 500)]
    assert list(histogram.release(exact, seed=1, least_count=900)) == ["a", "b"]
    assert histogram.release(exact, seed=1, least_count=901) == {}


def test_nothing_counted_is_nothing_released() -> None:
    histogram = StabilityHistogram.calibrate(epsilon=1.0, delta=1e-6)
    assert histogram.release(counted(pa.array([], pa.string()))) == {}


def test_memory_is_that_of_counts_and_labels() -> None:
    """8 bytes for a count; 8 for an integer, 4 and the text for a string, and at most a bit besides."""
    assert counted(pa.array(range(8000))).memory_bytes == pytest.approx(8000 * (8 + 8), rel=0.01)
    text = pa.array([f"{i:010}" for i in range(8000)])
    assert counted(text).memory_bytes == pytest.approx(8000 * (8 + 4 + 10), rel=0.01)
