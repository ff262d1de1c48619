"""One raw row, of which tests change what they are about."""

from __future__ import annotations

from typing import Any

from experiments import plan
from experiments.report.series import COMMON
from experiments.results import Row

__all__ = ["row"]


def row(**changes: Any) -> Row:
    """Return a row of Algorithm 3 at the common point of a short Zipf stream, but for what is changed."""
    common: dict[str, Any] = {
        "sweep": plan.GRID,
        "stream": "zipf",
        "length": 1000,
        "distinct": 100,
        "skew": COMMON.skew,
        "k": COMMON.k,
        "factor": COMMON.factor,
        "capacity": COMMON.factor * COMMON.k,
        "epsilon": COMMON.epsilon,
        "delta": plan.DELTA,
        "method": "paper",
        "seed": 1,
        "repetition": 0,
        "draw": 0,
        "heavy": 10,
        "released": 10,
        "recall": 1.0,
        "precision": 1.0,
        "relative_error": 0.01,
        "absolute_error": 3.0,
        "threshold": 12.0,
        "update_ns": 20.0,
        "memory_bytes": 10_240,
    }
    return Row(**common | changes)
