"""Noise that is in the cells before the first item hides one stream, in one release."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest

import dptop
from foreign_oracles import Exact, NoisyAtRelease

if TYPE_CHECKING:
    from collections.abc import Callable

BUDGET = dptop.Budget(8.0, 0.1)
ASK: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}


def noisy_sketch(**parameters: Any) -> dptop.CountMin:
    return dptop.CountMin(64, 3, **parameters).with_noise(epsilon=0.25)


def test_a_budget_and_noise_before_the_first_item_exclude_each_other() -> None:
    """Of two releases, between which the stream grew, the difference would be exact; so there is one."""
    with pytest.raises(dptop.InvalidParameter, match=r"noise before the first item must .* budget"):
        noisy_sketch(budget=BUDGET)
    for oracle in (noisy_sketch(), Exact()):
        with pytest.raises(dptop.InvalidParameter, match=r"noise before the first item must .* budget"):
            dptop.Tracked(oracle, 10, budget=BUDGET)
    for fresh in (dptop.CountMin(64, 3), NoisyAtRelease()):
        summary = dptop.Tracked(fresh, 10, budget=BUDGET)
        for _ in range(2):
            dptop.release(summary, **ASK, length=10)


def test_the_difference_of_two_looks_at_one_noise_is_exact() -> None:
    """What the rule above prevents: the same noisy cells, before and after more items."""
    sketch = noisy_sketch()
    before = sketch.estimate("a")
    sketch.update("a", 5)
    assert sketch.estimate("a") == before + 5


def use(sketch: dptop.CountMin) -> object:
    return dptop.release(sketch, **ASK, labels=["a"])


def track(sketch: dptop.CountMin) -> object:
    return dptop.Tracked(sketch, 10)


@pytest.mark.parametrize("first", [use, track])
@pytest.mark.parametrize("second", [use, track])
def test_noise_is_handed_over_once(
    first: Callable[[dptop.CountMin], object], second: Callable[[dptop.CountMin], object]
) -> None:
    """A noisy sketch is released, or goes into one Tracked: never two streams with the same noise."""
    sketch = noisy_sketch()
    first(sketch)
    with pytest.raises((dptop.BudgetExhausted, dptop.InvalidParameter), match=r"one release|hide one|to Tracked"):
        second(sketch)


def test_a_sketch_that_was_handed_over_without_noise_goes_on() -> None:
    """Its cells are empty and stay so: it may be handed over again, and counted into."""
    sketch = dptop.CountMin(64, 3)
    one, other = dptop.Tracked(sketch, 10), dptop.Tracked(sketch, 10)
    one.extend(["a"] * 50)
    other.extend(["b"] * 50)
    sketch.extend(["c"] * 50)
    assert sketch.estimate(["a", "b", "c"])[2] == 50
    for summary in (one, other):
        assert dptop.release(summary, **ASK).epsilon == 1.0


def test_empty_copies_and_new_noise_have_none_of_the_old() -> None:
    """An empty copy of a noisy sketch has no noise; two noisy sketches with the same keys have noise of their own."""
    base = dptop.CountMin(64, 3)
    one, other = base.with_noise(epsilon=0.25), base.with_noise(epsilon=0.25)
    assert not any(map(any, one.empty_copy()._sketch.cells()))
    assert one.empty_copy().noise is None
    assert one._sketch.cells() != other._sketch.cells()  # 192 cells of scale 12: equal once in 10^200
    assert one._sketch.keys() == other._sketch.keys() == base._sketch.keys()
    dptop.release(one, **ASK, labels=["a"])
    dptop.release(other, **ASK, labels=["a"])  # another stream, another noise, another ledger


def test_a_constructor_that_fails_takes_nothing_over() -> None:
    """A noisy sketch is free again if what it was handed to was refused."""
    sketch = noisy_sketch()
    for refused in ({"capacity": 0}, {"capacity": 10, "budget": 3}, {"capacity": 10, "candidates": "all"}):
        with pytest.raises(dptop.InvalidParameter):
            dptop.Tracked(sketch, **refused)
    dptop.Tracked(sketch, 10)


@pytest.mark.parametrize("twin_of", [copy.copy, lambda sketch: pickle.loads(pickle.dumps(sketch))])
def test_copies_of_a_noisy_sketch_are_one_noise(twin_of: Callable[[dptop.CountMin], dptop.CountMin]) -> None:
    """They have the same draws in their cells, so that one of them is released or handed over, and no other."""
    sketch = noisy_sketch()
    twin = twin_of(sketch)
    assert twin._sketch.cells() == sketch._sketch.cells()
    sketch.extend(["a"] * 5)
    use(sketch)
    with pytest.raises(dptop.BudgetExhausted):
        use(twin)
    with pytest.raises(dptop.InvalidParameter):
        track(twin)
    other = noisy_sketch()
    twin = twin_of(other)
    track(other)
    with pytest.raises(dptop.BudgetExhausted):
        use(twin)
    with pytest.raises(dptop.InvalidParameter):
        track(twin)
