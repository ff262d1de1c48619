"""No item is released twice by merging, and no half-counted batch at all, whenever threads and signals come between."""

from __future__ import annotations

import copy
import threading
from typing import Any

import pytest

import dptop
from dptop import _native
from dptop.envelope.binomial import majority
from dptop.ledger import Charge, LedgerRecord
from foreign_oracles import Exact

ASK: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-6}


def parts(items: int = 1000) -> tuple[dptop.CountMin, dptop.CountMin]:
    whole = dptop.CountMin(64, 3)
    other = whole.empty_copy()
    other.extend([1] * items)
    return whole, other


def count(sketch: dptop.CountMin) -> int:
    return dptop.release(sketch, **ASK, labels=[1])[0].count


class Between:
    """A native sketch that calls something before or after its cells are merged."""

    def __init__(self, native: _native.Sketch, before: Any = None, after: Any = None) -> None:
        self._native, self._before, self._after = native, before, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)

    def merge(self, other: _native.Sketch) -> None:
        if self._before:
            self._before()
        self._native.merge(other)
        if self._after:
            self._after()


@pytest.mark.parametrize("when", ["before", "after"])
def test_neither_is_released_while_they_merge(when: str) -> None:
    """Also by another thread: what is released is charged to both, or to none."""
    whole, other = parts()
    refused: list[Exception] = []

    def releases() -> None:
        for sketch in (whole, other):
            with pytest.raises(dptop.SourceError, match="being read") as error:
                count(sketch)
            refused.append(error.value)

    whole._sketch = Between(whole._sketch, **{when: releases})  # type: ignore[assignment]
    whole.merge(other)
    assert len(refused) == 2
    assert count(whole) > 900
    with pytest.raises(dptop.BudgetExhausted):
        count(other)


def test_what_was_released_of_a_part_counts_for_the_whole() -> None:
    """The second release would be of the same items."""
    whole, other = parts()
    count(other)
    whole.merge(other)
    with pytest.raises(dptop.BudgetExhausted):
        count(whole)


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError, MemoryError, dptop.IncompatibleSummaries])
@pytest.mark.parametrize("released", [False, True])
def test_an_interruption_while_they_merge_closes_both(error: type[BaseException], released: bool) -> None:
    """Ctrl-C, or what a signal's handler raises, as the cells have been merged: neither is released or merged again."""
    whole, other = parts()
    if released:
        count(other)

    def interrupt() -> None:
        raise error

    whole._sketch = Between(whole._sketch, after=interrupt)  # type: ignore[assignment]
    with pytest.raises(error):
        whole.merge(other)
    for sketch in (whole, other, copy.copy(whole), copy.copy(other)):
        with pytest.raises((dptop.SourceError, dptop.BudgetExhausted)):
            count(sketch)
    with pytest.raises(dptop.IncompatibleSummaries):
        whole.merge(other)
    assert whole.estimate(1) == 1000


def test_a_part_is_merged_once_by_whichever_thread() -> None:
    """Into two sketches or into one twice: its items would count twice."""
    whole, other = parts()
    third = whole.empty_copy()
    refused = []

    def again() -> None:
        for into in (third, whole):
            with pytest.raises(dptop.IncompatibleSummaries) as error:
                into.merge(other)
            refused.append(error.value)

    whole._sketch = Between(whole._sketch, before=again)  # type: ignore[assignment]
    whole.merge(other)
    assert len(refused) == 2
    assert whole.estimate(1) == 1000
    assert third.estimate(1) == 0


@pytest.mark.parametrize("into", ["whole", "other"])
def test_items_counted_while_they_merge_make_both_unreleasable(into: str) -> None:
    """They would be cut at a position of the stream, which a neighbour has elsewhere."""
    whole, other = parts()
    target = {"whole": whole, "other": other}[into]
    whole._sketch = Between(whole._sketch, before=lambda: target.extend([2, 3]))  # type: ignore[assignment]
    with pytest.raises(dptop.SourceError, match="counted meanwhile"):
        whole.merge(other)
    for sketch in (whole, other):
        with pytest.raises(dptop.SourceError, match="being read, or was cut short"):
            count(sketch)


def test_a_copy_is_no_other_part() -> None:
    """Nothing is closed by the refusal; nor is it where keys differ."""
    whole, other = parts()
    with pytest.raises(dptop.IncompatibleSummaries, match="copy of itself"):
        other.merge(copy.copy(other))
    foreign = dptop.CountMin(64, 3)
    with pytest.raises(dptop.IncompatibleSummaries):
        other.merge(foreign)
    foreign.extend([1] * 1000)
    assert count(foreign) > 900  # it was given back
    whole.merge(other)
    assert count(whole) > 900


def test_parts_that_were_released_with_a_length_do_not_merge() -> None:
    """By merging into empty sketches, one length after the other could be tried on one stream."""
    budget = dptop.Budget(16.0, 0.1)
    whole = dptop.CountMin(64, 3, budget=budget)
    other = whole.empty_copy()
    other.extend([1] * 900)
    dptop.release(other, **ASK, labels=[1], length=1000)
    with pytest.raises(dptop.IncompatibleSummaries, match="declared length"):
        whole.merge(other)
    assert dptop.release(other, **ASK, labels=[1], length=1000)[0].count > 700


def test_a_release_that_is_being_charged_is_no_gap() -> None:
    """Neither for a merge nor for handing noise over: a signal's handler may ask for both in the middle of a charge."""
    whole, other = parts()
    noisy = dptop.CountMin(64, 3).with_noise(epsilon=1.0)
    for ledger in (other._ledger, noisy._ledger):
        ledger._charge = Charge()
    with pytest.raises(dptop.IncompatibleSummaries):
        whole.merge(other)
    with pytest.raises(dptop.InvalidParameter, match="hide one stream"):
        dptop.Tracked(noisy, 10)


def test_a_length_declared_between_check_and_claim_is_seen() -> None:
    """By a release of a copy, in another thread."""
    _, other = parts()
    other._ledger.length = 1000
    assert other._ledger.claim() is None
    assert not other._ledger.closed


def test_what_a_saved_form_closed_is_not_given_back() -> None:
    _, other = parts()
    assert other._ledger.claim() is not None
    other._ledger.unite(LedgerRecord(closed=True))
    other._ledger.give_back()
    assert other._ledger.closed


def test_a_half_counted_batch_is_not_released() -> None:
    """A release that began before a batch and ends after it may hold its labels and not its cells."""
    summary = dptop.Tracked(dptop.CountMin(4096, 4), capacity=50)
    summary.extend(["a"] * 1000)
    go, counted, copied, done = (threading.Event() for _ in range(4))

    class Slow:
        def __init__(self, native: _native.Sketch) -> None:
            self._native = native

        def __getattr__(self, name: str) -> Any:
            return getattr(self._native, name)

        def extend(self, *arguments: Any) -> None:
            counted.set()
            copied.wait(5)
            self._native.extend(*arguments)

        def noisy(self, *arguments: Any) -> _native.Sketch:
            noisy = self._native.noisy(*arguments)
            copied.set()
            done.wait(5)
            return noisy

    summary._sketch = Slow(summary._cells)  # type: ignore[assignment]

    def extend() -> None:
        go.wait(5)
        summary.extend(["b"] * 5000)
        done.set()

    thread = threading.Thread(target=extend)
    thread.start()
    charge = summary._ledger.charge

    def charge_and_let_go(*arguments: Any) -> None:
        charge(*arguments)
        go.set()
        counted.wait(5)

    summary._ledger.charge = charge_and_let_go  # type: ignore[method-assign, assignment]
    with pytest.raises(dptop.SourceError, match="counted meanwhile"):
        dptop.release(summary, **ASK)
    thread.join()


def test_a_deep_sketch_is_released() -> None:
    """Beyond the rows whose binomial coefficients are floats."""
    sketch = dptop.CountSketch(20, 1031)
    sketch.extend([1] * 1000)
    assert dptop.release(sketch, **ASK, labels=[1], length=10_000)[0].low <= 1000
    assert majority(1023, 0.2) > 1.2e-101  # 1.2e-101 by sums of 60 digits
    assert majority(1031, 0.4) == pytest.approx(majority(1023, 0.4), rel=0.5)
    assert majority(65_535, 0.499) < 0.5


def test_nothing_is_spent_by_an_oracle_that_states_too_much() -> None:
    """Whether a length is declared or not."""
    for candidates in ("space-saving", "estimates"):
        summary = dptop.Tracked(Exact(), 10, candidates)
        summary.extend(["a"] * 100)
        with pytest.raises(dptop.InvalidParameter, match=r"must keep|must leave"):
            dptop.release(summary, epsilon=2.0**-19, delta=1e-6)
        assert not summary._ledger.entries


def test_no_labels_are_a_normal_result() -> None:
    for simultaneous in (True, False):
        sketch = dptop.CountMin(64, 3)
        sketch.extend([1] * 10)
        asked = dptop.release(sketch, **ASK, labels=[], length=100, simultaneous=simultaneous)
        assert len(asked) == 0


def test_a_stream_of_the_greatest_length_is_released() -> None:
    """Its noisy length, lifted, is beyond all lengths."""
    summary = dptop.Tracked(dptop.CountMin(64, 3), 10)
    summary.update(5, 2**63 - 1)
    dptop.release(summary, **ASK, mechanism="envelope")


def test_a_count_below_zero_is_within_its_interval() -> None:
    """CountSketch takes items back below zero."""
    sketch = dptop.CountSketch(64, 5)
    sketch.extend([1, 2], weights=[-1000, 500])
    rows = {row.item: row for row in dptop.release(sketch, **ASK, labels=[1, 2, 3], length=2000)}
    assert rows[1].low <= rows[1].count <= rows[1].high
    assert rows[1].low <= -1000 <= rows[1].high < 0
