"""Theorems A and B of docs/privacy.md section 2: how far two summaries of neighbouring streams can be apart.

X is a stream, X' is X without one item: all small streams (tests/neighbours.py), then random and adversarial ones with
larger tables.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import pytest

import dptop
from dptop.reference.space_saving import SpaceSaving
from dptop.tie import Tie
from neighbours import State, isolated, neighbours, run_reference

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from neighbours import Implementation, Stream


def run_native(stream: Stream, capacity: int, tie: Tie) -> State:
    summary = dptop.SpaceSaving(capacity, tie=tie.value)
    summary.extend(list(stream))
    return State({item: count for item, count in summary.private_counters() if isinstance(item, int)}, capacity)


class EvictSmallestLabel(SpaceSaving[int]):
    """A broken copy: ties in the order of the labels, as an ordered or hashed table would break them."""

    def _victim(self) -> int:
        return min(label for label, count in self._count.items() if count == self.minimum)


class EvictOldestCounter(SpaceSaving[int]):
    """A broken copy: ties by the time the counter was taken, not by the label's last occurrence."""

    def __init__(self, capacity: int, tie: str | Tie = Tie.LEAST_RECENT) -> None:
        super().__init__(capacity, tie)
        self._taken: dict[int, int] = {}

    def _occurrence(self, x: int) -> None:
        if x not in self._count:
            self._taken[x] = self.length
        super()._occurrence(x)

    def _victim(self) -> int:
        at_minimum = [label for label, count in self._count.items() if count == self.minimum]
        return min(at_minimum, key=lambda label: self._taken[label])


def breaks_theorem_a(long: State, short: State) -> bool:
    """Return whether neither case of Theorem A holds."""
    d, d_short = long.above_minimum(), short.above_minimum()
    if long.minimum == short.minimum:
        differences = {x: d.get(x, 0) - d_short.get(x, 0) for x in d.keys() | d_short.keys()}
        return sorted(v for v in differences.values() if v) != [1]
    if long.minimum == short.minimum + 1:
        settled = d.keys() | {x for x, c in short.counts.items() if c > short.minimum + 1}
        return any(long.counts.get(x, -1) != short.counts.get(x, -2) for x in settled)
    return True


def breaks_theorem_b(long: State, short: State, per_side: int) -> bool:
    """Return whether the isolated labels are too many, too high, or higher than their own minimum without leave."""
    only_long, only_short = isolated(long, short)
    ceiling = min(long.minimum, short.minimum) + 1
    return (
        max(len(only_long), len(only_short)) > per_side
        or any(c > ceiling for c in (*only_long.values(), *only_short.values()))
        or sum(c > long.minimum for c in only_long.values()) > 1
        or any(c > short.minimum for c in only_short.values())
    )


def breaks_common_counts(long: State, short: State) -> bool:
    """Return whether more than one label tracked by both differs, or by another amount than one item more in X."""
    differences = Counter(long.counts[x] - short.counts[x] for x in long.counts.keys() & short.counts.keys())
    del differences[0]
    return differences not in (Counter(), Counter({1: 1}))


def check(stream: Stream, long: State, short: State, tie: Tie) -> None:
    about = f"stream {stream}: {long} against {short}"
    assert not breaks_theorem_a(long, short), f"Theorem A fails, {about}"
    assert not breaks_theorem_b(long, short, tie.isolated_per_side), f"Theorem B fails, {about}"
    assert not breaks_common_counts(long, short), f"two counters or more differ, {about}"
    for state, length in ((long, len(stream)), (short, len(stream) - 1)):
        assert length == state.capacity * state.minimum + sum(state.above_minimum().values()), about


def breaks_proof_states(long: State, short: State, tie: Tie) -> str:
    """Return which fact of the proof of Theorem B fails, if one does; for full tables with counts in recency order."""
    m, m_short = long.minimum, short.minimum
    both = long.counts.keys() & short.counts.keys()
    equal = {x for x in both if long.counts[x] == short.counts[x]}
    only_long, only_short = map(set, isolated(long, short))
    if m == m_short + 1:  # state B
        (q,) = (x for x, c in short.counts.items() if c == m_short)
        settled = short.counts.keys() - {q}
        (p,) = long.counts.keys() - settled
        fine = settled <= equal and long.counts[p] == m
        return "" if fine else "state B"
    above = {x for x in long.counts if long.counts[x] - m != max(short.counts.get(x, 0) - m, 0)}
    (i,) = above
    floor = {x for x in equal if long.counts[x] == m}  # N
    spare, missing = only_long - {i}, only_short  # P, Q
    tracked_by_both = i in short.counts
    if any(long.counts[x] != m for x in spare) or any(short.counts[x] != m for x in missing):
        return "counts of P and Q"
    if len(missing) != len(spare) + (not tracked_by_both) or len(spare) > 1:
        return "sizes of P and Q"
    if tie is Tie.LEAST_RECENT and not tracked_by_both and spare:
        return "P in A3 under least recent"
    if [x for x in long.counts if x in floor] != [x for x in short.counts if x in floor]:
        return "Clocks"
    queue = [x for x in short.counts if x in floor | missing]  # the longest ago first
    first = queue[: len(missing)] if tie is Tie.LEAST_RECENT else queue[len(queue) - len(missing) :]
    if set(first) != missing:
        return "Queue"
    at_minimum = [x for x, c in short.counts.items() if c == m]
    if missing and i in at_minimum and at_minimum[-1] != i:
        return "Newest"
    return ""


IMPLEMENTATIONS = pytest.mark.parametrize(
    "run", [pytest.param(run_reference, id="reference"), pytest.param(run_native, id="native")]
)


@IMPLEMENTATIONS
@pytest.mark.parametrize("tie", Tie)
@pytest.mark.parametrize(("capacity", "longest"), [(1, 7), (2, 8), (3, 9), (4, 8)])
def test_theorems_on_all_streams(run: Implementation, tie: Tie, capacity: int, longest: int) -> None:
    """Theorems A and B hold on all streams of a few items, partly filled tables included."""
    checked = 0
    for stream, long, short in neighbours(run, capacity, tie, longest):
        check(stream, long, short, tie)
        checked += 1
    # Bell numbers (OEIS A000110) count the streams up to renaming; each has as many neighbours as items
    bell = [1, 2, 5, 15, 52, 203, 877, 4140, 21147][:longest]
    assert checked == sum((i + 1) * b for i, b in enumerate(bell))


@pytest.mark.parametrize("tie", Tie)
def test_the_proof_of_theorem_b_describes_every_pair(tie: Tie) -> None:
    """The states of the proof and its facts Queue, Newest and Clocks hold for all pairs of full tables."""
    generator = random.Random(f"proof {tie.value}")
    pairs = [(3, pair) for pair in neighbours(run_reference, 3, tie, 8)]
    pairs += [(4, pair) for pair in neighbours(run_reference, 4, tie, 8)]
    for capacity in (2, 4, 5, 6, 8):
        for make in MAKERS:
            stream = make(generator, capacity + 2, 60)
            long = run_reference(stream, capacity, tie)
            for at in range(len(stream)):
                short = run_reference(stream[:at] + stream[at + 1 :], capacity, tie)
                pairs.append((capacity, (stream, long, short)))
    full = [(stream, a, b) for _, (stream, a, b) in pairs if a.minimum and b.minimum]
    assert len(full) > 10_000
    for stream, long, short in full:
        assert not (fact := breaks_proof_states(long, short, tie)), f"{fact}, {stream}: {long} against {short}"
    other = Tie.MOST_RECENT if tie is Tie.LEAST_RECENT else Tie.LEAST_RECENT
    found = {breaks_proof_states(long, short, other) for _, long, short in full}
    assert "Queue" in found  # read with the other rule's facts, the same tables do not fit


def random_stream(generator: random.Random, labels: int, length: int) -> Stream:
    return tuple(generator.randrange(labels) for _ in range(length))


def skewed_stream(generator: random.Random, labels: int, length: int) -> Stream:
    return tuple(min(int(generator.paretovariate(0.7)), labels) for _ in range(length))


def rotating_stream(generator: random.Random, labels: int, length: int) -> Stream:
    """Ask for each label in turn, so that a full table evicts all the time; now and then repeat the last one."""
    turns = (i for i in range(length))
    return tuple(x for turn in turns for x in [turn % labels] * (1 + (generator.random() < 0.2)))[:length]


def bursts_of_new_labels(generator: random.Random, labels: int, length: int) -> Stream:
    """Level the table with rounds of equal counts, then send labels it has never seen, then return to the old ones."""
    out: list[int] = []
    fresh = labels
    while len(out) < length:
        out += generator.sample(range(labels), labels)
        for _ in range(generator.randrange(1, 4)):
            out += [fresh] * generator.randrange(1, 3)
            fresh += 1
    return tuple(out[:length])


MAKERS: Sequence[Callable[[random.Random, int, int], Stream]] = [
    random_stream,
    skewed_stream,
    rotating_stream,
    bursts_of_new_labels,
]


@IMPLEMENTATIONS
@pytest.mark.parametrize("tie", Tie)
@pytest.mark.parametrize("make", MAKERS)
def test_theorems_on_longer_streams(
    run: Implementation, tie: Tie, make: Callable[[random.Random, int, int], Stream]
) -> None:
    """Theorems A and B hold on random and adversarial streams with up to eight counters, for every removed item."""
    generator = random.Random(f"{make.__name__} {tie.value}")
    for capacity in range(2, 9):
        for labels in (capacity, capacity + 1, capacity + 2, 2 * capacity):
            for _ in range(3):
                stream = make(generator, labels, 40)
                long = run(stream, capacity, tie)
                for at in range(len(stream)):
                    check(stream, long, run(stream[:at] + stream[at + 1 :], capacity, tie), tie)


def most_isolated(run: Implementation, tie: Tie, capacity: int, longest: int) -> int:
    return max(max(map(len, isolated(a, b))) for _, a, b in neighbours(run, capacity, tie, longest))


@pytest.mark.parametrize(("tie", "most"), [(Tie.LEAST_RECENT, 1), (Tie.MOST_RECENT, 2)])
def test_theorem_b_is_tight(tie: Tie, most: int) -> None:
    """One isolated label per side occurs under least recent, two under most recent: neither bound can be lowered."""
    assert most_isolated(run_reference, tie, capacity=4, longest=8) == most


@pytest.mark.parametrize(
    ("kind", "capacity", "stream", "at"),
    [
        # the shortest that a random search over streams of up to 25 items found
        (EvictSmallestLabel, 3, (3, 4, 2, 1, 0), 1),
        (EvictOldestCounter, 4, (1, 3, 4, 2, 2, 5, 1, 4, 0, 3), 5),
    ],
)
def test_other_tie_rules_break_theorem_b(kind: type[SpaceSaving[int]], capacity: int, stream: Stream, at: int) -> None:
    """Ties broken by label or by age of the counter leave two isolated labels where least recent leaves one."""
    shorter = stream[:at] + stream[at + 1 :]
    broken = partial(run_reference, kind=kind, capacity=capacity, tie=Tie.LEAST_RECENT)
    assert breaks_theorem_b(broken(stream), broken(shorter), per_side=1)
    right = partial(run_reference, capacity=capacity, tie=Tie.LEAST_RECENT)
    assert not breaks_theorem_b(right(stream), right(shorter), per_side=1)


def test_theorem_a_needs_no_tie_rule() -> None:
    """Theorem A holds whichever label at the minimum is evicted."""
    run = partial(run_reference, kind=EvictSmallestLabel)
    assert not any(breaks_theorem_a(a, b) for _, a, b in neighbours(run, 3, Tie.LEAST_RECENT, 7))


@pytest.mark.parametrize("tie", Tie)
def test_applying_items_in_blocks_breaks_theorem_a(tie: Tie) -> None:
    """A summary that adds up every three items before it applies them is no SpaceSaving: the checks see it."""

    def run(stream: Stream, capacity: int, tie: Tie) -> State:
        in_blocks = [x for at in range(0, len(stream), 3) for x in sorted(stream[at : at + 3])]
        return run_reference(tuple(in_blocks), capacity, tie)

    assert any(breaks_theorem_a(a, b) for _, a, b in neighbours(run, 2, tie, 7))


@pytest.mark.parametrize("tie", Tie)
def test_a_minimum_of_a_partly_filled_table_that_is_not_zero_breaks_theorem_a(tie: Tie) -> None:
    """Taking the smallest count for the minimum while a slot is free is a mistake that the checks see."""

    class SmallestCount(State):
        @property
        def minimum(self) -> int:
            return min(self.counts.values(), default=0)

    def run(stream: Stream, capacity: int, tie: Tie) -> State:
        return SmallestCount(run_reference(stream, capacity, tie).counts, capacity)

    assert any(breaks_theorem_a(a, b) for _, a, b in neighbours(run, 3, tie, 6))
