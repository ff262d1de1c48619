"""Which raw rows a curve is made of, and their mean and spread: what figures and claims share.

The grid goes through one point, `COMMON`, along four sweeps. A row is stored once and belongs to every sweep whose
fixed values it has: a row at the common point belongs to all four.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from experiments import plan
from experiments.methods import CEILING, METHODS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from experiments.results import Row

__all__ = [
    "COMMON",
    "Along",
    "Metric",
    "Point",
    "Spread",
    "budgets",
    "concerned",
    "frontier",
    "select",
    "spread",
    "streams",
]

Along: TypeAlias = Literal["k", "skew", "epsilon", "factor"]
Metric: TypeAlias = Literal[
    "recall", "precision", "relative_error", "absolute_error", "released", "threshold", "update_ns", "memory_bytes"
]

OF_HEAVY: Final = ("recall", "precision", "relative_error")
"""Metrics of a search for heavy labels: where there is none there is nothing to be right about.

The paper's streams have at least one in every run (section 6.2).
"""


class Point(NamedTuple):
    """What stays fixed along a sweep, except for the one that is swept.

    Attributes:
        k: heavy labels have at least n/k items.
        skew: of the Zipf stream; a real stream has none, and nothing is asked of it.
        epsilon: of the release; what is not private has none, and is the same at every epsilon.
        factor: the capacity over k.
    """

    k: int
    skew: float
    epsilon: float
    factor: int


COMMON: Final = Point(plan.K, plan.SKEW, plan.EPSILON, plan.FACTOR)
"""Where the sweeps of the paper cross (section 6.2 and its figures)."""


class Spread(NamedTuple):
    """The values of one metric at one point.

    Attributes:
        mean: over the releases that have a value.
        low: the 5th percentile, between order statistics linearly.
        high: the 95th.
        values: how many releases have one: fewer than all where some released nothing.
    """

    mean: float
    low: float
    high: float
    values: int


def spread(rows: Iterable[Row], metric: Metric) -> Spread | None:
    """Return mean, 5th and 95th percentile of a metric; None if no row has a value.

    A release without labels has no precision and no error: those are over the releases that have some.
    """
    values = [value for row in concerned(rows, metric) if (value := getattr(row, metric)) is not None]
    if not values:
        return None
    low, high = np.percentile(values, [5, 95])
    return Spread(float(np.mean(values)), float(low), float(high), len(values))


def concerned(rows: Iterable[Row], metric: Metric) -> list[Row]:
    """Return the rows that a metric is about: that of a search for heavy labels is about those where there are some.

    On the frontier nothing is searched for, and every row is one.
    """
    return [row for row in rows if metric not in OF_HEAVY or row.k is None or row.heavy]


def select(
    rows: Iterable[Row], *, stream: str, method: str, along: Along, fixed: Point = COMMON
) -> dict[float, list[Row]]:
    """Return the rows of one method in one sweep of the grid, by the value that is swept, ascending.

    Rows that are not private stand at every epsilon at which the stream has a release. Empty where the rows have
    nothing of this.
    """
    rows = [row for row in rows if row.sweep == plan.GRID and row.stream == stream]
    every = {row.epsilon for row in rows if row.epsilon is not None}
    found: dict[float, list[Row]] = {}
    for row in rows:
        if row.method == method and _has(row, fixed, but=along):
            place = getattr(row, along)
            for at in every if along == "epsilon" and place is None else (place,):
                if at is not None:
                    found.setdefault(at, []).append(row)
    return dict(sorted(found.items()))


def _has(row: Row, fixed: Point, *, but: Along) -> bool:
    """Whether a row has the fixed values of a sweep; a real stream has no skew, what is not private no epsilon."""
    free = {but} | {name for name in ("skew", "epsilon") if getattr(row, name) is None}
    return all(getattr(row, name) == value for name, value in fixed._asdict().items() if name not in free)


def frontier(rows: Iterable[Row], *, stream: str, method: str, epsilon: float, delta: float) -> dict[int, list[Row]]:
    """Return the rows of one method on the frontier at one privacy budget, by capacity, ascending.

    The ceiling has no capacity to choose: it is one point, whose place among the capacities is its greatest.
    """
    found: dict[int, list[Row]] = {}
    for row in rows:
        asked = (plan.FRONTIER, stream, method, epsilon, delta)
        if (row.sweep, row.stream, row.method, row.epsilon, row.delta) == asked:
            found.setdefault(row.capacity, []).append(row)
    if found and METHODS[method].family == CEILING:
        return {max(found): [row for pooled in found.values() for row in pooled]}
    return dict(sorted(found.items()))


def budgets(rows: Iterable[Row], *, stream: str) -> list[tuple[float, float]]:
    """Return the (epsilon, delta) of the frontier of a stream, ascending in epsilon, then descending in delta."""
    found = {
        (row.epsilon, row.delta)
        for row in rows
        if row.sweep == plan.FRONTIER and row.stream == stream and row.epsilon is not None and row.delta is not None
    }
    return sorted(found, key=lambda budget: (budget[0], -budget[1]))


def streams(rows: Iterable[Row], *, sweep: str = plan.GRID) -> list[str]:
    """Return the names of the streams of a sweep, GRID or FRONTIER, in the order in which the rows have them."""
    return list(dict.fromkeys(row.stream for row in rows if row.sweep == sweep))
