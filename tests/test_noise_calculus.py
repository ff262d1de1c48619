"""Chances in `dptop.noise`: closed forms against direct sums, rounded to the safe side. Quantiles: exact or safe."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from dptop import intervals, noise
from dptop.errors import InvalidParameter
from dptop.mechanism import StableThreshold
from dptop.privacy import exact_epsilon
from dptop.reference import stable_threshold as reference
from dptop.search import smallest_by_bisection

if TYPE_CHECKING:
    from collections.abc import Iterator

EPSILONS = [exact_epsilon(e) for e in (0.1, 0.25, 0.5, 1.0, 2.0, 8.0)]
SMALLEST, LARGEST = exact_epsilon(2.0**-20), exact_epsilon(64.0)
OFF = Decimal("1e-39")  # what the reference leaves out of its sums

WIDE = Context(prec=150, Emin=-(10**9), Emax=10**9)


@pytest.fixture(autouse=True)
def wide_arithmetic() -> Iterator[None]:
    """Compute in 150 digits in these tests; what is tested brings its own precision along."""
    with localcontext(WIDE):
        yield


def wide_tail(epsilon: Fraction, g: int, *, difference: bool) -> Decimal:
    """Return P[Z > g] or P[W > g] for g >= 0 to 130 digits, from the closed forms of docs/privacy.md section 4."""
    e = WIDE.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    a = WIDE.exp(WIDE.minus(e))
    power = WIDE.exp(WIDE.multiply(WIDE.minus(e), Decimal(g + 1)))
    plus = WIDE.add(1, a)
    if not difference:
        return WIDE.divide(power, plus)
    constant = WIDE.divide(WIDE.add(plus, WIDE.multiply(2, WIDE.multiply(a, a))), plus)
    linear = WIDE.multiply(WIDE.subtract(1, a), Decimal(g + 1))
    return WIDE.divide(WIDE.multiply(power, WIDE.add(linear, constant)), WIDE.multiply(plus, plus))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_closed_forms_equal_direct_sums(epsilon: Fraction) -> None:
    """Tails of Z and of a difference of two draws equal the sums of the probabilities of single values."""
    chances = reference.laplace(epsilon)
    for g in (-30, -7, -2, -1, 0, 1, 2, 5, 19, 60):
        direct = sum((p for z, p in chances.items() if z > g), Decimal(0))
        assert abs(noise.tail(epsilon, g) - direct) < OFF
        assert abs(noise.difference_tail(epsilon, g) - reference.chance_above(epsilon, g)) < OFF
        assert abs(noise.pmf(epsilon, g) - chances.get(g, Decimal(0))) < OFF


@pytest.mark.parametrize("epsilon", [*EPSILONS, SMALLEST, LARGEST])
def test_tails_are_sums_of_probabilities(epsilon: Fraction) -> None:
    """Each step of a tail is the probability of the value passed, on both sides and for the difference."""
    for g in (-900, -3, -2, -1, 0, 1, 2, 17, 900):
        for tail, pmf in ((noise.tail, noise.pmf), (noise.difference_tail, noise.difference_pmf)):
            step = tail(epsilon, g - 1) - tail(epsilon, g)
            assert abs(step - pmf(epsilon, g)) <= Decimal("1e-26") * pmf(epsilon, g) + Decimal("1e-27")


@pytest.mark.parametrize("epsilon", [*EPSILONS, SMALLEST, LARGEST, Fraction(1, 2**32)])
@pytest.mark.parametrize("g", [0, 1, 15, 4096, 10**9])
def test_tails_are_never_below_the_true_chance(epsilon: Fraction, g: int) -> None:
    """The rounding is upwards, by a relative 2e-45 at most: 150 digits are the witness."""
    for difference, tail in ((False, noise.tail), (True, noise.difference_tail)):
        true = wide_tail(epsilon, g, difference=difference)
        found = tail(epsilon, g)
        assert true <= found <= true * (1 + Decimal("2e-45"))
        complement = tail(epsilon, -g - 1)
        assert 1 - true <= complement <= min(Decimal(1), (1 - true) * (1 + Decimal("2e-45")))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_tail_is_symmetric_and_falls(epsilon: Fraction) -> None:
    """P[Z > g] = 1 - P[Z > -g-1], and tails fall as g grows."""
    for tail in (noise.tail, noise.difference_tail):
        values = [tail(epsilon, g) for g in range(-20, 21)]
        assert all(a >= b for a, b in pairwise(values))
        for g in range(21):
            assert abs(tail(epsilon, g) + tail(epsilon, -g - 1) - 1) < Decimal("1e-40")


@pytest.mark.parametrize("epsilon", [*EPSILONS, SMALLEST, LARGEST])
@pytest.mark.parametrize("p", ["0.6", "0.5", "0.025", "1e-9", "1e-300"])
def test_a_quantile_is_the_smallest_that_does(epsilon: Fraction, p: str) -> None:
    """P[Z < -q] <= p, and not at q - 1."""
    q = intervals.quantile(epsilon, Decimal(p))
    assert noise.tail(epsilon, q) <= Decimal(p)
    assert q == 0 or noise.tail(epsilon, q - 1) > Decimal(p)


@pytest.mark.parametrize("epsilon", [*EPSILONS, SMALLEST])
@pytest.mark.parametrize("counters", [1, 2, 2000, 10**6])
def test_a_simultaneous_quantile_is_the_smallest_that_does(epsilon: Fraction, counters: int) -> None:
    """1 - (1 - P[Z < -q])^counters <= p, and not at q - 1."""
    p = Decimal("0.025")

    def some_below(q: int) -> Decimal:
        return 1 - WIDE.power(1 - noise.tail(epsilon, q), counters)

    q = intervals.simultaneous_quantile(epsilon, counters, p)
    assert some_below(q) <= p
    assert q == 0 or some_below(q - 1) > p


@pytest.mark.parametrize("epsilon", [exact_epsilon(e) for e in (0.1, 0.5, 1.0, 4.0)])
@pytest.mark.parametrize(("counters", "p"), [(1, "0.025"), (7, "0.005"), (2000, "0.025"), (10**6, "1e-6")])
def test_a_simultaneous_difference_quantile_is_the_smallest_that_does(epsilon: Fraction, counters: int, p: str) -> None:
    """The sum over the common draw, written out in decimals, is at most p at q and above it at q - 1."""
    chances = reference.laplace(epsilon)

    def some_above(q: int) -> Decimal:
        at_most = {z: WIDE.power(1 - noise.tail(epsilon, q + z), counters) for z in chances}
        return 1 - sum((mass * at_most[z] for z, mass in chances.items()), Decimal(0))

    q = intervals.simultaneous_difference_quantile(epsilon, counters, Decimal(p))
    assert some_above(q) <= Decimal(p)
    assert q == 0 or some_above(q - 1) > Decimal(p) * (1 - Decimal("2e-6"))


@pytest.mark.parametrize(("epsilon", "pair"), [(1.0, (10, 11)), (0.1, (106, 116))])
def test_simultaneous_quantiles_for_two_thousand_counters(epsilon: float, pair: tuple[int, int]) -> None:
    """At beta 0.05 and 2000 counters: the worked example of docs/privacy.md section 5."""
    grid, p = exact_epsilon(epsilon), Decimal("0.025")
    assert intervals.simultaneous_quantile(grid, 2000, p) == pair[0]
    assert intervals.simultaneous_difference_quantile(grid, 2000, p) == pair[1]


def test_a_sum_in_blocks_is_safe_and_nearly_as_small() -> None:
    """For a small epsilon, blocks give a q that is at least the exact one and within 1 % of 1/epsilon of it."""
    epsilon, p = exact_epsilon(2.0**-9), Decimal("0.025")
    exact = intervals.LONGEST_SUM
    found = intervals.simultaneous_difference_quantile(epsilon, 2000, p)
    try:
        intervals.LONGEST_SUM = 10**9  # type: ignore[misc]  # the exact sum, term by term
        intervals.simultaneous_difference_quantile.cache_clear()
        term_by_term = intervals.simultaneous_difference_quantile(epsilon, 2000, p)
    finally:
        intervals.LONGEST_SUM = exact  # type: ignore[misc]
        intervals.simultaneous_difference_quantile.cache_clear()
    assert term_by_term <= found <= term_by_term + 2**9 / 100


def test_the_precision_of_the_caller_does_not_matter() -> None:
    """Chances and quantiles are the same whatever decimal context the calling thread has set."""

    def everything() -> list[object]:
        p = Decimal("0.025")
        intervals.simultaneous_difference_quantile.cache_clear()
        return [
            *(f(SMALLEST, g) for f in (noise.tail, noise.difference_tail, noise.pmf) for g in (-3, 0, 10**6)),
            intervals.quantile(SMALLEST, p),
            intervals.simultaneous_quantile(SMALLEST, 2000, p),
            intervals.simultaneous_difference_quantile(SMALLEST, 2000, p),
            StableThreshold.calibrate(epsilon=0.1, delta=1e-9, tie="most-recent").failure_probability,
        ]

    expected = everything()
    with localcontext(Context(prec=3)):
        assert everything() == expected


def test_a_bisection_finds_the_first_that_holds() -> None:
    """Whatever the first integer is at which a condition turns true."""
    for first in range(70):
        assert smallest_by_bisection(lambda x, first=first: x >= first) == first  # type: ignore[misc]


def test_draws_come_from_the_native_sampler_with_the_grid_numerator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epsilon reaches the sampler as a whole multiple of 2^-32, and no seed means the system's entropy."""
    calls: list[tuple[int, int, bytes | None]] = []

    def record(numerator: int, count: int, seed: bytes | None) -> list[int]:
        calls.append((numerator, count, seed))
        return [0] * count

    monkeypatch.setattr("dptop.noise._native.discrete_laplace", record)
    assert noise.draw(Fraction(1, 4), 3) == [0, 0, 0]
    noise.draw(Fraction(1, 2**32), 1, seed=7)
    # SHA-256 of the one byte "7", from the coreutils command sha256sum
    seven = bytes.fromhex("7902699be42c8a8e46fbbb4501726517e86b22c56a189f7625a6da49081b2451")
    assert calls == [(2**30, 3, None), (1, 1, seven)]


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1), Fraction(1, 3), Fraction(1, 2**33)])
def test_an_epsilon_off_the_grid_draws_nothing(epsilon: Fraction) -> None:
    """The sampler is never asked for an epsilon that it would have to round."""
    with pytest.raises(InvalidParameter, match="multiple of 2"):
        noise.draw(epsilon, 1)
