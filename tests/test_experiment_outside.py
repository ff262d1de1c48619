"""The outside reference sees what is equal and what is not, on streams small enough to count by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from experiments import outside
from experiments.methods.exact import counted
from experiments.methods.metrics import Quality
from experiments.outside import Bounds, Check, check, duckdb_counts
from experiments.streams.stream import Stream

TEXT = ["b"] * 5 + ["a"] * 3 + ["é", ""]
FACTS = {"date": "2024-01-02", "commit": "abc", "packages": "one 1, two 2", "Python": "3"}


def drawn(kind: str) -> Stream:
    """Return 30,000 items over up to 5,000 labels: more than fit, and some heavy."""
    ranks = np.random.default_rng(7).zipf(1.3, 30_000) % 5_000
    return Stream("drawn", pa.array(ranks if kind == "int64" else [f"label {rank}" for rank in ranks]), "drawn")


@pytest.mark.parametrize("items", [pa.array(TEXT), pa.array([3, -(2**63), 3, 2**63 - 1]), pa.array([], pa.int64())])
def test_duckdb_counts_as_we_do(items: pa.Array) -> None:
    ours, theirs = counted(items), duckdb_counts(items)
    assert ours.labels.equals(theirs.labels)
    assert ours.counts.tolist() == theirs.counts.tolist()
    assert outside.differing(ours, theirs) == 0


def test_counts_that_differ_are_counted() -> None:
    """Of b there is another count; c is missing and d is new."""
    ours = counted(pa.array(["a", "b", "b", "c"]))
    assert outside.differing(ours, counted(pa.array(["a", "b", "c"]))) == 1
    theirs = counted(pa.array(["a", "b", "d"]))
    assert outside.differing(ours, theirs) == 3


@pytest.mark.parametrize("kind", ["int64", "string"])
def test_every_summary_keeps_its_bounds_on_a_stream_that_does_not_fit(kind: str) -> None:
    found = check(drawn(kind), ks=[50])
    assert found.holds
    assert found.length == 30_000
    for row in found.reported:
        assert row.counters == 192  # 0.75 * 2^8: the smallest of at least 2 * 50
        assert row.counters < found.distinct
        assert row.quality.recall is not None
        assert row.quality.heavy > 0
        if row.summary != "dptop.MisraGries":  # estimates that are never too low, and 2k counters
            assert row.quality.recall == 1.0


def test_a_stream_that_fits_is_exact_everywhere() -> None:
    """Of ten items b and a are heavy for k = 4; nothing is estimated."""
    found = check(Stream("text", pa.array(TEXT), "made"), ks=[4])
    assert [row.quality for row in found.reported] == [Quality(2, 2, 1.0, 1.0, 0.0, 0.0)] * 3
    assert (found.length, found.distinct, found.differing) == (10, 4, 0)


def test_bounds_that_do_not_hold_and_counts_that_differ_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A summary that is sure of a wrong count, and a database that drops a label."""
    monkeypatch.setitem(
        outside.SUMMARIES, "wrong", lambda items, counters: {"b": Bounds(6, 6, 6), "a": Bounds(3, 3, 3)}
    )
    found = check(Stream("text", pa.array(TEXT), "made"), ks=[4])
    assert [row.outside_bounds for row in found.reported] == [0, 0, 0, 1]
    assert not found.holds
    monkeypatch.undo()
    monkeypatch.setattr(outside, "duckdb_counts", lambda items: counted(items.slice(5)))
    found = check(Stream("text", pa.array(TEXT), "made"), ks=[4])
    assert found.differing == 1
    assert not found.holds
    assert "| 1 differ |" in outside.page([found], FACTS)


def test_the_page_has_a_row_for_each_stream_and_each_summary() -> None:
    reported = [outside.Reported(4, "ours", 12, Quality(3, 2, 2 / 3, None, 0.0125, 1234.56), 0)]
    text = outside.page([Check("words", 1000, 10, 0, reported)], FACTS)
    assert "2024-01-02, abc: one 1, two 2; Python 3." in text
    assert "| words | 1,000 | 10 | all equal |" in text
    assert "| words | 4 | 3 | ours | 12 | 2 | 0.667 | - | 1.25% | 1,234.6 | hold |" in text
