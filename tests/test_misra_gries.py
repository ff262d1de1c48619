"""Misra-Gries with its zero counters kept: neighbouring streams, and what it has in common with SpaceSaving."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptop.reference.misra_gries import MisraGries
from dptop.reference.space_saving import SpaceSaving
from dptop.tie import Tie
from native_misra_gries import run_native
from neighbours import streams

if TYPE_CHECKING:
    from collections.abc import Callable

    from neighbours import Stream

State = dict[int, int]


class DropsZeros(MisraGries[int]):
    """A broken copy, as in textbooks: a counter that has come to zero is given up."""

    def _decrement(self) -> None:
        super()._decrement()
        self._count = {label: count for label, count in self._count.items() if count > 0}


class EvictsInTurn(MisraGries[int]):
    """A broken copy: the zero that is replaced depends on the position in the stream, not on its label."""

    def _occurrence(self, x: int) -> None:
        zeros = [label for label, count in self._count.items() if count == 0]
        if x not in self._count and len(self._count) == self.capacity and zeros:
            self.length += 1
            del self._count[sorted(zeros)[self.length % len(zeros)]]
            self._count[x] = 1
        else:
            super()._occurrence(x)


def run_reference(stream: Stream, capacity: int, kind: type[MisraGries[int]] = MisraGries[int]) -> State:
    summary = kind(capacity)
    for label in stream:
        summary.update(label)
    return summary.counters()


def breaks_the_lemma(long: State, short: State, capacity: int) -> bool:
    """Return whether two summaries of neighbours are further apart than Lebeda and Tětek's lemma allows.

    At most two labels of either are not in the other, and their counters are at most 1. And, a label that is not
    tracked counting 0: either exactly one label counts one more in the longer stream, all others the same; or all
    labels of the shorter one count one more there, and all others count 0 in the longer one.
    """
    common = long.keys() & short.keys()
    apart = [count for state in (long, short) for x, count in state.items() if x not in common]
    labels = long.keys() | short.keys()
    excess = {x: long.get(x, 0) - short.get(x, 0) for x in labels}
    one_more = sorted(excess.values(), reverse=True)[:1] == [1] and sum(abs(e) for e in excess.values()) == 1
    all_less = len(short) == capacity and all(excess[x] == -1 if x in short else long.get(x, 0) == 0 for x in labels)
    many = max(len(state.keys() - common) for state in (long, short)) > 2
    return many or max(apart, default=0) > 1 or not (one_more or all_less)


@pytest.mark.parametrize("run", [run_reference, run_native])
@pytest.mark.parametrize(("capacity", "longest"), [(1, 7), (2, 8), (3, 8), (4, 8)])
def test_neighbours_are_as_close_as_the_lemma_says(
    run: Callable[[Stream, int], State], capacity: int, longest: int
) -> None:
    """All streams over small alphabets, every position of the item that the shorter one lacks.

    The replaced label depends on the order of labels: so the streams are taken under several renamings.
    """
    for stream in streams(longest):
        labels = max(stream) + 1
        for renamed in ({x: x for x in range(labels)}, {x: labels - 1 - x for x in range(labels)}):
            names = tuple(renamed[x] for x in stream)
            long = run(names, capacity)
            for at in range(len(names)):
                short = run(names[:at] + names[at + 1 :], capacity)
                assert not breaks_the_lemma(long, short, capacity), (names, at)


@pytest.mark.parametrize("kind", [DropsZeros, EvictsInTurn])
def test_broken_copies_break_the_lemma(kind: type[MisraGries[int]]) -> None:
    """The textbook's variant, and one that replaces another zero."""
    found = 0
    for capacity in (2, 3, 4):
        for stream in streams(8):
            long = run_reference(stream, capacity, kind)
            found += any(
                breaks_the_lemma(long, run_reference(stream[:at] + stream[at + 1 :], capacity, kind), capacity)
                for at in range(len(stream))
            )
    assert found > 0


@given(
    stream=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=80),
    capacity=st.integers(1, 6),
    tie=st.sampled_from(Tie),
)
@settings(deadline=None, derandomize=True)
def test_it_is_space_saving_less_its_minimum(stream: list[tuple[int, int]], capacity: int, tie: Tie) -> None:
    """With one counter more: C - m of SpaceSaving, its zeros left out, are the counters of Misra-Gries."""
    one, other = MisraGries[int](capacity), SpaceSaving[int](capacity + 1, tie)
    true = Counter[int]()
    for label, weight in stream:
        one.update(label, weight)
        other.update(label, weight)
        true[label] += weight
    above = {x: c - other.minimum for x, c in other.counters().items() if c > other.minimum}
    assert {x: c for x, c in one.counters().items() if c > 0} == above
    for x, f in true.items():
        assert f - one.length / (capacity + 1) <= one.counters().get(x, 0) <= f
