"""How much of the truth a release keeps: recall and precision on the stream of the paper's experiments.

Zipf 1.1 over 100,001 labels, 10^6 items, k = 1000, k-tilde = 2000, epsilon = 1, delta = 1e-3. A label is a heavy hitter
if it has at least n/k items; recall is the part of them that is released, precision the part of what is released that
they are (the paper, section 6.2).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import dptop

if TYPE_CHECKING:
    from numpy.typing import NDArray

LABELS, ITEMS, SHARE, CAPACITY = 100_001, 1_000_000, 0.001, 2000
SEEDS = 20
ASK: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-3, "share": SHARE}


@cache
def chances() -> NDArray[np.float64]:
    weights = np.arange(1, LABELS + 1) ** -1.1
    return np.asarray(np.cumsum(weights / weights.sum()))


def stream_of(seed: int) -> NDArray[np.int64]:
    """Return the items, the most frequent label being 0."""
    drawn = np.random.default_rng(seed).random(ITEMS)
    return np.minimum(np.searchsorted(chances(), drawn), LABELS - 1).astype(np.int64)


def measured(result: dptop.Release, heavy: set[Any]) -> tuple[float, float]:
    """Return recall and precision."""
    released = {row.item for row in result}
    found = len(released & heavy)
    return found / len(heavy), found / max(1, len(released))


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str, int | None], NDArray[np.float64]]:
    """Return recall and precision of every seed, by mechanism, tie rule and declared length."""
    out: dict[tuple[str, str, int | None], list[tuple[float, float]]] = {}
    for seed in range(SEEDS):
        stream = stream_of(seed)
        heavy = set(np.flatnonzero(np.bincount(stream, minlength=LABELS) >= ITEMS * SHARE).tolist())
        assert 70 < len(heavy) < 100
        for tie in dptop.Tie:
            summary = dptop.SpaceSaving(CAPACITY, tie=tie, budget=dptop.Budget(8.0, 8e-3))
            summary.extend(stream)
            for length in (None, ITEMS):
                for mechanism in ("stable-threshold", "paper"):
                    result = dptop.release(summary, **ASK, mechanism=mechanism, length=length)
                    assert result.private
                    out.setdefault((mechanism, tie.value, length), []).append(measured(result, heavy))
    return {case: np.array(pairs) for case, pairs in out.items()}


@pytest.mark.parametrize("mechanism", ["stable-threshold", "paper"])
@pytest.mark.parametrize("tie", ["least-recent", "most-recent"])
@pytest.mark.parametrize("length", [None, ITEMS])
def test_nearly_all_heavy_hitters_are_found_and_nearly_nothing_else(
    mechanism: str, tie: str, length: int | None, found: dict[tuple[str, str, int | None], NDArray[np.float64]]
) -> None:
    """Mean recall and precision over 20 streams are at least 0.98, by either mechanism, with noise of its own each."""
    recall, precision = found[mechanism, tie, length].mean(axis=0)
    assert len(found[mechanism, tie, length]) == SEEDS
    assert recall >= 0.98, f"recall {recall}, precision {precision}"
    assert precision >= 0.98, f"recall {recall}, precision {precision}"
