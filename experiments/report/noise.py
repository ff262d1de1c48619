"""How large noise is in the experiments, by the library: what prose says of it is computed, and not written down."""

from __future__ import annotations

import math
from functools import cache

from dptop.mechanism import PaperThreshold, SketchNoise
from dptop.privacy import PrivacyParameters
from dptop.tie import Tie
from experiments import plan

__all__ = ["deviation_of_cells", "gamma", "margin"]


@cache
def margin(epsilon: float, delta: float = plan.DELTA) -> int:
    """Return what Algorithm 3 lowers n/k by and adds to n/K, in items: the exact counterpart of the paper's gamma.

    >>> margin(0.1) < gamma(0.1) < margin(0.01)
    True
    """
    capacity, share = plan.FACTOR * plan.K, 1 / plan.K  # neither matters to it
    return PaperThreshold.calibrate(
        epsilon=epsilon, delta=delta, capacity=capacity, share=share, tie=Tie.MOST_RECENT
    ).gap


def gamma(epsilon: float, delta: float = plan.DELTA) -> float:
    """Return the paper's margin for the noise, ln(2/delta)/epsilon, in items (section 4.3).

    >>> round(gamma(1.0, 2 / math.e))
    1
    """
    return math.log(2 / delta) / epsilon


@cache
def deviation_of_cells(epsilon: float, depth: int, delta: float = plan.DELTA) -> float:
    """Return the standard deviation of the noise of each cell of a sketch, in items."""
    noise, _ = SketchNoise.of(None, PrivacyParameters.of(epsilon, delta), depth)
    return noise.deviation
