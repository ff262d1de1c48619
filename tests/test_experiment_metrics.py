"""Recall, precision and errors of a release, against numbers worked out by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.methods.exact import counted
from experiments.methods.metrics import Quality, Truth, quality

ITEMS = ["b"] * 5 + ["a"] * 3 + ["c"] + ["long enough to be kept elsewhere"]
"""Ten items: for k = 2 a heavy label has 5, for k = 3 and 4 it has 4 and 3, for k = 10 one."""


@pytest.fixture
def truth() -> Truth:
    return Truth.of(pa.array(ITEMS))


def test_what_is_true(truth: Truth) -> None:
    assert (truth.length, truth.distinct) == (10, 4)
    assert truth.counts_of(["c", "b", "no such label", "zz", ITEMS[-1], ""]).tolist() == [1, 5, 0, 0, 1, 0]


@pytest.mark.parametrize(
    ("k", "heavy"), [(1, []), (2, ["b"]), (3, ["b"]), (4, ["a", "b"]), (9, ["a", "b"]), (10, sorted(set(ITEMS)))]
)
def test_a_label_is_heavy_from_n_over_k_items_on(truth: Truth, k: int, heavy: list[str]) -> None:
    """The bound itself counts: 5 of 10 items are heavy for k = 2; 3 are for k = 4 (2.5) but not for k = 3 (3.33)."""
    assert truth.heavy(k) == heavy
    assert truth.number_heavy(k) == len(heavy)


def test_whether_a_label_is_heavy_is_decided_in_integers() -> None:
    """With floats, 1 / 49 * 49 is below 1: a label with one item of 49 would pass or fail by rounding."""
    assert 1 / 49 * 49 < 1
    assert len(Truth.of(pa.array(range(49))).heavy(49)) == 49
    assert Truth.of(pa.array(range(50))).heavy(49) == []


def test_a_release_by_hand(truth: Truth) -> None:
    """Errors 1 of 5, 2 of 3 and 1 of 1; of the heavy labels a and b both are released, and c besides."""
    found = quality({"b": 4, "a": 5, "c": 2}, truth, 4)
    assert found._replace(relative_error=None) == Quality(2, 3, 1.0, 2 / 3, None, 4 / 3)
    assert found.relative_error == pytest.approx((1 / 5 + 2 / 3 + 1) / 3, rel=1e-15)


def test_a_heavy_label_that_is_missing_costs_recall_only(truth: Truth) -> None:
    assert quality({"a": 3}, truth, 4) == Quality(2, 1, 0.5, 1.0, 0.0, 0.0)


def test_what_is_not_defined_is_none(truth: Truth) -> None:
    """An empty release has no precision and no error; without heavy labels there is no recall."""
    assert quality({}, truth, 2) == Quality(1, 0, 0.0, None, None, None)
    assert quality({"a": 3}, truth, 1) == Quality(0, 1, None, 0.0, 0.0, 0.0)
    assert quality({"c": -1}, truth, None) == Quality(0, 1, None, None, 2.0, 2.0)
    assert quality({}, Truth.of(pa.array([], pa.int64())), 2) == Quality(0, 0, None, None, None, None)


def test_a_label_from_nowhere_is_refused(truth: Truth) -> None:
    """It has no relative error, and would mean that the truth is of another stream. The message does not show it."""
    with pytest.raises(ValueError, match="1 do not") as error:
        quality({"b": 5, "secret": 1}, truth, 4)
    assert "secret" not in str(error.value)


def test_nulls_are_no_labels() -> None:
    with pytest.raises(ValueError, match="no nulls; got 1"):
        counted(pa.array(["a", None]))


LABELS: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2),
    "string": st.text(max_size=20) | st.sampled_from(["", "\0", "a", "a\0", "é", "\U0001f600", "\uffff"]),
}


@pytest.mark.parametrize("kind", LABELS)
@given(data=st.data())
@settings(deadline=None, derandomize=True)
def test_counts_are_those_of_the_standard_library(kind: str, data: st.DataObject) -> None:
    """Labels of any kind, in any order, are counted and found again, as `collections.Counter` has them."""
    items = data.draw(st.lists(LABELS[kind], min_size=1))
    asked = data.draw(st.lists(LABELS[kind] | st.sampled_from(items)))
    truth, expected = Truth.of(pa.array(items, type=pa.type_for_alias(kind))), Counter(items)
    counts = truth.counts
    assert dict(zip(counts.labels.to_pylist(), counts.counts.tolist(), strict=True)) == expected
    assert truth.counts_of(asked).tolist() == [expected[label] for label in asked]
