"""Intervals of what sketches and tracked labels release hold the true counts as often as they say, in simulations."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

import dptop
from dptop.envelope import CountMinError, LaplaceCells
from dptop.mechanism import SketchNoise, StableThreshold
from dptop.release import sketch, tracked_envelope

if TYPE_CHECKING:
    from numpy.typing import NDArray

ITEMS = 20_000
LIMIT = 4.76
"""Standard errors that chance exceeds once in 10^6."""


class Case(NamedTuple):
    kind: type[dptop.CountMin] | type[dptop.CountSketch]
    shape: tuple[int, int]
    mechanism: str
    candidates: str = "space-saving"
    declared: bool = False
    simultaneous: bool = False
    first: bool = False
    runs: int = 200


MIN, SKETCH = dptop.CountMin, dptop.CountSketch
CASES = [
    Case(MIN, (64, 4), "public-labels"),
    Case(MIN, (64, 4), "public-labels", declared=True),
    Case(MIN, (256, 4), "public-labels", declared=True, simultaneous=True, first=True),
    Case(MIN, (2048, 4), "public-labels", runs=100),
    Case(SKETCH, (64, 9), "public-labels", declared=True, runs=100),
    Case(SKETCH, (512, 25), "public-labels", declared=True, simultaneous=True, runs=100),
    Case(MIN, (64, 4), "selected"),
    Case(MIN, (512, 4), "selected", declared=True),
    Case(MIN, (512, 4), "selected", declared=True, simultaneous=True),
    Case(SKETCH, (512, 25), "selected", declared=True, runs=100),
    Case(MIN, (2048, 6), "envelope", runs=100),
    Case(MIN, (2048, 6), "envelope", "estimates", declared=True, runs=100),
    Case(MIN, (2048, 6), "envelope", "estimates", first=True, runs=100),
    Case(SKETCH, (1024, 41), "envelope", declared=True, runs=60),
    Case(SKETCH, (1024, 41), "envelope", "estimates", declared=True, runs=60),
]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calibrate once: what is a pure function of its parameters."""
    monkeypatch.setattr(StableThreshold, "of", staticmethod(lru_cache(StableThreshold.of)))
    monkeypatch.setattr(SketchNoise, "laplace", staticmethod(lru_cache(SketchNoise.laplace)))
    monkeypatch.setattr(SketchNoise, "gaussian", staticmethod(lru_cache(SketchNoise.gaussian)))
    monkeypatch.setattr(SketchNoise, "cells", property(lru_cache(SketchNoise.cells.fget)))  # type: ignore[attr-defined]  # a property
    monkeypatch.setattr(sketch, "CountMinError", lru_cache(CountMinError))
    for name in ("fixed_labels", "noise_at_release", "noise_first"):
        monkeypatch.setattr(tracked_envelope, name, lru_cache(getattr(tracked_envelope, name)))


def stream_of(run: int) -> NDArray[np.int64]:
    """Return items of a few heavy labels, some in the middle, and many rare ones."""
    generator = np.random.default_rng(run)
    heavy = np.repeat(np.arange(8), 1000)
    middle = generator.integers(8, 40, 6000)
    rest = generator.integers(40, 3000, ITEMS - len(heavy) - len(middle))
    return generator.permutation(np.concatenate([heavy, middle, rest]))


def outcome(case: Case, run: int, confidence: float) -> tuple[int, int]:
    """Return how many intervals were released, and how many of them hold; all at once count as one."""
    stream = stream_of(run)
    true = np.bincount(stream, minlength=3000)
    oracle: Any = case.kind(*case.shape)
    if case.first:
        oracle = oracle.with_noise(epsilon=0.9)
    labels = None
    if case.mechanism == "public-labels":
        summary, labels = oracle, [0, 7, 20, 50, 51]
    else:
        summary = dptop.Tracked(oracle, 60, case.candidates)
    summary.extend(stream)
    result = dptop.release(
        summary,
        epsilon=1.0,
        delta=1e-3,
        mechanism=case.mechanism,
        length=ITEMS if case.declared else None,
        labels=labels,
        confidence=confidence,
        simultaneous=case.simultaneous,
        noise=None if case.first or case.kind is SKETCH else "laplace",
    )
    held = [row.low <= true[row.item] <= row.high for row in result]  # type: ignore[index]  # labels are integers
    if result.parameters["simultaneous"]:
        return 1, int(all(held))
    return len(held), sum(held)


def shortfall(case: Case, confidence: float) -> tuple[float, float]:
    """Return by how many standard errors intervals hold less often than promised, and how many were released a run."""
    found = np.array([outcome(case, run, confidence) for run in range(case.runs)])
    excess = found[:, 1] - confidence * found[:, 0]
    return float(-excess.mean() / (excess.std() / math.sqrt(len(excess)) + 1e-12)), float(found[:, 0].mean())


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)).replace("<class 'dptop.oracle.", ""))
def test_intervals_hold_as_often_as_they_say(case: Case) -> None:
    """Over fresh keys and noise, at half: by themselves or all at once, whatever was declared."""
    z, released = shortfall(case, 0.5)
    assert released >= 1
    assert z < LIMIT, f"{z} standard errors below one half; false once in 10^6, so look for a cause"


@pytest.mark.usefixtures("quick")
def test_an_upper_end_for_less_noise_than_there_is_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same simulation of declared labels, with intervals that are made for a small part of the noise."""
    cells = LaplaceCells(Fraction(16))
    monkeypatch.setattr(SketchNoise, "cells", property(lambda _: cells))
    assert shortfall(Case(MIN, (2048, 4), "public-labels", runs=100), 0.5)[0] > LIMIT


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("case", [case for case in CASES if case.mechanism == "envelope"][1:3])
def test_intervals_that_are_too_short_are_seen(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of labels that an envelope releases: a quarter of the noise's scale to either side, for all at once."""
    monkeypatch.setattr(tracked_envelope, "around", lambda error, estimates, *rest: [(v - 2, v + 2) for v in estimates])
    assert shortfall(case._replace(runs=60), 0.5)[0] > LIMIT
