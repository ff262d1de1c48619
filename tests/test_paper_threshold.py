"""The paper's Algorithm 3: why it is not private as it stands, and that the shipped forms are."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

import dptop
from dptop.errors import BudgetExhausted, InvalidParameter
from dptop.mechanism import LengthBound, PaperThreshold
from dptop.noise import pmf, tail
from dptop.privacy import PrivacyParameters, exact_epsilon
from dptop.reference import paper_threshold as reference
from dptop.reference.space_saving import SpaceSaving
from dptop.release import Request, plan
from dptop.tie import Tie
from test_exact_divergence import ONE, Enclosure, divergence, noise, shapes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ALARM = 1e-6

# (epsilon, delta) -> g under least and most recent. Source: the closed forms max(0, ceil(ln(1/((1+a) delta))/eps) - 1)
# and max(0, ceil(ln(1/delta)/eps) - 1), worked out by `closed_form` in floats; P[Z > g] = a^(g+1)/(1+a).
PARAMETERS = [(1.0, 1e-6), (1.0, 1e-2), (0.5, 1e-4), (0.1, 1e-2), (0.25, 1e-6), (2.0, 1e-6), (3.0, 0.3), (8.0, 0.9)]


def closed_form(epsilon: float, delta: float, tie: Tie) -> int:
    plus = 1 + math.exp(-epsilon) if tie is Tie.LEAST_RECENT else 1.0
    return max(0, math.ceil(math.log(1 / (plus * delta)) / epsilon) - 1)


def calibrated(epsilon: float, delta: float, tie: Tie, capacity: int = 10, share: float = 0.01) -> PaperThreshold:
    return PaperThreshold.calibrate(epsilon=epsilon, delta=delta, tie=tie, capacity=capacity, share=share)


@pytest.mark.parametrize("tie", Tie)
@pytest.mark.parametrize(("epsilon", "delta"), PARAMETERS)
def test_gaps_are_those_of_the_formula_and_of_the_reference(epsilon: float, delta: float, tie: Tie) -> None:
    """Three ways to the same g: the exact tail, its closed form, and a sum over all draws."""
    mechanism = calibrated(epsilon, delta, tie)
    assert mechanism.gap == closed_form(epsilon, delta, tie)
    assert mechanism.gap == reference.smallest_gap(mechanism.epsilon, mechanism.delta, tie)
    assert mechanism.failure_probability <= mechanism.delta


@given(
    length=st.integers(0, 2**40),
    capacity=st.integers(1, 10**6),
    share=st.integers(1, 10**4),
    tie=st.sampled_from(Tie),
)
@settings(deadline=None, derandomize=True)
def test_thresholds_are_those_of_the_reference(length: int, capacity: int, share: int, tie: Tie) -> None:
    """In integers; the comparison is strict."""
    mechanism = calibrated(1.0, 1e-6, tie, capacity, share / 10**4)
    threshold = reference.threshold(length, share=Fraction(share, 10**4), capacity=capacity, gap=mechanism.gap)
    assert mechanism.threshold(length) == threshold
    assert not mechanism.keeps(threshold, length)
    assert mechanism.keeps(threshold + 1, length)


def test_the_paper_s_gamma_is_safe_too_and_larger() -> None:
    """With ln(2/delta)/epsilon for gamma and a strict comparison: n/K + 1 + gamma is never below floor(n/K) + 1 + g."""
    for epsilon, delta in PARAMETERS:
        for tie in Tie:
            assert math.floor(math.log(2 / delta) / epsilon) >= calibrated(epsilon, delta, tie).gap


# ---- the exact length in the threshold

EPSILON = 1.0


def crossing_streams(k: int, gap: int) -> tuple[list[int], list[int]]:
    """Return neighbours of n and n - 1 items, n a multiple of k, with k labels at the threshold of the longer one.

    The item that the shorter one lacks is one of those that occur once.
    """
    multiple = 4 * gap + 8
    n = multiple * k
    heavy = [label for label in range(k) for _ in range(multiple - gap)]
    others = list(range(k, k + n - len(heavy)))
    stream = heavy + others
    assert len(stream) == n
    return stream, stream[:-1]


def counters(stream: Sequence[int], capacity: int, tie: Tie) -> dict[int, int]:
    summary: SpaceSaving[int] = SpaceSaving(capacity, tie)
    for x in stream:
        summary.update(x)
    return summary.counters()


def shows(counts: dict[int, int], value: int, threshold: int, epsilon: Fraction) -> Decimal:
    """Return the chance that some label is published with exactly this noisy count."""
    if value <= threshold:
        return Decimal(0)
    none = ONE
    for count in counts.values():
        none *= ONE - pmf(epsilon, value - count)
    return ONE - none


@pytest.mark.parametrize("tie", Tie)
@pytest.mark.parametrize(("k", "least"), [(1, 0.46), (2, 0.71), (10, 0.998)])
def test_the_exact_length_in_the_threshold_is_not_private(k: int, least: float, tie: Tie) -> None:
    """An output between the two thresholds tells neighbours apart; its chance is 1 - (1 - P[Z = 0])^k, and more.

    Figures at epsilon = 1: docs/privacy.md section 12. The shipped forms pass the same computation.
    """
    delta = 1e-6
    capacity = 10_000
    mechanism = PaperThreshold.calibrate(epsilon=EPSILON, delta=delta, capacity=capacity, share=1 / k, tie=tie)
    exact_share = replace(mechanism, share=Fraction(1, k))
    epsilon = mechanism.epsilon
    factor = Decimal(1).exp()
    long, short = crossing_streams(k, mechanism.gap)
    of_long, of_short = (counters(stream, capacity, tie) for stream in (long, short))

    def flawed(stream: Sequence[int]) -> int:
        return exact_share.threshold(len(stream))  # the exact, private length

    value = flawed(long)
    assert flawed(short) == value - 1
    excess = shows(of_short, value, flawed(short), epsilon) - factor * shows(of_long, value, flawed(long), epsilon)
    at_zero = 1 - (1 - float(pmf(epsilon, 0))) ** k
    assert float(excess) >= at_zero - 1e-12
    assert at_zero == pytest.approx(least, abs=0.005)

    # (a) a declared length
    declared = exact_share.threshold(len(long))
    for one, two in ((of_long, of_short), (of_short, of_long)):
        for v in range(declared - 5, declared + 6):
            assert shows(one, v, declared, epsilon) - factor * shows(two, v, declared, epsilon) <= mechanism.delta

    # (b) a noisy length, lifted
    length_epsilon = exact_epsilon(0.5)
    bound = LengthBound.of(PrivacyParameters(length_epsilon, Decimal("1e-6")))
    reach = 60

    def mixed(stream: Sequence[int], counts: dict[int, int], v: int) -> Decimal:
        lengths = [bound.above(len(stream) + z) for z in range(-reach, reach + 1)]
        return sum(
            (
                pmf(length_epsilon, z - reach) * shows(counts, v, exact_share.threshold(length), epsilon)
                for z, length in enumerate(lengths)
            ),
            Decimal(0),
        )

    total = factor * Decimal("0.5").exp()
    left_out = 2 * tail(length_epsilon, reach)
    middle = exact_share.threshold(bound.above(len(long)))
    for v in (middle - 1, middle, middle + 1):
        of_one, of_other = mixed(long, of_long, v), mixed(short, of_short, v)
        assert of_one - total * of_other <= mechanism.delta + bound.delta + left_out
        assert of_other - total * of_one <= mechanism.delta + bound.delta + left_out


# ---- the exact divergence of the shipped form


def worst(tie: Tie, capacity: int, mechanism: PaperThreshold, keeps: Callable[[int, int, int], bool]) -> Enclosure:
    """Return the largest divergence over all shapes of neighbours, in both directions, where nothing is said of minima.

    The minimum of the longer stream is as large as the length lets it be, floor(N/K): counts of a shape are relative to
    the smaller minimum, and `keeps` first gets how far that is below floor(N/K).
    """
    z = noise(mechanism.epsilon)
    with localcontext() as context:
        context.prec = 40
        factor = (Decimal(mechanism.epsilon.numerator) / Decimal(mechanism.epsilon.denominator)).exp()
    found = [
        divergence(direction, factor, partial(keeps, max(shape.minimum)), z, {0: ONE})
        for shape in shapes(tie, capacity)
        for silent in [replace(shape, minimum=(0, 0))]
        for direction in (silent, silent.swapped())
    ]
    return Enclosure(max(e.low for e in found), max(e.high for e in found))


def relative(gap: int, *, strict: bool = True) -> Callable[[int, int, int], bool]:
    """Return the comparison with floor(N/K) + 1 + g, for counts relative to a minimum that far below floor(N/K)."""

    def keeps(below: int, v: int, _: int) -> bool:
        threshold = below + 1 + gap
        return v > threshold if strict else v >= threshold

    return keeps


@pytest.mark.parametrize("tie", Tie)
@pytest.mark.parametrize("capacity", [1, 2, 3])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-2), (1.0, 1e-4), (2.0, 1e-6), (3.0, 0.3)])
def test_the_shipped_form_keeps_its_promise(tie: Tie, capacity: int, epsilon: float, delta: float) -> None:
    """The exact divergence is at most delta for every shape of neighbours, at the lowest threshold of their length.

    Where K = 2 and more it is the failure probability itself, so that a smaller g or a comparison with >= is caught.
    """
    mechanism = calibrated(epsilon, delta, tie, capacity)
    assert mechanism.threshold(capacity * 7 + capacity - 1) == 7 + 1 + mechanism.gap  # what `relative` stands for
    found = worst(tie, capacity, mechanism, relative(mechanism.gap))
    assert found.high <= mechanism.delta
    if capacity >= 2 and mechanism.gap > 0 and tie is Tie.LEAST_RECENT:
        assert found.low <= mechanism.failure_probability <= found.high + Decimal("1e-14")
        assert worst(tie, capacity, mechanism, relative(mechanism.gap - 1)).low > mechanism.delta
        assert worst(tie, capacity, mechanism, relative(mechanism.gap, strict=False)).low > mechanism.delta


def test_most_recent_pays_for_its_second_label() -> None:
    """The gap of least recent is too small for a summary that breaks ties by most recent."""
    loss = calibrated(1.0, 1e-4, Tie.LEAST_RECENT).failure_probability
    mechanism = PaperThreshold(exact_epsilon(1.0), loss, Tie.LEAST_RECENT, 3, Fraction(1, 100))
    assert worst(Tie.LEAST_RECENT, 3, mechanism, relative(mechanism.gap)).low <= loss
    assert worst(Tie.MOST_RECENT, 3, mechanism, relative(mechanism.gap)).low > loss


# ---- the release


def zipf(seed: int, items: int = 200_000, labels: int = 10_001, exponent: float = 1.1) -> np.ndarray[Any, Any]:
    weights = np.arange(1, labels + 1) ** -exponent
    return np.random.default_rng(seed).choice(labels, items, p=weights / weights.sum())


@pytest.mark.parametrize("tie", Tie)
@pytest.mark.parametrize("length", [None, 200_000, 10**7])
def test_the_release_is_that_of_the_reference(tie: Tie, length: int | None) -> None:
    """Labels, counts and threshold, at the same noise."""
    summary = dptop.SpaceSaving(400, tie=tie)
    summary.extend(zipf(1))
    raw = dict(summary.private_counters())
    result = dptop.release(
        summary, epsilon=1.0, delta=1e-6, share=0.005, mechanism="paper", length=length, seed=5, confidence=0.9
    )
    p = result.parameters
    total = PrivacyParameters.of(1.0, 1e-6)
    if length is None:
        of_length = exact_epsilon(0.02)
        slack = reference.smallest_slack(Fraction(1, 2), Decimal("5e-7"))  # the sum is too long at 0.02
        assert LengthBound.of(PrivacyParameters(Fraction(1, 2), Decimal("5e-7"))).slack == slack
        assert result.noisy_length is not None
        bound = max(0, result.noisy_length + LengthBound(of_length, Decimal("5e-7")).slack)
        gap = closed_form(float(total.epsilon - of_length), 5e-7, tie)
    else:
        assert result.noisy_length is None
        bound, gap = length, closed_form(1.0, 1e-6, tie)
    threshold = reference.threshold(bound, share=Fraction("0.005"), capacity=400, gap=gap)
    assert (p["gap"], p["threshold"]) == (gap, threshold)
    assert result.noisy_minimum == ()
    assert result.mechanism == "paper"
    noise_drawn = {row.item: row.count - raw[row.item] for row in result}
    quiet = {x: noise_drawn.get(x, -(10**9)) for x in raw}  # what was not released fell short, whatever its noise
    assert reference.release(raw, quiet, threshold=threshold) == {row.item: row.count for row in result}
    assert all(row.count > threshold for row in result)
    assert all(row.low <= row.count <= row.high for row in result)
    missing = [x for x, count in raw.items() if count > threshold + 60 and x not in noise_drawn]
    assert not missing  # noise of 60 at epsilon 0.98 has a chance below 1e-25
    assert result.epsilon == 1.0
    assert result.delta == 1e-6


@pytest.mark.parametrize("mechanism", ["paper", "stable-threshold"])
@pytest.mark.parametrize("length", [None, 100])
def test_delta_is_split_exactly(mechanism: str, length: int | None) -> None:
    """Whatever the precision of the caller's decimals: the parts sum to what there is, to the last digit."""
    with localcontext() as context:
        context.prec = 2
        request = Request(
            epsilon=1.0, delta=1.23456789e-7, share=0.1, mechanism=mechanism, length=length, max_contributions=3
        )
        split = plan(request, dptop.SpaceSaving(10)).split
        parts = Fraction(split.labels.delta) + Fraction(split.length_delta)
    assert parts == Fraction(request.per_item.delta)
    assert (split.length_delta > 0) == (mechanism == "paper" and length is None)


def test_a_share_and_one_table_are_needed() -> None:
    """Found before anything is spent."""
    summary = dptop.SpaceSaving(100, partitions=2)
    summary.extend(["a"] * 1000)
    with pytest.raises(InvalidParameter, match="must have a share"):
        dptop.release(summary, epsilon=1.0, delta=1e-6, mechanism="paper")
    with pytest.raises(InvalidParameter, match="must have one table"):
        dptop.release(summary, epsilon=1.0, delta=1e-6, mechanism="paper", share=0.1)
    dptop.release(summary, epsilon=1.0, delta=1e-6)
    with pytest.raises(BudgetExhausted):
        dptop.release(summary, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("capacity", [60, 2000])
def test_intervals_cover(simultaneous: bool, capacity: int) -> None:
    """Among the labels that are released, or all at once; the rate of failures is not above beta, at 1e-6."""
    beta = 0.1
    stream = zipf(2, 30_000, 1500)
    true = Counter(stream.tolist())
    failures = trials = 0
    for seed in range(150):
        summary = dptop.SpaceSaving(capacity)
        summary.extend(stream)
        result = dptop.release(
            summary,
            epsilon=0.1,
            delta=1e-3,
            share=0.004,
            mechanism="paper",
            length=30_000,
            confidence=1 - beta,
            simultaneous=simultaneous,
            seed=seed,
        )
        missed = [not row.low <= true[row.item] <= row.high for row in result]
        failures += any(missed) if simultaneous else sum(missed)
        trials += 1 if simultaneous else len(missed)
    assert trials > 100
    p = binomtest(failures, trials, beta, alternative="greater").pvalue
    assert p > ALARM, f"{failures} of {trials} intervals failed, seeds 0 to 149; false alarm rate {ALARM}"


def test_the_guarantee_in_words_names_the_rule() -> None:
    """Threshold, share and length are public."""
    summary = dptop.SpaceSaving(100)
    summary.extend(["a"] * 1000)
    result = dptop.release(summary, epsilon=1.0, delta=1e-6, mechanism="paper", share=0.25, length=2000)
    text = result.explain()
    gap = closed_form(1.0, 1e-6, Tie.LEAST_RECENT)
    rule = f"exceeds {500 - gap}: the larger of share * N - {gap} and N / capacity + 1 + {gap}, rounded down"
    assert rule in text
    assert "N is the declared length 2000" in text
    assert "noisy minimum" not in text
