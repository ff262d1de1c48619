"""What claims are made of: a bound, a trend, an order. Each makes a judge, with one part for each method it is about.

Verdicts must not hang on the seed, so nothing is compared for equality: every comparison leaves a margin.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from experiments.report.claims.claim import Part
from experiments.report.claims.words import METRICS, NAMES, at, ends, shown, span
from experiments.report.fingerprints import can_release
from experiments.report.keys import PLAIN_OF

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from experiments.report.claims.claim import Judge
    from experiments.report.claims.evidence import Evidence, Means
    from experiments.report.series import Along, Metric

__all__ = [
    "CLEARLY",
    "NEARLY",
    "NO_ERROR",
    "PERFECT",
    "SLIGHTLY",
    "SWEEPS",
    "TIMING",
    "TWICE",
    "as_plain",
    "at_least",
    "at_most",
    "falls",
    "falls_short",
    "first_to_last",
    "grows",
    "no_higher",
    "no_lower",
    "ratio",
    "ratio_no_higher",
    "rises",
    "shrinks",
    "steady",
    "swept",
    "together",
]

SWEEPS: Final[tuple[Along, ...]] = ("k", "skew", "epsilon", "factor")
"""All sweeps of the grid, as far as a stream has them."""

PERFECT: Final = 0.99
"""Recall or precision that a figure shows as 1: at most one label in a hundred is missed, or wrong.

Exactly 1 would hang on the seed, as a label may stand within the noise of n/k.
"""
NEARLY: Final = 0.95
"""Recall or precision that is called high or near-perfect: at most one label in twenty is missed, or wrong."""
CLEARLY: Final = 0.05
"""By how much recall has to differ to be called higher or lower.

One of the labels that are heavy at k = 128 is about 0.08; another stream or draw moves a mean by less than half of it.
"""
SLIGHTLY: Final = 0.01
"""By how much a share may be worse in an order that is claimed: ties are common, and draws differ."""
NO_ERROR: Final = 0.001
"""A difference between average relative errors that is of no account: a thousandth of a count."""
TIMING: Final = 1.5
"""Times as much as another time to be called slower: one count timed twice may differ by a third."""
TWICE: Final = 2.0
"""A wide margin between times, and far more memory: well above what one count timed twice may differ by."""


def ratio(allowed: float, value: float) -> float:
    """Return the margin of a value of at most `allowed`: the logarithm of their ratio, as far as both are positive.

    >>> ratio(2.0, 1.0) > 0 > ratio(1.0, 2.0), ratio(1.0, 0.0)
    (True, inf)
    """
    if value <= 0:
        return math.inf
    return math.log(allowed / value) if allowed > 0 else -math.inf


def at_least(along: Sequence[Along], metric: Metric, methods: Sequence[str], least: float) -> Judge:
    """Every mean of each method is at least `least`; what released nothing has no say."""
    return _all_means(along, metric, methods, lambda means: min(means) - least)


def at_most(along: Sequence[Along], metric: Metric, methods: Sequence[str], most: float) -> Judge:
    """Every mean of each method is at most `most`; what released nothing has no say."""
    return _all_means(along, metric, methods, lambda means: ratio(most, max(means)))


def _all_means(
    along: Sequence[Along], metric: Metric, methods: Sequence[str], margin: Callable[[list[float]], float]
) -> Judge:
    def judge(evidence: Evidence, stream: str) -> list[Part]:
        means = {method: evidence.means(stream, method, along, metric) for method in methods}
        return [
            Part(margin(list(found.values())), f"{METRICS[metric]} of {NAMES[method]} {span(found, metric)}")
            for method, found in means.items()
            if found
        ]

    return judge


def rises(along: Along, metric: Metric, methods: Sequence[str], by: float) -> Judge:
    """From the first value that is swept to the last, each method's mean grows by at least `by`."""
    return first_to_last(along, metric, methods, lambda first, last: last - first - by)


def falls(along: Along, metric: Metric, methods: Sequence[str], by: float) -> Judge:
    """From the first value that is swept to the last, each method's mean falls by at least `by`."""
    return first_to_last(along, metric, methods, lambda first, last: first - last - by)


def shrinks(along: Along, metric: Metric, methods: Sequence[str], to: float) -> Judge:
    """Each method's mean at the last value is at most `to` times that at the first; above 1, it does not grow."""
    return first_to_last(along, metric, methods, lambda first, last: ratio(to * first, last))


def grows(along: Along, metric: Metric, methods: Sequence[str], to: float) -> Judge:
    """Each method's mean at the last value is at least `to` times that at the first."""
    return first_to_last(along, metric, methods, lambda first, last: -ratio(to * first, last))


def first_to_last(
    along: Along, metric: Metric, methods: Sequence[str], margin: Callable[[float, float], float]
) -> Judge:
    """Each method's means at the first and at the last value that is swept have this margin.

    Of values at which a method can release nothing, whatever the stream says, nothing is asked.
    """

    def judge(evidence: Evidence, stream: str) -> list[Part]:
        parts = []
        for method, means in swept(evidence, stream, along, metric, methods).items():
            first, *_, last = means.values()
            words = f"{METRICS[metric]} of {NAMES[method]} {ends(means, along, metric)}"
            parts.append(Part(margin(first, last), words + _limit(evidence, stream, method, means)))
        return parts

    return judge


def swept(evidence: Evidence, stream: str, along: Along, metric: Metric, methods: Sequence[str]) -> dict[str, Means]:
    """Return the means along one sweep of the methods that have more than one where they can release."""
    every = {method: evidence.means(stream, method, (along,), metric, where_possible=True) for method in methods}
    return {method: means for method, means in every.items() if len(means) > 1}


def steady(along: Along, metric: Metric, methods: Sequence[str], within: float, *, start: float = 0) -> Judge:
    """From `start` on, each method's largest and smallest mean are at most `within` apart.

    Of values at which a method can release nothing, whatever the stream says, nothing is asked.
    """

    def judge(evidence: Evidence, stream: str) -> list[Part]:
        parts = []
        for method in methods:
            means = evidence.means(stream, method, (along,), metric, where_possible=True)
            means = {place: mean for place, mean in means.items() if place[1] >= start}
            if len(means) > 1:
                apart = max(means.values()) - min(means.values())
                words = f"{METRICS[metric]} of {NAMES[method]} {span(means, metric)}"
                if limit := _limit(evidence, stream, method, means):
                    words += f" up to {at(max(means))}{limit}"
                parts.append(Part(within - apart, words))
        return parts

    return judge


def _limit(evidence: Evidence, stream: str, method: str, means: Means) -> str:
    """Return what is said of the last value, if others were measured at which the method can release nothing."""
    along, _ = max(means)
    every = evidence.points(stream, method, along).values()
    return "" if all(can_release(row) for rows in every for row in rows) else ", the largest at which it can release"


def no_higher(along: Sequence[Along], metric: Metric, method: str, others: Sequence[str], slack: float = 0) -> Judge:
    """Wherever both have a mean, the method's is at most `slack` above that of each of the others."""
    return _beside(along, metric, method, others, lambda own, other: other + slack - own)


def no_lower(along: Sequence[Along], metric: Metric, method: str, others: Sequence[str], slack: float = 0) -> Judge:
    """Wherever both have a mean, the method's is at most `slack` below that of each of the others."""
    return _beside(along, metric, method, others, lambda own, other: own - (other - slack))


def ratio_no_higher(along: Sequence[Along], metric: Metric, method: str, others: Sequence[str], times: float) -> Judge:
    """Wherever both have a mean, the method's is at most `times` that of each of the others."""
    return _beside(along, metric, method, others, lambda own, other: ratio(times * other, own))


def falls_short(along: Sequence[Along], metric: Metric, methods: Sequence[str], of: str, by: float) -> Judge:
    """Somewhere each method's mean is at least `by` below that of another method."""

    def judge(evidence: Evidence, stream: str) -> list[Part]:
        whole = evidence.means(stream, of, along, metric)
        parts = []
        for method in methods:
            means = evidence.means(stream, method, along, metric)
            gaps = {place: whole[place] - means[place] - by for place in means if place in whole}
            if gaps:
                place = max(gaps, key=lambda place: gaps[place])
                parts.append(Part(gaps[place], _against(metric, method, means, of, whole, place)))
        return parts

    return judge


def _beside(
    along: Sequence[Along],
    metric: Metric,
    method: str,
    others: Sequence[str],
    margin: Callable[[float, float], float],
) -> Judge:
    def judge(evidence: Evidence, stream: str) -> list[Part]:
        own, parts = evidence.means(stream, method, along, metric), []
        for other in others:
            theirs = evidence.means(stream, other, along, metric)
            margins = {place: margin(own[place], theirs[place]) for place in own if place in theirs}
            if margins:
                place = min(margins, key=lambda place: margins[place])
                parts.append(Part(margins[place], _against(metric, method, own, other, theirs, place)))
        return parts

    return judge


def _against(metric: Metric, method: str, own: Means, other: str, theirs: Means, place: tuple[Along, float]) -> str:
    values = f"{shown(own[place], metric)} against {shown(theirs[place], metric)} of {NAMES[other]}"
    return f"{METRICS[metric]} of {NAMES[method]} {values} at {at(place)}"


def as_plain(along: Sequence[Along], method: str) -> Judge:
    """Recall and relative error of a method are nearly those of its summary without privacy."""
    plain = PLAIN_OF[method]
    return together(
        no_lower(along, "recall", method, (plain,), CLEARLY),
        no_higher(along, "relative_error", method, (plain,), SLIGHTLY),
    )


def together(*judges: Judge) -> Judge:
    """All of these."""
    return lambda evidence, stream: [part for judge in judges for part in judge(evidence, stream)]
