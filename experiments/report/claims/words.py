"""How figures are put in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from experiments.report.keys import (
    ALGORITHM_3,
    COUNT_MIN,
    COUNT_MIN_CANDIDATES,
    COUNT_MIN_SELECTED,
    COUNT_SKETCH,
    COUNT_SKETCH_CANDIDATES,
    COUNT_SKETCH_SELECTED,
    EXACT_THRESHOLD,
    HISTOGRAM,
    PLAIN_OF,
    PUBLISHED,
    STABLE,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from experiments.report.claims.evidence import Means, Place
    from experiments.report.series import Along, Metric

__all__ = ["METRICS", "NAMES", "at", "ends", "extent", "shown", "span", "sweep_value"]

NAMES: Final[dict[str, str]] = {
    ALGORITHM_3: "SpaceSaving",
    PUBLISHED: "Misra-Gries",
    COUNT_MIN: "Count-Min",
    COUNT_SKETCH: "CountSketch",
    EXACT_THRESHOLD: "Misra-Gries with the exact threshold",
    STABLE: "StableThreshold",
    COUNT_MIN_SELECTED: "Count-Min, selected",
    COUNT_SKETCH_SELECTED: "CountSketch, selected",
    COUNT_MIN_CANDIDATES: "Count-Min over SpaceSaving",
    COUNT_SKETCH_CANDIDATES: "CountSketch over SpaceSaving",
    HISTOGRAM: "the exact histogram",
    PLAIN_OF[ALGORITHM_3]: "SpaceSaving without privacy",
    PLAIN_OF[PUBLISHED]: "Misra-Gries without privacy",
    PLAIN_OF[COUNT_MIN]: "Count-Min without privacy",
    PLAIN_OF[COUNT_SKETCH]: "CountSketch without privacy",
}
"""What methods are called beside figures; the paper's four have their summary's name, as in the paper."""

METRICS: Final[dict[Metric, str]] = {
    "recall": "recall",
    "precision": "precision",
    "relative_error": "error",
    "absolute_error": "error in items",
    "released": "labels",
    "threshold": "threshold",
    "update_ns": "update time",
    "memory_bytes": "memory",
}


def shown(value: float, metric: Metric) -> str:
    """Return a value in its unit.

    >>> shown(0.99949, "recall"), shown(0.0199, "relative_error"), shown(24.7, "update_ns"), shown(8596, "memory_bytes")
    ('0.999', '2 %', '25 ns', '8.6 kB')
    """
    if metric == "relative_error":
        return "below 0.001 %" if value < 1e-5 else f"{100 * value:.2g} %" if value < 1 else f"{100 * value:,.0f} %"
    if metric == "update_ns":
        return f"{value:.0f} ns"
    if metric == "memory_bytes":
        return f"{value / 1000:,.1f} kB" if value < 1e5 else f"{value / 1000:,.0f} kB"
    if metric in ("recall", "precision"):
        return f"{value:g}" if value in (0, 1) else f"{min(max(value, 0.001), 0.999):.3f}"
    return f"{value:,.1f}" if value < 10 else f"{value:,.0f}"


def extent(numbers: Iterable[int]) -> str:
    """Return the least and the greatest of some whole numbers, or the only one.

    >>> extent([20, 1000, 20]), extent([7, 7])
    ('20 to 1,000', '7')
    """
    found = sorted(set(numbers))
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"


def sweep_value(value: float) -> str:
    """Return a value of k, skew, epsilon or the factor."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def at(place: Place) -> str:
    """Return where on the sweeps something was measured."""
    along, value = place
    return f"{along} = {sweep_value(value)}"


def span(means: Means, metric: Metric) -> str:
    """Return the smallest and the largest mean."""
    low, high = shown(min(means.values()), metric), shown(max(means.values()), metric)
    return low if low == high else f"{low} to {high}"


def ends(means: Means, along: Along, metric: Metric) -> str:
    """Return the first and the last mean of one sweep, with where they are."""
    (_, first), *_, (_, last) = means
    return (
        f"{shown(means[along, first], metric)} at {at((along, first))},"
        f" {shown(means[along, last], metric)} at {sweep_value(last)}"
    )
