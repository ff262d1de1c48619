"""What section 6.3 of the paper says of synthetic streams while k varies, in our words: figures 10(a) to 10(e)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from experiments import plan
from experiments.methods.summaries import DEPTH, SIZE
from experiments.report.claims.claim import AGREES, DISAGREES, IN_PART, ON_ZIPF, Claim, Part
from experiments.report.claims.comparisons import (
    CLEARLY,
    NO_ERROR,
    PERFECT,
    TWICE,
    at_least,
    at_most,
    falls,
    no_higher,
    no_lower,
    ratio,
    rises,
    shrinks,
    together,
)
from experiments.report.claims.evidence import NotMeasuredError
from experiments.report.claims.words import METRICS
from experiments.report.keys import ALGORITHM_3, COUNT_MIN, COUNT_SKETCH, COUNTERS, FOUR, PUBLISHED, SKETCHES
from experiments.report.noise import deviation_of_cells, margin

if TYPE_CHECKING:
    from experiments.report.claims.claim import Judge
    from experiments.report.claims.evidence import Evidence
    from experiments.report.series import Metric

__all__ = ["CLAIMS"]

LARGEST_COUNTERS: Final = 240_000
"""Bytes: the most that the paper has counters take."""
ABOUT_SIX: Final = (4.0, 9.0)
"""What is taken as about six times: a factor of one and a half to either side."""
WEAKLY: Final = 2.0
"""A dependence on k is called weak if the time does not double while k grows 32-fold."""
LARGEST_K: Final = max(plan.FULL.ks)


def _sketches_take(metric: Metric, low: float, high: float = float("inf")) -> Judge:
    """At every k, the cheaper sketch takes between `low` and `high` times as much as the dearer counter."""

    def judge(evidence: Evidence, stream: str) -> list[Part]:
        means = {method: evidence.means(stream, method, ("k",), metric) for method in FOUR}
        ratios = [
            min(means[sketch][place] for sketch in SKETCHES) / max(means[counter][place] for counter in COUNTERS)
            for place in set.intersection(*(set(of) for of in means.values()))
        ]
        if not ratios:
            raise NotMeasuredError(stream, metric)
        least, most = min(ratios), max(ratios)
        asked = f"at least {low:g} asked" if high == float("inf") else f"{low:g} to {high:g} taken as about six"
        margin = min(ratio(least, low), ratio(high, most))
        return [Part(margin, f"{METRICS[metric]} {least:.1f} to {most:.1f} times as much, {asked}")]

    return judge


def _not_measured(evidence: Evidence, stream: str) -> list[Part]:
    """Nothing here keeps its counters in a heap."""
    raise NotMeasuredError(stream)


CLAIMS: Final = (
    Claim(
        "10a-memory",
        "10(a)",
        "At equal k the sketches take far more memory than the counters, about six times as much.",
        ON_ZIPF,
        together(_sketches_take("memory_bytes", TWICE), _sketches_take("memory_bytes", *ABOUT_SIX)),
        {
            IN_PART: "They take far more, for the reason that the paper gives: the number of rows,"
            f" {DEPTH} or more. The factor is one of implementations. Our counters with their labels lie in one flat"
            " table, without lists, whose bytes a counter are given below, for section 4.3; a cell takes 8 bytes, and a"
            f" row has {SIZE * plan.FACTOR}k of them, as we had to choose.",
        },
    ),
    Claim(
        "10a-counters",
        "10(a)",
        "The counters never take more than 240 kB.",
        ON_ZIPF,
        at_most(("k",), "memory_bytes", COUNTERS, LARGEST_COUNTERS),
        {
            AGREES: "A flat table without lists or heap takes less than half of that for the"
            f" {plan.FACTOR * LARGEST_K:,} counters of k = {LARGEST_K:,}."
        },
    ),
    Claim(
        "10a-heap",
        "10(a)",
        "A heap would improve the memory of the counters further, for a slightly larger update time.",
        ON_ZIPF,
        _not_measured,
        {},
    ),
    Claim(
        "10b-time",
        "10(b)",
        "Counters are updated faster than sketches, by a wide margin at every k.",
        ON_ZIPF,
        _sketches_take("update_ns", TWICE),
        {
            AGREES: f"An item touches one counter, or {DEPTH} cells or more and then again as many for the estimate"
            " that"
            " decides whether its label is tracked.",
        },
    ),
    Claim(
        "10b-weak",
        "10(b)",
        "The update time of the sketches depends on k only weakly.",
        ON_ZIPF,
        shrinks("k", "update_ns", SKETCHES, WEAKLY),
        {AGREES: "Every row is hashed and read whatever k is; only tracking and the processor's cache depend on it."},
    ),
    Claim(
        "10c-space-saving",
        "10(c)",
        "SpaceSaving finds every heavy label, at every k.",
        ON_ZIPF,
        at_least(("k",), "recall", (ALGORITHM_3,), PERFECT),
        {AGREES: "A counter is never below the true count, and Algorithm 3 lowers n/k by a margin for the noise."},
    ),
    Claim(
        "10c-misra-gries",
        "10(c)",
        "The recall of Misra-Gries rises with k, as its table grows.",
        ON_ZIPF,
        rises("k", "recall", (PUBLISHED,), CLEARLY),
        {
            AGREES: "All its counters are too low by the same amount, which is a smaller part of n/k in a larger table:"
            " fewer heavy labels fall below n/k.",
        },
    ),
    Claim(
        "10c-sketches",
        "10(c)",
        "The recall of the sketches falls as k grows, since noise takes a larger part of n/k.",
        ON_ZIPF,
        falls("k", "recall", SKETCHES, CLEARLY),
        {
            DISAGREES: f"With {plan.FULL.length:,} items n/k is {plan.FULL.length // LARGEST_K:,} even at k ="
            f" {LARGEST_K:,}, and the noise of a cell has a standard deviation of"
            f" {deviation_of_cells(plan.EPSILON, DEPTH):,.0f}. What costs the sketches recall is the collisions in"
            " their envelopes. Those of"
            " Count-Min are in proportion to n/k, so that its recall hardly moves; those of CountSketch go with the"
            " root of the sum of squares, and only the few most frequent labels exceed them, at any k.",
        },
    ),
    Claim(
        "10d-precision",
        "10(d)",
        "Every label that any of the four methods releases is heavy, at every k.",
        ON_ZIPF,
        at_least(("k",), "precision", FOUR, PERFECT),
        {
            AGREES: "Only SpaceSaving admits labels below n/k: by the margin for the noise,"
            f" {margin(plan.EPSILON):,} items here, and by what its counters are too high by, next to nothing for"
            " labels that are frequent from the start of the stream."
            " The thresholds of the sketches are above n/k, and the counters of Misra-Gries too low.",
            IN_PART: "SpaceSaving admits labels below n/k: by the margin for the noise, and by what its counters are"
            " too high by.",
        },
    ),
    Claim(
        "10e-misra-gries",
        "10(e)",
        "Misra-Gries has the largest average relative error.",
        ON_ZIPF,
        no_lower(("k",), "relative_error", PUBLISHED, (ALGORITHM_3, *SKETCHES)),
        {AGREES: "All its counts are too low by the same amount, which is SpaceSaving's smallest counter."},
    ),
    Claim(
        "10e-space-saving",
        "10(e)",
        "SpaceSaving has the smallest average relative error.",
        ON_ZIPF,
        no_higher(("k",), "relative_error", ALGORITHM_3, (PUBLISHED, *SKETCHES), NO_ERROR),
        {AGREES: "What it releases it has tracked almost from the first item, so that hardly more than noise is left."},
    ),
    Claim(
        "10e-sketches",
        "10(e)",
        "CountSketch has a smaller average relative error than Count-Min at every k.",
        ON_ZIPF,
        no_higher(("k",), "relative_error", COUNT_SKETCH, (COUNT_MIN,), NO_ERROR),
        {
            AGREES: "Collisions cancel in CountSketch and add up in Count-Min. But it also releases only the few most"
            " frequent labels, or none, and theirs are the smallest relative errors.",
        },
    ),
)
