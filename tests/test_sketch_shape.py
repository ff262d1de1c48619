"""A shape from a budget of memory has the threshold that it was chosen for at its release; no other has a smaller one.

Releases are without noise, so that counts are exact; a bound on the squares comes to what was expected.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import dptop
from dptop.envelope import squares_failure
from dptop.envelope.squares import MOST_FOR_SQUARES
from dptop.release import sketch as sketch_release
from dptop.sketch_shape import best_shape

if TYPE_CHECKING:
    from conftest import Drawn
    from dptop.oracle import LinearSketch

K = 500


class Case(NamedTuple):
    kind: type[LinearSketch]
    candidates: str
    delta: float
    expected_squares: int | None = None
    noise: str = "laplace"
    length: int = 100_000
    memory: int = 400_000


MIN, SKETCH = dptop.CountMin, dptop.CountSketch
SQUARES = 10**9
CASES = [
    Case(MIN, "space-saving", 1e-9),
    Case(MIN, "estimates", 1e-6),
    Case(MIN, "space-saving", 1e-6, noise="gaussian", memory=40_000),
    Case(SKETCH, "space-saving", 1e-9),
    Case(SKETCH, "space-saving", 1e-9, SQUARES),
    Case(SKETCH, "space-saving", 3.45e-11, SQUARES),  # of 51 rows a bound on the squares takes 0.97 of delta,
    Case(SKETCH, "space-saving", 3.7e-11, SQUARES),  # and 0.91 of this
    Case(SKETCH, "space-saving", 2e-16, 10**4, length=1000),  # of all rows it takes more than delta
    Case(SKETCH, "estimates", 1e-6),
    Case(SKETCH, "estimates", 6.3e-7, SQUARES),  # of 31 rows 0.97 of beta
]


def released(case: Case, width: int, depth: int) -> int | None:
    """Return the threshold of a release of the shape, or None if nothing could be released."""
    summary = dptop.Tracked(case.kind(width, depth), K, case.candidates)
    summary.extend(["a"], [case.length])
    result = dptop.release(
        summary, epsilon=1.0, delta=case.delta, mechanism="envelope", noise=case.noise, length=case.length
    )
    threshold: int | None = result.parameters.get("threshold")
    return threshold


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)).replace("<class 'dptop.oracle.", ""))
def test_the_release_of_a_shape_has_the_threshold_it_was_chosen_for(
    case: Case, no_noise: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same noise, the declared length and the mechanism "envelope"; other depths have none below it."""
    asked: dict[str, Any] = {
        "capacity": K,
        "length": case.length,
        "epsilon": 1.0,
        "delta": case.delta,
        "candidates": case.candidates,
        "noise": case.noise,
        "expected_squares": case.expected_squares,
    }
    squares = case.length**2 if case.expected_squares is None else case.expected_squares
    monkeypatch.setattr(sketch_release, "squares_bound", lambda *_, **__: squares)
    found = best_shape(case.kind._rule, case.memory, **asked)
    sketch = case.kind.for_memory(case.memory, **asked)
    assert (sketch.width, sketch.depth) == (found.width, found.depth)
    claimed = found.claim.threshold(case.length, K)
    assert released(case, sketch.width, sketch.depth) == claimed
    assert no_noise.cells
    step = 2 if case.kind is SKETCH else 1
    some = (1, 5, 11, 31, 39, 51, 61, 79)  # each takes a tenth of a second
    near = [sketch.depth + step * i for i in (-2, -1, 0, 1, 2)]
    depths = {depth for depth in (*near, *some) if 1 <= depth <= (79 if case.kind is SKETCH else 40)}
    if case.noise == "gaussian":  # its variances take longer to find
        depths = set(near[1:4])
    others = [released(case, case.memory // 8 // depth, depth) for depth in depths]
    assert min(threshold for threshold in others if threshold is not None) == claimed


def test_cases_are_on_both_sides_of_what_a_bound_may_take() -> None:
    """The chances that the comments above speak of."""
    beta = 6.3e-7 / (1 + 2.718281828459045)
    assert MOST_FOR_SQUARES < squares_failure(51) / 3.45e-11 < 1
    assert MOST_FOR_SQUARES < squares_failure(31) / beta < 1
    assert 0.5 < squares_failure(51) / 3.7e-11 < MOST_FOR_SQUARES
    assert squares_failure(79) > 2e-16


def test_what_is_asked_for_is_checked() -> None:
    """Squares are for a CountSketch, and within length^2; everything else is checked as where it is released."""
    ask: dict[str, Any] = {"capacity": 100, "length": 1000, "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(dptop.InvalidParameter, match="expected_squares must be left out but for a CountSketch"):
        dptop.CountMin.for_memory(10_000, **ask, expected_squares=5)
    make = partial(dptop.CountSketch.for_memory, 10_000)
    for bad in (
        {"expected_squares": -1},
        {"expected_squares": 10**6 + 1},
        {"expected_squares": 1.5},
        {"length": 0},
        {"capacity": 2**31 + 1},
        {"candidates": "all"},
        {"noise": "normal"},
        {"epsilon": 0.0},
        {"delta": 1.0},
    ):
        with pytest.raises(dptop.InvalidParameter, match=f"^{next(iter(bad))} must"):
            make(**(ask | bad))
    with pytest.raises(dptop.InvalidParameter, match="memory must be enough for a threshold below the length"):
        dptop.CountMin.for_memory(80, **ask)
