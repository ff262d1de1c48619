"""Thresholds are those of the formulas to the integer, and the smallest; what they cost is what is said."""

from __future__ import annotations

from dataclasses import replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptop.envelope import (
    CountMinError,
    CountSketchError,
    Envelope,
    GaussianCells,
    LabelEnvelope,
    LaplaceCells,
    NoNoise,
    beta_within,
    collision_chance,
    count_min_shape,
    count_sketch_shape,
    delta_of,
    fixed_labels,
    noise_at_release,
    noise_first,
    squares_failure,
)
from dptop.errors import InvalidParameter
from dptop.privacy import PrivacyParameters, exact_epsilon, floor_epsilon
from dptop.search import smallest_between, smallest_sum
from dptop.tie import Tie
from envelope_formulas import least, majority, rows, weights

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from dptop.envelope import CellNoise, SketchError

    Floats = NDArray[np.float64]

STATE = PrivacyParameters(Fraction(1), Decimal(0))
LEAST, MOST = Tie.LEAST_RECENT, Tie.MOST_RECENT


def laplace_of(epsilon: float) -> Callable[[int], LaplaceCells]:
    return lambda depth: LaplaceCells(floor_epsilon(exact_epsilon(epsilon) / depth))


N, K = 1_000_000, 2000

COUNT_MIN = [
    (1.0, 1e-9, 10_000, 20, laplace_of(1.0)),
    (1.0, 1e-3, 10_000, 12, laplace_of(1.0)),
    (0.5, 1e-6, 4096, 25, laplace_of(0.5)),
    (2.0, 1e-9, 16_384, 30, laplace_of(2.0)),
    (1.0, 1e-9, 10_000, 20, lambda _: GaussianCells(400)),
    (1.0, 1e-6, 5000, 14, lambda _: GaussianCells(77)),
]


@pytest.mark.parametrize(("epsilon", "delta", "width", "depth", "noise_of"), COUNT_MIN)
def test_count_min_thresholds_are_those_of_the_formulas(
    epsilon: float, delta: float, width: int, depth: int, noise_of: Callable[[int], CellNoise]
) -> None:
    """All three uses, exhaustively over the errors."""
    noise, c = noise_of(depth), float(collision_chance(width))
    state = replace(STATE, epsilon=exact_epsilon(epsilon))
    beta = delta / (1 + np.exp(epsilon))
    most = 4000
    over = rows(noise, most, lambda gap: np.minimum(1, N * c / gap)) ** depth
    collisions = np.minimum(1, N * c / (np.arange(most + 1) + 1)) ** depth
    z, p = weights(noise)
    tail = np.array([p[z > g].sum() for g in range(most + 1)])

    error = CountMinError(width, depth, N, noise)
    allowed = beta_within(Decimal(repr(delta)), state.epsilon)
    at_release = noise_at_release(error, beta=allowed, capacity=K, state=state)
    first = noise_first(error, beta=allowed, capacity=K, state=state)
    assert at_release is not None
    assert first is not None
    assert at_release.under_tracking == 0
    expected = N // K + least((N + 1) * over, N * collisions, beta)
    assert at_release.threshold(N, K) == expected
    expected = N // K + least((N + 1) * over, min(N, width) * depth * tail, beta, times=2)
    assert first.threshold(N, K) == expected
    assert first.over == first.over_tracking
    for tie, s in ((LEAST, 2), (MOST, 4)):
        labels = fixed_labels(error, delta=Decimal(repr(delta)), capacity=K, tie=tie, state=state)
        assert labels is not None
        assert labels.threshold(N, K) == N // K + 1 + int(np.argmax(s * over <= delta))


COUNT_SKETCH = [
    (1.0, 1e-9, 2000, 61, N * N // 400, True, laplace_of(1.0)),
    (1.0, 1e-3, 5000, 25, N * N // 400, False, laplace_of(1.0)),
    (0.5, 1e-6, 4096, 39, N * 100, True, lambda _: GaussianCells(333)),
    (1.0, 1e-6, 4096, 39, N * 100, False, laplace_of(1.0)),
]


@pytest.mark.parametrize(("epsilon", "delta", "width", "depth", "squares", "random", "noise_of"), COUNT_SKETCH)
def test_count_sketch_thresholds_are_those_of_the_formulas(
    epsilon: float,
    delta: float,
    width: int,
    depth: int,
    squares: int,
    random: bool,
    noise_of: Callable[[int], CellNoise],
) -> None:
    """All three uses; beta pays once for a bound on the squares that is too low."""
    noise, load = noise_of(depth), squares * float(collision_chance(width))
    state = replace(STATE, epsilon=exact_epsilon(epsilon))
    share = 0.5 if random else 1.0
    once = squares_failure(depth)
    beta = delta / (1 + np.exp(epsilon)) - once
    most = 12_000
    over = majority(depth, rows(noise, most, lambda gap: share * np.minimum(1, load / gap**2)))
    collisions = majority(depth, share * np.minimum(1, load / (np.arange(most + 1.0) + 1) ** 2))
    t = np.arange(most + 1)
    both = collisions[t - t // 2] + collisions[t // 2]

    error = CountSketchError(width, depth, N, noise, squares, once, fully_random_signs=random)
    allowed = beta_within(Decimal(repr(delta)), state.epsilon)
    at_release = noise_at_release(error, beta=allowed, capacity=K, state=state)
    first = noise_first(error, beta=allowed, capacity=K, state=state)
    assert at_release is not None
    assert first is not None
    assert at_release.threshold(N, K) == N // K + least((N + 1) * over, N * both, beta)
    assert first.threshold(N, K) == N // K + least((2 * N + 1) * over, N * over, beta, times=2)
    labels = fixed_labels(error, delta=Decimal(repr(delta)), capacity=K, tie=MOST, state=state)
    assert labels is not None
    assert labels.threshold(N, K) == N // K + 1 + int(np.argmax(4 * over <= delta - once))


def test_a_bound_on_the_squares_beyond_what_is_allowed_leaves_no_envelope() -> None:
    """With 25 rows it is too low with a chance of 2.2e-6: no error is large enough where less is allowed."""
    once = squares_failure(25)
    error = CountSketchError(20_000, 25, N, NoNoise(), N * 100, once)
    for allowed, there in ((Decimal("2e-6"), False), (Decimal("3e-6"), True)):
        assert (float(allowed) > once) == there
        for form in (noise_at_release, noise_first):
            assert (form(error, beta=allowed, capacity=K, state=STATE) is not None) == there
        assert (fixed_labels(error, delta=allowed, capacity=K, tie=MOST, state=STATE) is not None) == there


# ---- the smallest


SMALL = [
    CountMinError(64, 3, 40, LaplaceCells(exact_epsilon(2.0))),
    CountMinError(16, 5, 60, GaussianCells(2)),
    CountMinError(256, 2, 80, NoNoise()),
    CountSketchError(64, 5, 40, LaplaceCells(exact_epsilon(2.0)), fully_random_signs=True),
    CountSketchError(64, 9, 50, GaussianCells(1)),
    CountSketchError(256, 3, 60, NoNoise(), squares=300, once=0.001),
]


@pytest.mark.parametrize("error", SMALL, ids=lambda error: f"{type(error).__name__}-{error.width}")
@pytest.mark.parametrize("beta", ["0.3", "0.01", "0.0001"])
def test_no_split_of_a_smaller_threshold_would_do(error: Any, beta: str) -> None:
    """Every (t1, t2, g1) and (g1, g2) whose sum is smaller fails too often; the split found does not."""
    allowed, length, capacity = Decimal(beta), error.length, 1000
    at_release = noise_at_release(error, beta=allowed, capacity=capacity, state=STATE)
    first = noise_first(error, beta=allowed, capacity=capacity, state=STATE)
    below = isinstance(error, CountSketchError)  # Count-Min without noise is never too small

    def fails_at_release(t1: int, t2: int, g: int) -> float:
        unders = length * error.collisions(t2) if below else 0.0
        return float(length * error.collisions(t1) + unders + (length + 1) * error.over(g) + error.once)

    sums = at_release.errors if at_release else length
    for t1 in range(sums):
        for t2 in range(sums - t1 if below else 1):
            assert fails_at_release(t1, t2, sums - 1 - t1 - t2) > float(allowed)
    if at_release:
        chance = fails_at_release(at_release.over_tracking, at_release.under_tracking, at_release.over)
        assert float(at_release.beta) == pytest.approx(chance, rel=1e-12)
        assert at_release.beta <= allowed
        assert at_release.threshold(length, capacity) < length
    sums = first.errors if first else length
    for g1 in range((sums - 1) // 2 + 1):
        assert error.noisy_overs(g1) + error.noisy_unders(sums - 1 - 2 * g1) + error.once > float(allowed)
    if first:
        chance = error.noisy_overs(first.over) + error.noisy_unders(first.under_tracking) + error.once
        assert float(first.beta) == pytest.approx(chance, rel=1e-12)
        assert first.beta <= allowed
        assert first.over == first.over_tracking
    labels = fixed_labels(error, delta=allowed, capacity=capacity, tie=LEAST, state=STATE)
    over = labels.over if labels else length - 1
    assert over == 0 or 2 * error.over(over - 1) + error.once > float(allowed)
    assert labels is None or 2 * error.over(over) + error.once <= float(allowed)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=40),
    st.lists(st.floats(0, 1), min_size=1, max_size=40),
    st.floats(0, 2),
    st.integers(0, 130),
    st.integers(1, 2),
)
@settings(deadline=None, derandomize=True, max_examples=200)
def test_the_smallest_sum_is_found_whatever_the_functions(
    first: list[float], second: list[float], allowed: float, most: int, times: int
) -> None:
    """Steps, plateaus and jumps: nothing but that the functions fall is used."""
    first, second = sorted(first, reverse=True), sorted(second, reverse=True)

    def f(x: int) -> float:
        return first[min(x, len(first) - 1)]

    def s(y: int) -> float:
        return second[min(y, len(second) - 1)]

    good = [
        times * x + y for x in range(most // times + 1) for y in range(most - times * x + 1) if f(x) + s(y) <= allowed
    ]
    found = smallest_sum(f, s, allowed, most, times)
    if not good:
        assert found is None
    else:
        assert found is not None
        x, y = found
        assert times * x + y == min(good)
        assert f(x) + s(y) <= allowed


def test_a_large_sum_is_nearly_the_smallest() -> None:
    """At most one in 2^16 above the minimum, in a few hundred calls."""
    calls = 0

    def first(x: int) -> float:
        nonlocal calls
        calls += 1
        return float((3e6 / (x + 1)) ** 20)

    def second(y: int) -> float:
        return float((1e6 / (y + 1)) ** 20)

    x = np.arange(5_990_000.0, 12_000_000)
    left = 1e-6 - (3e6 / (x + 1)) ** 20
    y = np.ceil(1e6 * np.where(left > 0, left, np.nan) ** (-1 / 20)) - 1
    least_sum = int(np.nanmin(x + y))
    found = smallest_sum(first, second, 1e-6, 10**9)
    assert found is not None
    assert least_sum - 1 <= sum(found) <= least_sum * (1 + 2.0**-16) + 1
    assert calls < 2000
    assert smallest_between(3, 9, lambda x: x > 5) == 6


def test_an_envelope_that_cannot_be_met_is_none() -> None:
    """No threshold below the length: a normal result, from public numbers only."""
    tiny = CountMinError(4, 2, 1000, LaplaceCells(exact_epsilon(0.5)))
    beta = Decimal("1e-10")
    assert noise_at_release(tiny, beta=beta, capacity=10, state=STATE) is None
    assert noise_first(tiny, beta=beta, capacity=10, state=STATE) is None
    assert fixed_labels(tiny, delta=beta, capacity=10, tie=LEAST, state=STATE) is None
    unsure = CountSketchError(4096, 3, 1000, NoNoise(), squares=1000, once=squares_failure(3))
    assert fixed_labels(unsure, delta=Decimal("0.01"), capacity=10, tie=LEAST, state=STATE) is None
    large = CountMinError(2**20, 6, 1000, LaplaceCells(exact_epsilon(0.5)))
    assert fixed_labels(large, delta=beta, capacity=1, tie=LEAST, state=STATE) is None  # floor(N/1) alone is N
    found = fixed_labels(large, delta=beta, capacity=10, tie=LEAST, state=STATE)
    assert found is not None
    assert fixed_labels(large, delta=beta, capacity=10, tie=LEAST, state=STATE, within=found.over) == found
    assert fixed_labels(large, delta=beta, capacity=10, tie=LEAST, state=STATE, within=found.over - 1) is None


@pytest.mark.parametrize("form", [noise_at_release, noise_first])
def test_labels_with_one_fingerprint_are_paid_for(form: Callable[..., Envelope | None]) -> None:
    """All pairs of N + 1 labels, once; for a label fixed beforehand its N pairs, each time."""
    length, bits = 100_000, Fraction(1, 2**64)
    noise = LaplaceCells(exact_epsilon(0.125))
    any_pair = length * (length + 1) / 2 / 2.0**64
    for kind in (CountMinError, partial(CountSketchError, squares=length * 10)):
        error: Any = kind(4096, 9, length, noise)
        shared: Any = kind(4096, 9, length, noise, sharing=bits)
        allowed = Decimal("1e-6")
        with_pairs = form(shared, beta=allowed + Decimal(any_pair), capacity=1000, state=STATE)
        without = form(error, beta=allowed, capacity=1000, state=STATE)
        assert with_pairs is not None
        assert without is not None
        assert with_pairs.errors == without.errors
        assert float(with_pairs.beta - without.beta) == pytest.approx(any_pair, rel=1e-3)
        assert form(shared, beta=Decimal(any_pair) / 2, capacity=1000, state=STATE) is None
        gap = shared.over_fixed(4000) - error.over_fixed(4000)
        assert gap == pytest.approx(length / 2.0**64, rel=1e-3)


# ---- shapes


@pytest.mark.parametrize("form", [noise_at_release, noise_first])
def test_a_shape_is_the_best_of_all_depths(form: Callable[..., Envelope | None]) -> None:
    """Each depth by itself gives nothing smaller; among equals the shallowest."""
    length, capacity, memory = 100_000, 500, 200_000
    use = partial(form, beta=Decimal("1e-7"), capacity=capacity, state=STATE)
    noise_of = laplace_of(1.0)

    def best(depths: range, error_of: Callable[[int, int], SketchError]) -> tuple[int, int, int]:
        alone = {d: use(error_of(memory // (8 * d), d)) for d in depths}
        return min((e.errors, d, memory // (8 * d)) for d, e in alone.items() if e)

    shape = count_min_shape(memory, length=length, noise_of=noise_of, form=use)
    assert shape is not None
    expected = best(range(1, 41), lambda w, d: CountMinError(w, d, length, noise_of(d)))
    assert (shape.claim.errors, shape.depth, shape.width) == expected
    squares = length * 50
    shape = count_sketch_shape(memory, length=length, noise_of=noise_of, form=use, expected_squares=squares)
    assert shape is not None
    expected = best(
        range(1, 80, 2), lambda w, d: CountSketchError(w, d, length, noise_of(d), squares, squares_failure(d))
    )
    assert (shape.claim.errors, shape.depth, shape.width) == expected
    assert 8 * shape.width * shape.depth <= memory


def test_a_shape_that_cannot_be_is_none() -> None:
    """Too little memory for any threshold below the length, or for a row."""
    use = partial(fixed_labels, delta=Decimal("1e-9"), capacity=100, tie=LEAST, state=STATE)
    assert count_min_shape(80, length=1000, noise_of=laplace_of(1.0), form=use) is None
    assert count_sketch_shape(8, length=1000, noise_of=laplace_of(1.0), form=use, expected_squares=1000) is None
    with pytest.raises(InvalidParameter, match="memory"):
        count_min_shape(7, length=1000, noise_of=laplace_of(1.0), form=use)
    with pytest.raises(InvalidParameter, match="length"):
        count_min_shape(800, length=0, noise_of=laplace_of(1.0), form=use)


# ---- what it costs


@pytest.mark.parametrize("epsilon", [2.0**-20, 0.1, 1.0, 8.0, 64.0])
@pytest.mark.parametrize("delta", ["0.5", "1e-9", "1e-200"])
def test_beta_and_delta_are_converted_to_the_safe_side(epsilon: float, delta: str) -> None:
    """(1 + e^epsilon) beta <= delta, by a relative 1e-27 at most; whatever the caller's decimal context."""
    grid = exact_epsilon(epsilon)
    with localcontext(Context(prec=3)):
        beta = beta_within(Decimal(delta), grid)
        cost = delta_of(beta, grid)
    with localcontext(Context(prec=120, Emin=-(10**6), Emax=10**6)):
        exact = (Decimal(grid.numerator) / Decimal(grid.denominator)).exp() + 1
        assert Decimal(delta) * (1 - Decimal("1e-27")) <= beta * exact <= cost <= Decimal(delta)


def test_an_envelope_costs_what_its_state_and_its_failures_do() -> None:
    """(epsilon, d1 + (1 + e^epsilon) beta), and (epsilon, d1 + s beta + once) for fixed labels."""
    state = PrivacyParameters(Fraction(1), Decimal("1e-6"))
    total = Envelope(3, 2, 4, Decimal("1e-7"), state).total
    assert total.epsilon == 1
    assert float(total.delta) == pytest.approx(1e-6 + (1 + np.e) * 1e-7, rel=1e-14)
    for tie, s in ((LEAST, 2), (MOST, 4)):
        envelope = LabelEnvelope(4, Decimal("1e-7"), Decimal("1e-8"), tie, state)
        assert envelope.total.delta == Decimal("1e-6") + s * Decimal("1e-7") + Decimal("1e-8")
    assert Envelope(0, 0, 0, Decimal(0), STATE).total.delta == 0
    with pytest.raises(InvalidParameter, match="below 1"):
        _ = Envelope(0, 0, 0, Decimal("0.3"), STATE).total


def test_thresholds_are_whole_numbers_that_must_be_exceeded() -> None:
    """floor(N/K) + t1 + t2 + g1, and floor(N/K) + 1 + g1."""
    envelope = Envelope(over_tracking=5, under_tracking=3, over=7, beta=Decimal("0.1"), state=STATE)
    assert envelope.threshold(length=29, capacity=10) == 2 + 15
    assert not envelope.keeps(17, length=29, capacity=10)
    assert envelope.keeps(18, length=29, capacity=10)
    labels = LabelEnvelope(7, Decimal("0.1"), Decimal(0), LEAST, STATE)
    assert labels.threshold(length=29, capacity=10) == 2 + 1 + 7
    assert not labels.keeps(10, length=29, capacity=10)
    assert labels.keeps(11, length=29, capacity=10)


def test_a_foreign_oracle_states_an_envelope() -> None:
    """Two sides and a beta: both for tracking and for the end, so that `over` counts twice."""
    envelope = Envelope.stated(over=9, under=4, beta=1e-9, epsilon=1.5, delta=1e-10)
    assert envelope.threshold(100, 7) == 14 + 9 + 4 + 9
    assert envelope.state == PrivacyParameters.of(1.5, 1e-10)
    assert Envelope.stated(over=0, under=0, beta=0.0, epsilon=1.0).total.delta == 0
    for bad in (
        {"over": -1, "under": 0, "beta": 0.1, "epsilon": 1.0},
        {"over": 1, "under": 0.5, "beta": 0.1, "epsilon": 1.0},
        {"over": 1, "under": 0, "beta": 0.5, "epsilon": 1.0},
        {"over": 1, "under": 0, "beta": float("nan"), "epsilon": 1.0},
        {"over": 1, "under": 0, "beta": 0.1, "epsilon": 0.0},
        {"over": 1, "under": 0, "beta": 0.1, "epsilon": 1.0, "delta": 1.0},
    ):
        with pytest.raises(InvalidParameter):
            Envelope.stated(**bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("beta", ["0", "0.5", "-1", "NaN"])
def test_a_beta_that_could_not_be_paid_is_refused(beta: str) -> None:
    """Rule, value and remedy."""
    error = CountMinError(64, 3, 40, NoNoise())
    with pytest.raises((InvalidParameter, ArithmeticError)):
        noise_at_release(error, beta=Decimal(beta), capacity=5, state=STATE)
    with pytest.raises((InvalidParameter, ArithmeticError)):
        Envelope(0, 0, 0, Decimal(beta) - 1, STATE)
    if beta != "0.5":
        with pytest.raises((InvalidParameter, ArithmeticError)):
            fixed_labels(error, delta=Decimal(beta), capacity=5, tie=LEAST, state=STATE)
