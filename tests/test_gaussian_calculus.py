"""Chances of discrete Gaussian noise, and its delta: against direct sums, convolution and others' numbers.

What is promised of every chance is tested from both sides: never below the true value, above it by no more than said.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import opendp.prelude as dp
import pytest
from scipy.stats import norm

from dptop import gaussian
from dptop.errors import InvalidParameter
from dptop.gaussian_sums import PI, Layout
from dptop.privacy import exact_epsilon

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDE = Context(prec=100, Emin=-(10**9), Emax=10**9)
OFF = Decimal("1e-45")


@pytest.fixture(autouse=True)
def wide_arithmetic() -> Iterator[None]:
    """Compute in 100 digits in these tests; what is tested brings its own precision along."""
    with localcontext(WIDE):
        yield


@cache
def single(variance: int) -> dict[int, Decimal]:
    """Return P[Z = z] by definition: weights over their sum, but for a part below 1e-80."""
    reach = math.isqrt(380 * variance) + 1
    weights = {z: WIDE.exp(WIDE.divide(Decimal(-z * z), 2 * variance)) for z in range(-reach, reach + 1)}
    total = sum(weights.values())
    return {z: w / total for z, w in weights.items()}


@cache
def several(variance: int, depth: int) -> dict[int, Decimal]:
    """Return the law of the sum of `depth` independent draws, by convolution."""
    if depth == 1:
        return single(variance)
    law: dict[int, Decimal] = {}
    for s, p in several(variance, depth - 1).items():
        for z, q in single(variance).items():
            law[s + z] = law.get(s + z, Decimal(0)) + p * q
    return law


def by_convolution(epsilon: Fraction, variance: int, depth: int) -> Decimal:
    """Return sum over s of P[S = s] max(0, 1 - exp(epsilon + (2s - depth) / (2 variance)))."""
    total = Decimal(0)
    for s, p in several(variance, depth).items():
        loss = epsilon + Fraction(2 * s - depth, 2 * variance)
        total += p * max(Decimal(0), 1 - WIDE.exp(Decimal(loss.numerator) / loss.denominator))
    return total


@pytest.mark.parametrize("variance", [1, 2, 3, 16, 17, 100, 5000])
def test_chances_equal_direct_sums(variance: int) -> None:
    """`pmf` and `tail` are the weights over their sum; a tail is never below and above by a relative 1e-25 at most."""
    chances = single(variance)
    for z in {0, 1, 2, 7, math.isqrt(variance), 6 * math.isqrt(variance)}:
        assert abs(gaussian.pmf(variance, z) - chances[z]) < OFF * chances[z]
        assert gaussian.pmf(variance, -z) == gaussian.pmf(variance, z)
        for g in (z, -z - 1):
            direct = sum(p for s, p in chances.items() if s > g)
            assert direct * (1 - Decimal("1e-60")) <= gaussian.tail(variance, g) <= direct * (1 + Decimal("1e-25"))


def test_far_tails_are_small_and_not_zero() -> None:
    """Where decimals end, a tail stays above the true one, which no decimal holds."""
    assert 0 < gaussian.tail(1, 10**9) < Decimal("1e-400000000")
    assert 0 < gaussian.tail(2**40, 10**30) < Decimal("1e-400000000")
    assert gaussian.tail(1, -(10**9)) == 1
    for g in (40, 200):  # known bounds of the ratio of tail to weight
        weight = gaussian.pmf(1, g + 1)
        assert weight < gaussian.tail(1, g) < weight * (1 + Decimal("1e-10"))


@pytest.mark.parametrize("variance", [2**18 + 1, 10**7])
@pytest.mark.parametrize("sigmas", [0, 1, 6, 30])
def test_a_sum_in_blocks_is_above_the_sum_by_integers_and_near(variance: int, sigmas: int) -> None:
    """Tails and deltas above the largest direct sum are never too small, and too large by at most what is said."""
    g = sigmas * math.isqrt(variance)
    layout = Layout.of(variance, g + 1, 10**6)
    assert layout.block == 1
    assert Layout.of(variance, g + 1, gaussian.BLOCKS).block > 1 or sigmas > 1
    unit = gaussian.pmf(variance, layout.start)
    direct = unit * (layout.weights(0) + layout.left_out)
    assert direct * (1 - Decimal("1e-25")) <= gaussian.tail(variance, g) <= direct * (1 + Decimal("1e-6"))
    complement = 1 - direct
    assert complement * (1 - Decimal("1e-25")) <= gaussian.tail(variance, -g - 1) <= complement + direct / 10**6
    for depth, epsilon in ((1, Fraction(sigmas + 1, math.isqrt(variance))), (40, Fraction(sigmas + 1, 1000))):
        fine = gaussian._delta(epsilon, variance, depth, 10**6)
        for blocks, excess in ((gaussian.BLOCKS, "4e-6"), (gaussian.COARSE_BLOCKS, "2e-2")):
            found = gaussian._delta(epsilon, variance, depth, blocks)
            assert fine * (1 - Decimal("1e-18")) <= found <= fine * (1 + Decimal(excess))


def test_a_block_around_zero_is_a_sum_of_tangents() -> None:
    """Blocks that hold, touch and pass 0 equal their geometric series summed term by term; the tangent at 0 is flat."""
    for start, block, shift in ((-7, 3, 0), (-7, 3, 1), (-9, 4, 2), (-4, 3, -3), (5, 6, 0)):
        layout = Layout(10, start, block, 5, Decimal(0))
        total = Decimal(0)
        for i in range(5):
            middle = start + shift + i * block + Fraction(block - 1, 2)
            for s in range(start + shift + i * block, start + shift + (i + 1) * block):
                line = middle * middle + 2 * middle * (s - middle)
                exponent = (Fraction((start + shift) ** 2) - line) / 20
                total += WIDE.exp(Decimal(exponent.numerator) / exponent.denominator)
        assert abs(layout.weights(shift) / total - 1) < OFF


EXCESS = {1: "3e-4", 2: "2e-8", 3: "1e-12", 4: "4e-17", 7: "4e-17"}
"""What `delta` says of how far it is above the true value at small variances."""


@pytest.mark.parametrize("variance", EXCESS)
@pytest.mark.parametrize("depth", [1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(20)])
def test_delta_equals_the_sum_over_the_convolution(variance: int, depth: int, epsilon: Fraction) -> None:
    """The condition, with the law of S convolved term by term: never below, above by no more than is said."""
    true = by_convolution(epsilon, variance, depth)
    found = gaussian.delta(epsilon, variance, depth)
    excess = Decimal("1e-20") if depth == 1 else Decimal(EXCESS[variance])
    assert true <= found + Decimal("1e-70")
    assert found <= true * (1 + excess) or true < Decimal("1e-70")


@pytest.mark.parametrize(
    ("variance", "epsilon", "expected"),
    [
        (1, Fraction(1), 0.14135133940562195),
        (4, Fraction(1), 0.007248776845952595),
        (9, Fraction(1, 2), 0.011915654391177491),
        (30, Fraction(1), 1.1610196061853184e-09),
        (100, Fraction(1, 4), 0.00022768519256331082),
    ],
)
def test_delta_of_one_cell_is_that_of_dp_accounting(variance: int, epsilon: Fraction, expected: float) -> None:
    """Google's dp-accounting 0.6.0: DiscreteGaussianPrivacyLoss(sqrt(variance)).get_delta_for_epsilon(epsilon)."""
    assert float(gaussian.delta(epsilon, variance, 1)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("variance", "depth", "epsilon", "low", "high"),
    [
        (4, 3, Fraction(1), 0.08346186047574104, 0.08346439880997364),
        (16, 5, Fraction(1), 0.013170291309576249, 0.013171648964463704),
        (100, 5, Fraction(1, 2), 0.0012596670922011164, 0.001260046220619824),
        (50, 25, Fraction(2), 0.0012595618736464848, 0.0012609124706543986),
        (2975, 25, Fraction(1, 2), 4.95127706946714e-10, 5.029460261643653e-10),
    ],
)
def test_delta_of_several_cells_is_within_the_bounds_of_dp_accounting(
    variance: int, depth: int, epsilon: Fraction, low: float, high: float
) -> None:
    """dp-accounting 0.6.0: from_discrete_gaussian_mechanism(sqrt(variance), value_discretization_interval=1e-5),
    self_compose(depth), get_delta_for_epsilon(epsilon), as its optimistic and its pessimistic estimate.
    """  # noqa: D205 - the call does not fit on a line
    assert low <= gaussian.delta(epsilon, variance, depth) <= high


@pytest.mark.parametrize(("variance", "depth"), [(1, 1), (25, 3), (400, 10), (10**6, 79)])
def test_delta_is_below_the_bound_by_concentrated_privacy(variance: int, depth: int) -> None:
    """OpenDP's zCDP of the same noise, turned into (epsilon, delta), is an upper bound, and not a far one."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=math.sqrt(variance)))
    profile = theirs.map(d_in=math.sqrt(depth))  # type: ignore[no-untyped-call]  # OpenDP's types stop here
    deviation = math.sqrt(depth / variance)
    for epsilon in (3 * deviation, 5 * deviation):
        found = float(gaussian.delta(Fraction(epsilon), variance, depth))
        assert found <= profile.delta(epsilon) <= 40 * found


@pytest.mark.parametrize(("epsilon", "variance", "depth"), [(0.5, 3000, 25), (0.05, 795_225, 79), (0.001, 10**10, 25)])
def test_a_wide_noise_costs_what_a_continuous_one_does(epsilon: float, variance: int, depth: int) -> None:
    """The analytic Gaussian mechanism (Balle and Wang 2018, Theorem 8) has the same delta in the limit."""
    r = math.sqrt(depth / variance)
    a, b = norm.logsf(epsilon / r - r / 2), norm.logsf(epsilon / r + r / 2)
    continuous = -math.exp(a) * math.expm1(epsilon + b - a)
    assert float(gaussian.delta(exact_epsilon(epsilon), variance, depth)) == pytest.approx(continuous, rel=2e-3)


@pytest.mark.parametrize(("epsilon", "delta", "sigma"), [(1, "0.12693674", 1.041), (2, "0.02092364", 1.038)])
def test_the_smallest_variance_is_the_one_of_googles_tests(epsilon: int, delta: str, sigma: float) -> None:
    """google/differential-privacy, privacy_loss_mechanism_test.py, test_discrete_gaussian_from_privacy_parameters."""
    assert gaussian.smallest_variance(Fraction(epsilon), Decimal(delta), 1) == math.ceil(sigma**2)


SEARCHES = [
    (Fraction(1), "1e-9", 1),
    (Fraction(1, 2), "5e-10", 25),
    (Fraction(1, 20), "5e-10", 79),
    (Fraction(1, 1000), "1e-300", 100),
    (Fraction(1, 1024), "1e-12", 40),
    (Fraction(2), "0.3", 7),
    (Fraction(1), "1e-9", 2**16),
    (exact_epsilon(2.0**-20), "1e-4", 1),
]


@pytest.mark.parametrize(("epsilon", "delta", "depth"), SEARCHES)
def test_the_smallest_variance_holds_and_the_one_before_does_not(epsilon: Fraction, delta: str, depth: int) -> None:
    """The condition holds at the variance that is returned, and fails one below."""
    variance = gaussian.smallest_variance(epsilon, Decimal(delta), depth)
    assert variance > 1
    assert gaussian.delta(epsilon, variance, depth) <= Decimal(delta) < gaussian.delta(epsilon, variance - 1, depth)


def test_a_small_search_agrees_with_convolution() -> None:
    """The first variance at which the convolved condition holds, from 1 upwards."""
    for epsilon, delta, depth in ((Fraction(2), "1e-3", 2), (Fraction(4), "1e-2", 3), (Fraction(64), "1e-300", 1)):
        first = next(v for v in range(1, 50) if by_convolution(epsilon, v, depth) <= Decimal(delta))
        assert gaussian.smallest_variance(epsilon, Decimal(delta), depth) == first


@pytest.mark.parametrize("depth", [1, 2, 3, 25])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(5)])
def test_delta_falls_as_the_variance_grows(epsilon: Fraction, depth: int) -> None:
    """The search for the smallest variance relies on it for being the smallest, though not for being private."""
    deltas = [gaussian.delta(epsilon, variance, depth) for variance in range(1, 80)]
    assert all(a > b for a, b in pairwise(deltas))


def test_more_noise_than_there_is_is_refused() -> None:
    """A small epsilon with many cells: the message names the limit and what to change."""
    with pytest.raises(InvalidParameter, match=r"2\*\*40.*for 79 cells.*larger epsilon or delta, or fewer rows"):
        gaussian.smallest_variance(exact_epsilon(2.0**-20), Decimal("1e-9"), 79)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ((Fraction(0), Decimal("1e-9"), 1), "epsilon must be a Fraction with 0 < epsilon <= 64"),
        ((Fraction(65), Decimal("1e-9"), 1), "epsilon must be a Fraction with 0 < epsilon <= 64"),
        ((1.0, Decimal("1e-9"), 1), "epsilon must be a Fraction"),
        ((Fraction(1), Decimal(0), 1), "delta must be a Decimal with 1e-300 <= delta < 1"),
        ((Fraction(1), Decimal(1), 1), "delta must be a Decimal with 1e-300 <= delta < 1"),
        ((Fraction(1), Decimal("NaN"), 1), "delta must be a Decimal with 1e-300 <= delta < 1"),
        ((Fraction(1), 1e-9, 1), "delta must be a Decimal"),
        ((Fraction(1), Decimal("1e-9"), 0), "depth must be a whole number from 1 to 65536"),
        ((Fraction(1), Decimal("1e-9"), 2**16 + 1), "depth must be a whole number from 1 to 65536"),
    ],
)
def test_parameters_out_of_range_are_refused(arguments: tuple[Any, ...], rule: str) -> None:
    """With the rule, the value and a remedy."""
    with pytest.raises(InvalidParameter, match=rule.replace("<", "[<]")):
        gaussian.smallest_variance(*arguments)


def test_a_variance_out_of_range_has_no_chances() -> None:
    """As for draws."""
    for variance in (0, 2**40 + 1):
        for function, arguments in ((gaussian.tail, (variance, 1)), (gaussian.delta, (Fraction(1), variance, 1))):
            with pytest.raises(InvalidParameter, match="variance must be a whole number"):
                function(*arguments)


def test_pi_is_pi() -> None:
    """Machin 1706: pi = 16 arctan(1/5) - 4 arctan(1/239)."""

    def arctan(n: int) -> Decimal:
        return sum(((-1) ** k / (Decimal(n) ** (2 * k + 1) * (2 * k + 1)) for k in range(80)), Decimal(0))

    assert abs(16 * arctan(5) - 4 * arctan(239) - PI) < Decimal("1e-84")


def test_the_precision_of_the_caller_does_not_matter() -> None:
    """Chances, deltas and variances are the same whatever decimal context the calling thread has set."""

    def everything() -> list[object]:
        for cached in (gaussian.tail, gaussian.delta, gaussian.smallest_variance):
            cached.cache_clear()
        return [
            *(gaussian.tail(v, g) for v in (1, 3, 10**7) for g in (-3, 0, 40)),
            *(gaussian.delta(Fraction(1, 7), v, d) for v in (1, 3, 10**7) for d in (1, 2, 500)),
            gaussian.pmf(5, 3),
            gaussian.smallest_variance(Fraction(1, 7), Decimal("1e-9"), 25),
        ]

    expected = everything()
    with localcontext(Context(prec=3)):
        assert everything() == expected
