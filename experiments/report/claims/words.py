"""How figures are put in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from experiments.report.claims.evidence import Means, Place
    from experiments.report.series import Along, Metric

__all__ = ["METRICS", "NAMES", "at", "ends", "shown", "span", "sweep_value"]

NAMES: Final = {
    "paper": "SpaceSaving",
    "misra-gries-published": "Misra-Gries",
    "count-min": "Count-Min",
    "count-sketch": "CountSketch",
    "misra-gries": "Misra-Gries with the exact threshold",
    "stable-threshold": "StableThreshold",
    "count-min-selected": "Count-Min, selected",
    "count-sketch-selected": "CountSketch, selected",
    "count-min-candidates": "Count-Min over SpaceSaving",
    "count-sketch-candidates": "CountSketch over SpaceSaving",
    "exact-histogram": "the exact histogram",
    "plain-space-saving": "SpaceSaving without privacy",
    "plain-misra-gries": "Misra-Gries without privacy",
    "plain-count-min": "Count-Min without privacy",
    "plain-count-sketch": "CountSketch without privacy",
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
