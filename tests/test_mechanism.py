"""StableThreshold: the offset it calibrates, THE comparison, and intervals that cover among the labels released."""

from __future__ import annotations

import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from dptop.errors import InvalidParameter
from dptop.mechanism import StableThreshold
from dptop.noise import difference_pmf, difference_tail, pmf, tail
from dptop.privacy import PrivacyParameters, exact_epsilon
from dptop.reference import stable_threshold as reference
from dptop.reference.discrete_laplace import discrete_laplace
from dptop.tie import Tie

if TYPE_CHECKING:
    from collections.abc import Callable

EPSILONS = st.floats(2.0**-20, 64.0)
DELTAS = st.floats(5e-324, 1.0, exclude_max=True)

# G for (epsilon, delta), least and most recent. Source: exact enumeration, by `enumerated` below; also in the table of
# docs/privacy.md section 4.
GAPS = [
    (1.0, 1e-6, 15, 15),
    (1.0, 1e-4, 10, 11),
    (1.0, 1e-2, 5, 5),
    (0.5, 1e-4, 21, 22),
    (0.1, 1e-2, 52, 59),
    (0.1, 1e-6, 153, 160),
    (2.0, 1e-6, 7, 7),
]


def enumerated(epsilon: Fraction, g: int) -> Fraction:
    """Return P[Z_x - Z_0 > g] as a sum over all pairs of draws: definition alone, no closed form, off by below 1e-50.

    A draw z counts floor(10^60 exp(-epsilon |z|)) times. What is below one is left out.
    """
    reach = math.ceil(60 * math.log(10) / epsilon)
    with localcontext() as context:
        context.prec = 80
        e = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        half = [int((-e * z).exp().scaleb(60)) for z in range(reach + 1)]
    times = {z: half[abs(z)] for z in range(-reach, reach + 1)}
    at_least = dict(zip(reversed(times), accumulate(times[z] for z in reversed(times)), strict=True))
    pairs = sum(n * at_least.get(max(-reach, z + g + 1), 0) for z, n in times.items())
    return Fraction(pairs, sum(times.values()) ** 2)


@pytest.mark.parametrize(("epsilon", "delta", "least", "most"), GAPS)
def test_gaps_of_the_table_are_those_of_an_enumeration(epsilon: float, delta: float, least: int, most: int) -> None:
    """G is the smallest number at which the enumerated chance of one isolated label, or of two, is at most delta."""
    exact, bound, error = exact_epsilon(epsilon), Fraction(repr(delta)), Fraction(1, 10**40)
    for labels, gap in ((1, least), (2, most)):
        at, before = (sum(enumerated(exact, g + i) for i in range(labels)) for g in (gap, gap - 1))
        assert at + error < bound < before - error


@pytest.mark.parametrize(("epsilon", "delta", "least", "most"), GAPS)
def test_offsets_are_those_of_the_table(epsilon: float, delta: float, least: int, most: int) -> None:
    """The offset is 1 + G, and that of the reference, which sums in decimals."""
    for tie, gap in ((Tie.LEAST_RECENT, least), (Tie.MOST_RECENT, most)):
        mechanism = StableThreshold.calibrate(epsilon=epsilon, delta=delta, tie=tie)
        assert mechanism.offset == 1 + gap
        assert mechanism.offset == reference.smallest_offset(mechanism.epsilon, mechanism.delta, tie)


@given(epsilon=EPSILONS, delta=DELTAS, tie=st.sampled_from(Tie))
@settings(deadline=None, derandomize=True)
def test_the_offset_is_the_smallest_that_keeps_delta(epsilon: float, delta: float, tie: Tie) -> None:
    """The failure probability is at most delta, and one item less of offset would exceed it."""
    mechanism = StableThreshold.calibrate(epsilon=epsilon, delta=delta, tie=tie)
    assert mechanism.failure_probability <= mechanism.delta == Decimal(repr(delta))
    gap = mechanism.offset - 1
    if gap > 0:
        below = difference_tail(mechanism.epsilon, gap - 1)
        if tie is Tie.MOST_RECENT:
            below += difference_tail(mechanism.epsilon, gap)
        assert below > mechanism.delta


@given(epsilons=st.tuples(EPSILONS, EPSILONS), deltas=st.tuples(DELTAS, DELTAS), tie=st.sampled_from(Tie))
@settings(deadline=None, derandomize=True)
def test_more_privacy_never_lowers_the_offset(
    epsilons: tuple[float, float], deltas: tuple[float, float], tie: Tie
) -> None:
    """A smaller epsilon or delta never gives a smaller offset, and most recent never a smaller one than least."""
    strict = StableThreshold.calibrate(epsilon=min(epsilons), delta=min(deltas), tie=tie)
    loose = StableThreshold.calibrate(epsilon=max(epsilons), delta=max(deltas), tie=tie)
    assert strict.offset >= loose.offset >= 1
    assert StableThreshold.calibrate(epsilon=epsilons[0], delta=deltas[0], tie="most-recent").offset >= (
        StableThreshold.calibrate(epsilon=epsilons[0], delta=deltas[0]).offset
    )


def test_the_offset_belongs_to_the_rounded_epsilon() -> None:
    """Epsilon is rounded down to the grid first, and the offset is that of the epsilon that is kept."""
    epsilon = 2.0**-20 + 2.0**-33
    mechanism = StableThreshold.calibrate(epsilon=epsilon, delta=1e-9)
    assert mechanism.epsilon == Fraction(1, 2**20)
    assert mechanism == StableThreshold.calibrate(epsilon=2.0**-20, delta=1e-9)
    assert mechanism.scale == 2.0**20


def test_the_comparison_is_strict() -> None:
    """A label at the threshold is not published; one above it by one is. Counts may be of any size and sign."""
    mechanism = StableThreshold.calibrate(epsilon=1.0, delta=1e-6)
    for u in (-40, 0, 7, 2**70):
        assert not mechanism.keeps(u + mechanism.offset, u)
        assert mechanism.keeps(u + mechanism.offset + 1, u)


def test_an_exact_loss_is_kept_as_it_is() -> None:
    """`of` takes a part of a split, and `calibrate` is `of` the numbers as written."""
    loss = PrivacyParameters.of(0.3, 1e-7)
    assert StableThreshold.of(loss) == StableThreshold.calibrate(epsilon=0.3, delta=1e-7)
    assert (StableThreshold.of(loss).epsilon, StableThreshold.of(loss).delta) == (loss.epsilon, loss.delta)


@pytest.mark.parametrize("tie", ["", "Least-Recent", "random", None, 1])
def test_an_unknown_tie_rule_is_refused(tie: str) -> None:
    """Only the two rules that have a proof."""
    with pytest.raises(InvalidParameter, match="least-recent"):
        StableThreshold.calibrate(epsilon=1.0, delta=1e-6, tie=tie)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0, 0.1), (-1, 0.1), (math.nan, 0.1), (math.inf, 0.1), (65, 0.1), (1, 0), (1, 1), (1, 2)]
)
def test_losses_out_of_range_are_refused(epsilon: float, delta: float) -> None:
    """The rules of epsilon and delta are those of `dptop.privacy`."""
    with pytest.raises(InvalidParameter):
        StableThreshold.calibrate(epsilon=epsilon, delta=delta)


@pytest.mark.parametrize("beta", [0.0, 1.0, -0.1, 2.0, math.nan])
def test_a_beta_out_of_range_is_refused(beta: float) -> None:
    """A confidence of 0 or 1 has no interval."""
    with pytest.raises(InvalidParameter, match="beta"):
        StableThreshold.calibrate(epsilon=1.0, delta=1e-6).interval(100, 10, beta)


@pytest.mark.parametrize(("counters", "tables"), [(0, 1), (1, 0), (-5, 1)])
def test_no_counters_have_no_simultaneous_interval(counters: int, tables: int) -> None:
    """The number of labels and of tables is at least one."""
    mechanism = StableThreshold.calibrate(epsilon=1.0, delta=1e-6)
    with pytest.raises(InvalidParameter, match="from 1 to"):
        mechanism.interval(100, 10, 0.05, simultaneous_over=counters, tables=tables)


INTERVALS = pytest.mark.parametrize(
    ("epsilon", "delta", "beta"),
    [(0.25, 1e-3, 0.05), (0.5, 1e-6, 0.05), (1.0, 1e-9, 0.1), (1.0, 1e-2, 0.5), (2.0, 1e-6, 0.01), (8.0, 0.1, 0.05)],
)


@INTERVALS
def test_intervals_are_those_of_the_reference(epsilon: float, delta: float, beta: float) -> None:
    """The quick rule gives the intervals of the formula in docs/privacy.md section 5, label by label and at once."""
    mechanism = StableThreshold.calibrate(epsilon=epsilon, delta=delta)
    settled = mechanism.offset + int(30 / epsilon) + 3
    for u in (0, 1000):
        counts = [u + w for w in (*range(mechanism.offset + 1, settled), settled + 1000)]
        expected = [
            reference.interval(v, u, epsilon=mechanism.epsilon, offset=mechanism.offset, beta=Decimal(beta))
            for v in counts
        ]
        assert mechanism.intervals(counts, u, beta) == expected
        shuffled = random.Random(1).sample(list(zip(counts, expected, strict=True)), len(counts))
        assert mechanism.intervals([v for v, _ in shuffled], u, beta) == [e for _, e in shuffled]
        assert [mechanism.interval(v, u, beta) for v in counts] == expected


@given(epsilon=st.floats(0.01, 20), delta=st.floats(1e-12, 0.5), beta=st.floats(1e-9, 0.9), data=st.data())
@settings(deadline=None, derandomize=True)
def test_the_lower_end_refuses_only_what_the_exact_rule_refuses(
    epsilon: float, delta: float, beta: float, data: st.DataObject
) -> None:
    """Floats never shorten an interval: every excess below `low` fails the rule in 60 digits."""
    mechanism = StableThreshold.calibrate(epsilon=epsilon, delta=delta)
    w = mechanism.offset + data.draw(st.integers(1, int(60 / epsilon) + 10))
    low, _ = mechanism.interval(w, 0, beta)
    half = Decimal(beta) / 2

    def plausible(d: int) -> bool:
        at_least = difference_tail(mechanism.epsilon, w - d - 1)
        return at_least > half * difference_tail(mechanism.epsilon, mechanism.offset - d)

    assert low == 0 or not plausible(low - 1)
    assert plausible(low)


def test_ends_that_noise_threw_across_each_other_are_widened() -> None:
    """With a minimum whose noise is far below zero the ends stay in order, and no end is negative."""
    mechanism = StableThreshold.calibrate(epsilon=1.0, delta=1e-2)
    for v in (-60, -20, 0, 5):
        low, high = mechanism.interval(v, -100, 0.05)
        assert 0 <= low <= high
        low, high = mechanism.interval(v, -100, 0.05, simultaneous_over=10)
        assert 0 <= low <= high


def misses(
    mechanism: StableThreshold, excess: int, minimum: int, low: Callable[[int], int], above: int
) -> tuple[Decimal, Decimal, Decimal]:
    """Return the exact chances that a label with C - m = `excess` is released, with low > excess, with v + above < C.

    True counts lie in [C - m, C], and these two events are the ways in which the worst of them can be missed. Sums run
    over Z_0 and Z_x up to where less than 1e-15 is left.
    """
    released = too_high = too_low = Decimal(0)
    reach = next(z for z in range(10**6) if tail(mechanism.epsilon, z) < Decimal("1e-15"))
    chances = {z: pmf(mechanism.epsilon, z) for z in range(-reach, reach + 1)}
    for z0, p0 in chances.items():
        for zx, px in chances.items():
            u, v = minimum + z0, minimum + excess + zx
            if mechanism.keeps(v, u):
                p = p0 * px
                released += p
                if low(v - u) > excess:
                    too_high += p
                if v + above < minimum + excess:
                    too_low += p
    return released, too_high, too_low


@pytest.mark.parametrize(("epsilon", "delta", "beta"), [(1.0, 1e-3, 0.05), (1.0, 1e-2, 0.5), (2.0, 1e-6, 0.1)])
def test_intervals_cover_among_the_released(epsilon: float, delta: float, beta: float) -> None:
    """Given that a label is released, each end misses with chance at most beta/2, at whatever distance it stands."""
    mechanism = StableThreshold.calibrate(epsilon=epsilon, delta=delta)
    minimum = 1000
    widths = [mechanism.interval(minimum + w, minimum, beta) for w in range(mechanism.offset + 1, 400)]
    lows = {w: low for w, (low, _) in zip(range(mechanism.offset + 1, 400), widths, strict=True)}
    above = widths[0][1] - minimum - mechanism.offset - 1
    half = Decimal(beta) / 2
    for excess in range(2 * mechanism.offset + 8):
        released, too_high, too_low = misses(mechanism, excess, minimum, lows.__getitem__, above)
        if released > Decimal("1e-9"):
            assert too_high <= half * released, f"the lower end misses too often at excess {excess}"
            assert too_low <= half * released, f"the upper end misses too often at excess {excess}"


def test_a_lower_end_that_forgets_the_release_does_not_cover() -> None:
    """The lower end w - q misses most of the time for labels that were released near the threshold."""
    mechanism = StableThreshold.calibrate(epsilon=1.0, delta=1e-3)
    half = Decimal("0.025")
    q = next(q for q in range(100) if difference_tail(mechanism.epsilon, q) <= half)
    released, too_high, _ = misses(mechanism, 1, 1000, lambda w: max(0, w - q), 0)
    assert too_high > released / 2
    released, too_high, _ = misses(mechanism, 4 * mechanism.offset, 1000, lambda w: max(0, w - q), 0)
    assert too_high <= half * released  # far above the threshold it is right: what goes wrong is the selection


def test_simultaneous_intervals_hold_together() -> None:
    """Simulated releases: all intervals at once cover at least as often as 1 - beta says."""
    mechanism = StableThreshold.calibrate(epsilon=0.5, delta=1e-2)
    beta, minimum, runs, tables = 0.2, 500, 4000, 2
    # 20 counters per table: at the minimum, near the threshold, far above
    excesses = [0] * 5 + [mechanism.offset + i for i in range(-5, 5)] + [100, 200, 400, 800, 1600]
    size = tables * (1 + len(excesses))
    noise = iter(discrete_laplace(2**31, runs * size, bytes(range(32))))
    failures = 0
    for _ in range(runs):
        missed = False
        for _ in range(tables):
            u = minimum + next(noise)
            counts = [minimum + e + next(noise) for e in excesses]
            ends = mechanism.intervals(counts, u, beta, simultaneous_over=len(excesses), tables=tables)
            for excess, (low, high) in zip(excesses, ends, strict=True):
                # kept or not: simultaneous intervals cover every tracked label, whose true count is in [C - m, C]
                missed |= not (low <= excess and minimum + excess <= high)
        failures += missed
    p = binomtest(failures, runs, beta, alternative="greater").pvalue
    assert p > 1e-6, f"{failures} of {runs} runs missed at beta {beta}; false-alarm rate 1e-6, so look for a cause"
    assert failures > runs * beta / 20  # and the intervals are not idle


def test_simultaneous_intervals_do_not_depend_on_the_release() -> None:
    """Their width is the same for every label: the quantiles of docs/privacy.md section 5, 10 and 11 at epsilon 1."""
    mechanism = StableThreshold.calibrate(epsilon=1.0, delta=1e-6)
    for w in (17, 18, 30, 1000):
        assert mechanism.interval(500 + w, 500, 0.05, simultaneous_over=2000) == (w - 11, 500 + w + 10)


def test_differences_of_noise_decide_the_release() -> None:
    """A label one above the minimum is kept with chance P(G): the chance that W exceeds what it misses."""
    mechanism = StableThreshold.calibrate(epsilon=1.0, delta=1e-3)
    with localcontext() as context:
        context.prec = 50
        kept = sum(
            (difference_pmf(mechanism.epsilon, w) for w in range(-90, 91) if mechanism.keeps(1 + w, 0)), Decimal(0)
        )
        assert abs(kept - mechanism.failure_probability) < Decimal("1e-35")


@pytest.mark.parametrize("epsilon", [2.0**-20, 2.0**-10, 64.0])
def test_extreme_losses_have_intervals(epsilon: float) -> None:
    """At the ends of the accepted range the ends of an interval are finite and in order."""
    mechanism = StableThreshold.calibrate(epsilon=epsilon, delta=5e-324)
    counts = [mechanism.offset + i for i in (1, 2, 1000, 10**12, 2**62)]
    for simultaneous_over in (None, 65_536):
        for v, (low, high) in zip(
            counts, mechanism.intervals(counts, 0, 0.05, simultaneous_over=simultaneous_over), strict=True
        ):
            assert 0 <= low <= v <= high
    assert exact_epsilon(epsilon) == mechanism.epsilon
