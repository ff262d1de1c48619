"""The reference SpaceSaving does what the paper's prose and docs/privacy.md section 2 say, step by step."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptop.errors import InvalidParameter
from dptop.reference.space_saving import SpaceSaving
from dptop.tie import Tie

LABELS = st.integers(0, 6)


def after(stream: str, capacity: int, tie: Tie) -> SpaceSaving[str]:
    summary: SpaceSaving[str] = SpaceSaving(capacity, tie)
    for label in stream:
        summary.update(label)
    return summary


@pytest.mark.parametrize(
    ("stream", "tie", "counters"),
    [
        # worked by hand from the prose of the paper's section 3.1.2, capacity 3
        ("abc", Tie.LEAST_RECENT, {"a": 1, "b": 1, "c": 1}),
        ("abcd", Tie.LEAST_RECENT, {"b": 1, "c": 1, "d": 2}),
        ("abcd", Tie.MOST_RECENT, {"a": 1, "b": 1, "d": 2}),
        ("abbcd", Tie.MOST_RECENT, {"a": 1, "b": 2, "d": 2}),
        ("abcda", Tie.LEAST_RECENT, {"c": 1, "d": 2, "a": 2}),
        ("abcda", Tie.MOST_RECENT, {"b": 1, "d": 2, "a": 2}),
        # occurrence refreshes: b is at the minimum with c and d, and evicted last of the three
        ("aabcdbe", Tie.LEAST_RECENT, {"d": 2, "b": 2, "e": 3}),
    ],
)
def test_worked_examples(stream: str, tie: Tie, counters: dict[str, int]) -> None:
    """Counts and who is evicted, under either rule."""
    assert after(stream, 3, tie).counters() == counters


def test_the_minimum_is_zero_while_a_slot_is_free() -> None:
    """The minimum m is the smallest counter only of a full table."""
    assert after("", 2, Tie.LEAST_RECENT).minimum == 0
    assert after("aaa", 2, Tie.LEAST_RECENT).minimum == 0
    assert after("aaab", 2, Tie.LEAST_RECENT).minimum == 1


def test_counters_come_in_order_of_last_occurrence() -> None:
    """The label that has not occurred for longest comes first, whatever its count."""
    assert list(after("abacbc", 3, Tie.LEAST_RECENT).counters()) == ["a", "b", "c"]
    assert list(after("abcab", 3, Tie.MOST_RECENT).counters()) == ["c", "a", "b"]


@given(items=st.lists(st.tuples(LABELS, st.integers(0, 4))), capacity=st.integers(1, 5), tie=st.sampled_from(Tie))
@settings(deadline=None, derandomize=True)
def test_a_weight_is_that_many_items_in_a_row(items: list[tuple[int, int]], capacity: int, tie: Tie) -> None:
    """Weight w equals w unit updates, and weight 0 neither counts nor refreshes."""
    weighted: SpaceSaving[int] = SpaceSaving(capacity, tie)
    units: SpaceSaving[int] = SpaceSaving(capacity, tie)
    for label, weight in items:
        weighted.update(label, weight)
        for _ in range(weight):
            units.update(label)
    assert list(weighted.counters().items()) == list(units.counters().items())
    assert weighted.length == units.length == sum(weight for _, weight in items)


@given(items=st.lists(LABELS, max_size=60), capacity=st.integers(1, 5), tie=st.sampled_from(Tie))
@settings(deadline=None, derandomize=True)
def test_counts_bound_the_true_counts(items: list[int], capacity: int, tie: Tie) -> None:
    """Bounds: f <= C <= f + m for tracked labels, f <= m for the others, and the counters add up to n."""
    summary: SpaceSaving[int] = SpaceSaving(capacity, tie)
    for label in items:
        summary.update(label)
    truth, counters, minimum = Counter(items), summary.counters(), summary.minimum
    for label, f in truth.items():
        if label in counters:
            assert f <= counters[label] <= f + minimum
        else:
            assert f <= minimum
    assert counters.keys() <= truth.keys()
    assert sum(counters.values()) == len(items) == summary.length
    assert minimum <= len(items) / capacity


def test_bad_parameters_are_refused() -> None:
    """Capacity below one, a negative weight and an unknown rule raise before anything is counted."""
    with pytest.raises(InvalidParameter, match="capacity"):
        SpaceSaving(0)
    with pytest.raises(InvalidParameter, match="tie"):
        SpaceSaving(1, "oldest")
    summary: SpaceSaving[str] = SpaceSaving(1)
    with pytest.raises(InvalidParameter, match="weight"):
        summary.update("a", -1)
    assert summary.length == 0
