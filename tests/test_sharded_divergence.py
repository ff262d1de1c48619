"""The release of shards is private: the exact divergence of two shards of capacity 2, and of ways that are wrong.

Theorem 7 of docs/privacy.md section 17. `shard_divergence` has the sums; the comparison is that of the release.
"""

from __future__ import annotations

import math
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import test_exact_divergence as one_table
from dptop.mechanism import StableThreshold
from dptop.tie import Tie
from neighbours import State, run_reference
from shard_divergence import (
    NO_NOISE,
    SLACK,
    Counted,
    LocalParts,
    LocalSums,
    Release,
    Shape,
    Side,
    divergence,
    noise,
    shape_of,
    shapes,
    worst,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from neighbours import Stream

EPSILON, DELTA = 3.0, 0.007
"""A large epsilon, whose noise is short, and a delta that the offsets for it and for half of it nearly use up."""
FACTOR = math.exp(EPSILON)


def stable(epsilon: float = EPSILON, tie: Tie = Tie.LEAST_RECENT) -> StableThreshold:
    return StableThreshold.calibrate(epsilon=epsilon, delta=DELTA, tie=tie)


def local(kind: type[Release], first: Tie, second: Tie, **broken: Any) -> Release:
    """Return local sums, each shard by its own tie rule; a selection with the whole epsilon."""
    one, two = stable(tie=first), stable(tie=second)
    z = noise(one.epsilon)
    return kind((one.keeps, two.keeps), z, z, **broken)


def central(first: Tie, second: Tie, kind: type[Counted] = Counted) -> Counted:
    """Return central counts: half of epsilon each."""
    one, two = stable(EPSILON / 2, first), stable(EPSILON / 2, second)
    z = noise(one.epsilon)
    return kind((one.keeps, two.keeps), z, z, count=z)


TIES = [(Tie.LEAST_RECENT, Tie.LEAST_RECENT), (Tie.MOST_RECENT, Tie.MOST_RECENT), (Tie.MOST_RECENT, Tie.LEAST_RECENT)]


@pytest.mark.parametrize(("first", "second"), TIES)
@pytest.mark.parametrize("form", [partial(local, LocalParts), central])
def test_both_forms_keep_the_promise(form: Any, first: Tie, second: Tie) -> None:
    """At most delta at the total epsilon, on every shape, in both directions, even if each shard's v is published."""
    found = worst(form(first, second), shapes(first), FACTOR)
    assert found <= DELTA
    of_first = stable(EPSILON if form is not central else EPSILON / 2, first)
    assert found <= float(of_first.failure_probability) + SLACK
    if first is Tie.LEAST_RECENT:  # and there is no better delta: the sums miss nothing
        assert found >= float(of_first.failure_probability) - SLACK


def test_what_is_published_tells_less_than_the_parts() -> None:
    """Sums of noisy counters tell no more than the noisy counters, shape by shape."""
    parts, sums = (local(kind, Tie.LEAST_RECENT, Tie.LEAST_RECENT) for kind in (LocalParts, LocalSums))
    for shape in sorted(shapes(Tie.LEAST_RECENT, 3), key=repr):
        assert divergence(sums, shape, FACTOR) <= divergence(parts, shape, FACTOR) + SLACK


def test_without_common_labels_it_is_the_divergence_of_one_table() -> None:
    """What the second shard makes is independent: the sum in decimals over the first shard alone gives the same."""
    mechanism = stable()
    z = one_table.noise(mechanism.epsilon)
    release = local(LocalParts, Tie.LEAST_RECENT, Tie.LEAST_RECENT)
    cases = [
        (one_table.Shape((0, 0), (1,), (0,)), (((1, None), (None, None)), ((None, None), (0, None)))),
        (one_table.Shape((1, 0), (), (), ((1, 0),)), (((1, None), (0, None)),)),
        (one_table.Shape((0, 0), (), (), ((5, 4),)), (((5, None), (4, None)),)),
    ]
    for single, labels in cases:
        expected = one_table.divergence(single, Decimal(3).exp(), mechanism.keeps, z, z)
        found = divergence(release, Shape(single.minimum, 0, labels), FACTOR)
        assert float(expected.low) - SLACK <= found <= float(expected.high) + SLACK


# Ways that are wrong


class CountedEverywhere(Counted):
    """Broken: the counters of all shards that track a label, if one selected it."""

    def total(self, side: Side, v: Any, w: Any) -> int:
        return sum(c or 0 for c in side)


class SummedEverywhere(Release):
    """Broken: the noisy counters of all shards that track a label, if one selected it."""

    def passes(self, counter: int | None, shard: int, us: range) -> dict[Any, Any]:
        if counter is None:
            return {(0, False): np.ones(len(us))}
        return {
            (counter + z, passed): np.array([p * (self.keeps[shard](counter + z, u) is passed) for u in us])
            for z, p in self.selection.items()
            for passed in (True, False)
        }

    def published(self, side: Side, v: Any, w: Any) -> Iterator[tuple[Hashable, float]]:
        yield (v[0] + w[0] if v[1] or w[1] else None), 1.0


NEW_LABEL: tuple[Stream, Stream, Stream] = ((1,) * 12 + (2,) * 12 + (0,), (1,) * 12 + (2,) * 12, (0,) * 30)
"""A label that is new in the first shard, whose minimum is 12, and frequent in the second one."""


@pytest.mark.parametrize("tie", Tie)
def test_adding_up_all_shards_that_track_a_label_is_seen(tie: Tie) -> None:
    """Counters of shards that did not select a label tell whether it took the place of another one there."""
    shape = shape_of(*NEW_LABEL, tie)
    for wrong in (central(tie, tie, CountedEverywhere), local(SummedEverywhere, tie, tie)):
        assert worst(wrong, [shape], FACTOR) > 0.9
    for right in (central(tie, tie), local(LocalSums, tie, tie)):
        assert worst(right, [shape], FACTOR) <= DELTA


@pytest.mark.parametrize("tie", Tie)
def test_one_noise_for_the_minima_of_two_shards_is_seen(tie: Tie) -> None:
    """The difference of the two minima is then without noise."""
    assert worst(local(LocalParts, tie, tie, shared=True), shapes(tie, 3), FACTOR) > 0.99


@pytest.mark.parametrize("tie", Tie)
def test_an_epsilon_that_is_not_split_is_seen(tie: Tie) -> None:
    """Selection and counts read the same counters: with the whole epsilon for each, delta is exceeded."""
    whole = stable(tie=tie)
    z = noise(whole.epsilon)
    assert worst(Counted((whole.keeps, whole.keeps), z, z, count=z), shapes(tie, 3), FACTOR) > DELTA


@pytest.mark.parametrize("tie", Tie)
def test_selection_without_noise_is_seen(tie: Tie) -> None:
    """Noise on counts alone does not hide who was selected, nor the minima, whatever the threshold."""
    whole = stable(tie=tie)
    wrong = Counted((whole.keeps, whole.keeps), NO_NOISE, NO_NOISE, count=noise(whole.epsilon))
    assert worst(wrong, shapes(tie, 3), FACTOR) > 0.99
    hidden_minima = Counted((lambda v, _: v > 3,) * 2, NO_NOISE, noise(whole.epsilon), count=noise(whole.epsilon))
    assert worst(hidden_minima, [shape_of((0,) * 4, (0,) * 3, (), tie)], FACTOR) > 0.99


def merged(first: Stream, second: Stream, tie: Tie, *, add_minima: bool) -> State:
    """Return the summed counters as one table; what a shard does not track adds its minimum, or nothing."""
    states = [run_reference(stream, 2, tie) for stream in (first, second)]
    labels = {x for state in states for x in state.counts}
    sums = {x: sum(s.counts.get(x, s.minimum if add_minima else 0) for s in states) for x in labels}
    return State(sums, len(sums))


@pytest.mark.parametrize("tie", Tie)
@pytest.mark.parametrize("add_minima", [True, False])
def test_merged_tables_released_as_one_are_seen(tie: Tie, *, add_minima: bool) -> None:
    """The examples of section 17: one item changes counters and the minimum, or a counter by its whole height."""
    mechanism = stable(2.0, tie)
    z = one_table.noise(mechanism.epsilon)
    long, short, other = NEW_LABEL
    if add_minima:
        long, short, other = (2,) * 10 + (3,) * 8, (2,) * 10 + (3,) * 7, (0,) * 100 + (1,) * 10
    states = [merged(stream, other, tie, add_minima=add_minima) for stream in (long, short)]
    found = one_table.worst(frozenset([one_table.Shape.of(*states)]), mechanism.epsilon, mechanism.keeps, z, z)
    assert found.low > DELTA


def test_round_robin_is_not_private() -> None:
    """A stream cut by position: one item less, and each shard has what the other one had. The minima alone tell."""
    mechanism = stable()
    stream = tuple(x for i in range(1, 31) for x in (0, i))
    minima = [run_reference(s[0::2], 2, Tie.LEAST_RECENT).minimum for s in (stream, stream[1:])]
    assert minima == [0, 15]
    z = noise(mechanism.epsilon)
    chances = [[z.get(u - m, 0.0) for m in minima] for u in range(-40, 60)]
    assert sum(max(0, p - FACTOR * q) for p, q in chances) > 0.99
