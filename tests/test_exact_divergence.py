"""StableThreshold is (epsilon, delta)-private: the exact distribution of its output, summed over what `keeps` keeps.

For neighbours X and X' the smallest delta that holds at epsilon is the sum, over all outputs o, of
max(0, P[X gives o] - e^epsilon P[X' gives o]); it is computed here for both directions, from `dptop.noise.pmf` and from
`StableThreshold.keeps`, for every way in which two summaries of neighbouring streams can differ.

What makes the sum short, nothing of which is assumed about the mechanism but that its draws are independent:

* Given the noisy minimum u, the labels are published independently. A label with the same count on both sides then
  multiplies both chances by the same factor, and these factors sum to one: it leaves the divergence alone
  (`test_a_common_label_with_equal_counts_changes_nothing`). So a pair of summaries matters only through its shape:
  the minima, the labels that one side tracks, and the common labels whose counts differ.
* An output that shows a label of X only is impossible under X' and adds its whole probability.
* Adding a constant to all counts and both minima moves every output along, and changes nothing.

Sums stop where the noise exceeds `reach`; what is left out is bounded and reported as the width of an enclosure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import cache, lru_cache
from itertools import product
from typing import TYPE_CHECKING

import pytest

from dptop.mechanism import StableThreshold
from dptop.noise import difference_tail, pmf
from dptop.privacy import PrivacyParameters, exact_epsilon
from dptop.reference.space_saving import SpaceSaving
from dptop.tie import Tie
from neighbours import State, isolated, neighbours, run_reference

if TYPE_CHECKING:
    from fractions import Fraction

Noise = dict[int, Decimal]
Keeps = Callable[[int, int], bool]

ZERO, ONE = Decimal(0), Decimal(1)


@dataclass(frozen=True)
class Shape:
    """All that two summaries of neighbouring streams differ in; counts relative to the smaller minimum.

    A pair is (in X, in X'): the minima, and the count of each common label that differs.
    """

    minimum: tuple[int, int]
    only_first: tuple[int, ...] = ()
    only_second: tuple[int, ...] = ()
    common: tuple[tuple[int, int], ...] = ()

    def swapped(self) -> Shape:
        """Return the same neighbours, seen from the other one."""
        return Shape(
            (self.minimum[1], self.minimum[0]),
            self.only_second,
            self.only_first,
            tuple((b, a) for a, b in self.common),
        )

    @classmethod
    def of(cls, long: State, short: State) -> Shape:
        """Return the shape of a pair of summaries."""
        base = min(long.minimum, short.minimum)
        only_long, only_short = isolated(long, short)
        common = ((long.counts[x] - base, short.counts[x] - base) for x in long.counts.keys() & short.counts.keys())
        return cls(
            (long.minimum - base, short.minimum - base),
            tuple(sorted(c - base for c in only_long.values())),
            tuple(sorted(c - base for c in only_short.values())),
            tuple(sorted(pair for pair in common if pair[0] != pair[1])),
        )


@cache
def shapes(tie: Tie, capacity: int, longest: int = 8) -> frozenset[Shape]:
    """Return every shape that streams of up to `longest` items leave, and a differing label at other heights.

    How far the one common label that differs is above the minimum grows with the stream; heights beyond those of the
    short streams are filled in, far enough for the label to be published nearly always.
    """
    seen = {Shape.of(a, b) for _, a, b in neighbours(run_reference, capacity, tie, longest)}
    lowest = {shape for shape in seen if shape.minimum == (0, 0) and shape.common == ((1, 0),)}
    higher = {replace(shape, common=((1 + up, up),)) for shape in lowest for up in (8, 13, 20, 40)}
    return frozenset(seen | higher)


@lru_cache(maxsize=32)
def noise(epsilon: Fraction, left_out: str = "1e-18") -> Noise:
    """Return P[Z = z] for all z but a part smaller than `left_out`."""
    chances = {0: pmf(epsilon, 0)}
    z = 0
    while chances[z] > Decimal(left_out) * (1 - pmf(epsilon, 1) / pmf(epsilon, 0)) / 2:
        z += 1
        chances[z] = chances[-z] = pmf(epsilon, z)
    return chances


@dataclass(frozen=True)
class Enclosure:
    """Two numbers with the exact divergence between them."""

    low: Decimal
    high: Decimal


def divergence(shape: Shape, factor: Decimal, keeps: Keeps, of_count: Noise, of_minimum: Noise) -> Enclosure:
    """Return the sum over outputs of max(0, P[X gives o] - factor * P[X' gives o])."""
    total = ZERO
    reach = max(of_count)

    def published(count: int, u: int) -> Decimal:
        return sum((p for z, p in of_count.items() if keeps(count + z, u)), ZERO)

    with localcontext() as context:
        context.prec = 40
        low = min(shape.minimum) + min(of_minimum)
        for u in range(low, max(shape.minimum) + max(of_minimum) + 1):
            first, second = (of_minimum.get(u - m, ZERO) for m in shape.minimum)
            if first == 0:
                continue
            # outputs that show a label of X only
            hidden, hidden_second = ONE, ONE
            for count in shape.only_first:
                hidden *= ONE - published(count, u)
            for count in shape.only_second:
                hidden_second *= ONE - published(count, u)
            total += first * (ONE - hidden)
            # the others: what is published of each differing common label, or that it is not
            tables = []
            for pair in shape.common:
                values = [v for v in range(min(pair) - reach, max(pair) + reach + 1) if keeps(v, u)]
                table = [tuple(of_count.get(v - count, ZERO) for count in pair) for v in values]
                table.append((ONE - published(pair[0], u), ONE - published(pair[1], u)))
                tables.append(table)
            for outcome in product(*tables):
                one, two = first * hidden, second * hidden_second
                for a, b in outcome:
                    one *= a
                    two *= b
                total += max(ZERO, one - factor * two)
        # each sum over noise misses at most 1 - its own total, in each of the places where it was used
        places = 1 + len(shape.only_first) + len(shape.only_second) + len(shape.common)
        slack = 2 * places * (1 + factor) * (abs(ONE - sum(of_count.values())) + abs(ONE - sum(of_minimum.values())))
        slack += Decimal("1e-30")
    return Enclosure(total - slack, total + slack)


def worst(kinds: frozenset[Shape], epsilon: Fraction, keeps: Keeps, of_count: Noise, of_minimum: Noise) -> Enclosure:
    """Return the largest divergence over the shapes, in both directions."""
    factor = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
    found = [
        divergence(direction, factor, keeps, of_count, of_minimum)
        for shape in kinds
        for direction in (shape, shape.swapped())
    ]
    return Enclosure(max(e.low for e in found), max(e.high for e in found))


EPSILONS_AND_DELTAS = [(0.5, 1e-2), (1.0, 1e-2), (1.0, 1e-4), (1.0, 1e-6), (2.0, 1e-6), (3.0, 0.3)]
EPSILON, DELTA = 1.0, 1e-4


@pytest.mark.parametrize("tie", Tie)
@pytest.mark.parametrize("capacity", [1, 2, 3])
@pytest.mark.parametrize(("epsilon", "delta"), EPSILONS_AND_DELTAS)
def test_the_release_keeps_its_promise(tie: Tie, capacity: int, epsilon: float, delta: float) -> None:
    """The exact divergence is at most delta, in both directions, for every shape of neighbours."""
    mechanism = StableThreshold.calibrate(epsilon=epsilon, delta=delta, tie=tie)
    z = noise(mechanism.epsilon)
    found = worst(shapes(tie, capacity), mechanism.epsilon, mechanism.keeps, z, z)
    assert found.high <= mechanism.failure_probability + Decimal("1e-14")
    assert found.high <= mechanism.delta


@pytest.mark.parametrize("capacity", [2, 3])
@pytest.mark.parametrize(("epsilon", "delta"), EPSILONS_AND_DELTAS)
def test_the_promise_of_least_recent_cannot_be_tightened(capacity: int, epsilon: float, delta: float) -> None:
    """From two counters on, the worst divergence under least recent is P(G) itself, and an offset less by 1 fails."""
    mechanism = StableThreshold.calibrate(epsilon=epsilon, delta=delta)
    z = noise(mechanism.epsilon)
    kinds = shapes(Tie.LEAST_RECENT, capacity)
    found = worst(kinds, mechanism.epsilon, mechanism.keeps, z, z)
    assert found.low <= difference_tail(mechanism.epsilon, mechanism.offset - 1) <= found.high
    assert found.high - found.low < Decimal("1e-14")

    def too_low(v: int, u: int) -> bool:
        return v - u > mechanism.offset - 1

    if mechanism.offset > 1:  # at G = 0 the threshold is as low as the rule lets it be
        assert worst(kinds, mechanism.epsilon, too_low, z, z).low > mechanism.delta


def test_a_comparison_that_is_not_strict_breaks_the_promise() -> None:
    """Keeping a label at the threshold, with >= for >, is caught."""
    mechanism = StableThreshold.calibrate(epsilon=EPSILON, delta=DELTA)
    z = noise(mechanism.epsilon)

    def not_strict(v: int, u: int) -> bool:
        return v - u >= mechanism.offset

    assert worst(shapes(Tie.LEAST_RECENT, 2), mechanism.epsilon, not_strict, z, z).low > mechanism.delta


def test_too_little_noise_breaks_the_promise() -> None:
    """Noise for twice the epsilon is caught, and so is noise for an epsilon that is larger by a thousandth."""
    mechanism = StableThreshold.calibrate(epsilon=EPSILON, delta=DELTA)
    kinds = shapes(Tie.LEAST_RECENT, 2)
    half = noise(2 * mechanism.epsilon)
    assert worst(kinds, mechanism.epsilon, mechanism.keeps, half, half).low > mechanism.delta
    above = exact_epsilon(EPSILON + 1e-3)
    little = noise(above)
    assert worst(kinds, mechanism.epsilon, mechanism.keeps, little, little).low > mechanism.delta


def test_a_minimum_without_noise_breaks_the_promise() -> None:
    """Publishing or comparing with the exact minimum tells neighbours apart, whatever the threshold."""
    mechanism = StableThreshold.calibrate(epsilon=EPSILON, delta=DELTA)
    z = noise(mechanism.epsilon)
    found = worst(shapes(Tie.LEAST_RECENT, 2), mechanism.epsilon, mechanism.keeps, z, {0: ONE})
    assert found.low > Decimal("0.99")


def without_slack(epsilon: float, delta: float) -> StableThreshold:
    """Return the mechanism of least recent for the smallest delta that its offset keeps."""
    loss = PrivacyParameters(
        exact_epsilon(epsilon), StableThreshold.calibrate(epsilon=epsilon, delta=delta).failure_probability
    )
    return StableThreshold.of(loss, Tie.LEAST_RECENT)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-4), (0.5, 1e-2), (2.0, 1e-6)])
def test_most_recent_pays_for_its_second_label(epsilon: float, delta: float) -> None:
    """The offset of least recent is too low for a summary that breaks ties by most recent."""
    least = without_slack(epsilon, delta)
    z = noise(least.epsilon)
    assert worst(shapes(Tie.LEAST_RECENT, 3), least.epsilon, least.keeps, z, z).low <= least.delta
    assert worst(shapes(Tie.MOST_RECENT, 3), least.epsilon, least.keeps, z, z).low > least.delta


def test_other_tie_rules_break_the_promise() -> None:
    """A summary that evicts the smallest label at the minimum leaves neighbours that the offset does not cover."""

    class EvictSmallestLabel(SpaceSaving[int]):
        def _victim(self) -> int:
            return min(label for label, count in self._count.items() if count == self.minimum)

    stream, at = (3, 4, 2, 1, 0), 1  # two labels on either side are isolated: tests/test_theorems.py
    states = []
    for items in (stream, stream[:at] + stream[at + 1 :]):
        summary = EvictSmallestLabel(3)
        for x in items:
            summary.update(x)
        states.append(State(summary.counters(), 3))
    kinds = frozenset([Shape.of(states[0], states[1])])
    mechanism = without_slack(EPSILON, DELTA)
    z = noise(mechanism.epsilon)
    assert worst(kinds, mechanism.epsilon, mechanism.keeps, z, z).low > mechanism.delta


@pytest.mark.parametrize("tie", Tie)
def test_all_cases_of_theorem_b_are_among_the_shapes(tie: Tie) -> None:
    """The shapes of three counters are those that the proof names: nothing isolated, one per side, or two."""
    counts = {(s.minimum, s.only_first, s.only_second, bool(s.common)) for s in shapes(tie, 3)}
    one_each = {
        ((0, 0), (), (), True),  # one common label is one higher
        ((0, 0), (1,), (0,), False),
        ((0, 0), (0,), (0,), True),
        ((1, 0), (), (), True),  # the minimum, and the common label that sits at it
        ((1, 0), (1,), (0,), False),
    }
    free_slots = {((0, 0), (1,), (), False), ((1, 0), (1,), (), False)}  # X tracks one label more, X' has a free slot
    two_each = {((0, 0), (0, 1), (0, 0), False)}
    assert counts == one_each | free_slots | (two_each if tie is Tie.MOST_RECENT else set())


def test_a_common_label_with_equal_counts_changes_nothing() -> None:
    """Summing over its outputs as well gives the same divergence: the shortcut of this file is sound."""
    mechanism = StableThreshold.calibrate(epsilon=3.0, delta=1e-2)
    z = noise(mechanism.epsilon, "1e-9")
    factor = Decimal(3).exp()
    for shape in (Shape((0, 0), (1,), (0,)), Shape((1, 0), (), (), ((1, 0),)), Shape((0, 0), (), (), ((4, 3),))):
        for height in (0, 2, 4):
            more = replace(shape, common=(*shape.common, (height, height)))
            plain = divergence(shape, factor, mechanism.keeps, z, z)
            full = divergence(more, factor, mechanism.keeps, z, z)
            assert full.low <= plain.high
            assert plain.low <= full.high
            assert full.high - full.low < mechanism.delta / 1000
