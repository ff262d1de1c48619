"""What this project says beyond the paper, in the form of the paper's claims and judged like them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from experiments.plan import DELTA, FULL
from experiments.report.claims.claim import AGREES, EVERYWHERE, IN_PART, Claim, Part
from experiments.report.claims.comparisons import (
    CLEARLY,
    SLIGHTLY,
    SWEEPS,
    TIMING,
    TWICE,
    no_lower,
    ratio,
    ratio_no_higher,
    together,
)
from experiments.report.claims.evidence import NotMeasuredError
from experiments.report.claims.words import METRICS, NAMES, at
from experiments.report.fingerprints import DEPTHS
from experiments.report.keys import (
    ALGORITHM_3,
    BOUNDED,
    COUNT_MIN,
    COUNT_MIN_CANDIDATES,
    COUNT_MIN_SELECTED,
    COUNT_SKETCH,
    COUNT_SKETCH_CANDIDATES,
    COUNT_SKETCH_SELECTED,
    EXACT_THRESHOLD,
    HISTOGRAM,
    PRIVATE,
    PUBLISHED,
    STABLE,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from experiments.report.claims.claim import Judge
    from experiments.report.claims.evidence import Evidence
    from experiments.report.series import Metric

__all__ = ["CLAIMS"]

AS_MANY: Final = 0.9
"""Of another method's labels, from which on they are as many.

The noise of the smallest counter moves all labels of a release together, and a mean over 20 releases by a fortieth.
"""
MORE: Final = 1.1
"""Times another method's labels, from which on they are more."""
MANY_MORE: Final = 1.5
"""Times another method's labels, from which on they are many more."""
A_FEW: Final = 3.0
"""Labels by which a mean may be behind at any ratio: small tables release a handful of labels."""
ABOUT_HALF: Final = (0.4, 0.6)
"""Times another threshold: the two depend on epsilon and delta only, and not on the seed."""
LAID_OUT: Final = 1.25
"""Times another memory up to which it is the same: strings lie in an arena that is rewritten in steps."""

Points = dict[int, float]


def _on_frontier(metric: Metric, one: str, other: str, compare: Callable[[Points, Points], tuple[float, str]]) -> Judge:
    """Compare two methods at each (epsilon, delta) of a frontier, by capacity; exact counts have one for all."""

    def judge(evidence: Evidence, stream: str) -> list[Part]:
        parts = []
        for budget in evidence.budgets(stream):
            own, theirs = (evidence.frontier(stream, method, budget, metric) for method in (one, other))
            if other == HISTOGRAM and theirs:
                theirs = dict.fromkeys(own, sum(theirs.values()) / len(theirs))
            both = sorted(own.keys() & theirs.keys())
            if both:
                margin, words = compare({at: own[at] for at in both}, {at: theirs[at] for at in both})
                words = f"{METRICS[metric]} of {NAMES[one]} {words} of {NAMES[other]}"
                parts.append(Part(margin, f"{words} at epsilon = {budget[0]:g}, delta = {budget[1]:g}"))
        return parts

    return judge


def _as_many(own: Points, theirs: Points) -> tuple[float, str]:
    return min(own[at] - min(AS_MANY * theirs[at], theirs[at] - A_FEW) for at in own), _ratios(own, theirs)


def _no_more(own: Points, theirs: Points) -> tuple[float, str]:
    return min(max(theirs[at] / AS_MANY, theirs[at] + A_FEW) - own[at] for at in own), _ratios(own, theirs)


def _somewhere(times: float) -> Callable[[Points, Points], tuple[float, str]]:
    def compare(own: Points, theirs: Points) -> tuple[float, str]:
        gains = {at: own[at] / max(theirs[at], 1) for at in own}
        best = max(gains, key=lambda at: gains[at])
        return ratio(gains[best], times), f"{own[best]:,.0f}, with {best:,} counters, against {theirs[best]:,.0f}"

    return compare


def _no_larger(own: Points, theirs: Points) -> tuple[float, str]:
    return min(ratio(theirs[at], own[at]) for at in own), _ratios(own, theirs)


def _about_half(own: Points, theirs: Points) -> tuple[float, str]:
    low, high = ABOUT_HALF
    at = min(own)
    margin = min(min(ratio(own[at], low * theirs[at]), ratio(high * theirs[at], own[at])) for at in own)
    return margin, f"{own[at]:,.0f} against {theirs[at]:,.0f}"


def _ratios(own: Points, theirs: Points) -> str:
    ratios = [own[at] / theirs[at] for at in own if theirs[at]]
    if not ratios:
        return "nothing released"
    low, high = f"{min(ratios):.2f}", f"{max(ratios):.2f}"
    return (low if low == high else f"{low} to {high}") + " times those"


def _grows_with_memory(evidence: Evidence, stream: str) -> list[Part]:
    """From each capacity to the next no label is lost, and in all there are at least twice as many."""
    parts = []
    for budget in evidence.budgets(stream):
        labels = [mean for _, mean in sorted(evidence.frontier(stream, STABLE, budget, "released").items())]
        if len(labels) > 1:
            steps = [b - min(AS_MANY * a, a - A_FEW) for a, b in pairwise(labels)]
            words = f"{labels[0]:,.0f} to {labels[-1]:,.0f} labels at epsilon = {budget[0]:g}, delta = {budget[1]:g}"
            parts.append(Part(min(*steps, ratio(labels[-1], TWICE * labels[0])), words))
    return parts


def _finds_no_more(evidence: Evidence, stream: str) -> list[Part]:
    """Nowhere on the grid does a private summary, asked the same, find clearly more heavy labels than exact counts."""
    top = evidence.means(stream, HISTOGRAM, SWEEPS, "recall")
    leads = {
        (mean - top[place], method, place)
        for method in PRIVATE
        if method != ALGORITHM_3
        for place, mean in evidence.means(stream, method, SWEEPS, "recall").items()
        if place in top
    }
    if not leads:
        raise NotMeasuredError(stream)
    lead, method, place = max(leads)
    words = f"recall of {NAMES[method]} {lead:+.3f} at {at(place)}, the largest difference to {NAMES[HISTOGRAM]}"
    return [Part(CLEARLY - lead, words)]


CLAIMS: Final = (
    Claim(
        "stable-labels",
        "labels",
        "With as many counters StableThreshold releases no fewer labels than Algorithm 3, and many more with some.",
        EVERYWHERE,
        together(
            _on_frontier("released", STABLE, ALGORITHM_3, _as_many),
            _on_frontier("released", STABLE, ALGORITHM_3, _somewhere(MANY_MORE)),
        ),
        {
            AGREES: "It adds its margin to the smallest counter, with noise, where Algorithm 3 adds one to n/K: the"
            " more of a stream is in few labels, the further the smallest counter is below n/K.",
            IN_PART: "It adds its margin to the smallest counter, where Algorithm 3 adds one to n/K. On a flat stream"
            " these are the same.",
        },
    ),
    Claim(
        "stable-heavy",
        "heavy labels",
        "Asked for the labels above n/k, StableThreshold does as well as Algorithm 3, in recall and precision.",
        EVERYWHERE,
        together(
            no_lower(SWEEPS, "recall", STABLE, (ALGORITHM_3,), CLEARLY),
            no_lower(SWEEPS, "precision", STABLE, (ALGORITHM_3,), SLIGHTLY),
        ),
        {
            AGREES: "Both are far below n/k, so that the share that is asked for decides. Algorithm 3 lowers it by its"
            " margin and finds all; StableThreshold does not, and lets fewer others in.",
            IN_PART: "StableThreshold does not lower n/k by a margin: it misses heavy labels that noise puts below"
            " n/k, and lets fewer others in. Where n/k is small, Algorithm 3's other threshold, n/K and a margin,"
            " keeps back more of both.",
        },
    ),
    Claim(
        "least-recent",
        "tie rule",
        "Evicting the least recent of equal labels, as we do, takes no more time or memory than the most recent.",
        EVERYWHERE,
        together(
            ratio_no_higher(SWEEPS, "update_ns", STABLE, (ALGORITHM_3,), TIMING),
            ratio_no_higher(SWEEPS, "memory_bytes", STABLE, (ALGORITHM_3,), LAID_OUT),
        ),
        {
            AGREES: "One table keeps either order. Least recent leaves one isolated label a side instead of two, so"
            " that its margin is a little smaller.",
        },
    ),
    Claim(
        "misra-gries-threshold",
        "labels",
        "The smallest exact threshold of Misra-Gries is about half the published one, and releases more labels.",
        EVERYWHERE,
        together(
            _on_frontier("threshold", EXACT_THRESHOLD, PUBLISHED, _about_half),
            _on_frontier("released", EXACT_THRESHOLD, PUBLISHED, _as_many),
            _on_frontier("released", EXACT_THRESHOLD, PUBLISHED, _somewhere(MORE)),
        ),
        {
            AGREES: "The published one bounds two draws of noise one after the other; the exact one sums over both."
            " It matters once the table is large enough for counters to be that small.",
            IN_PART: "The threshold is what it is on every stream. It gains labels only where there are counters"
            " between the two.",
        },
    ),
    Claim(
        "stable-misra-gries",
        "labels and error",
        "With as many counters StableThreshold releases as many labels as Misra-Gries, and its counts are less off.",
        EVERYWHERE,
        together(
            _on_frontier("released", STABLE, EXACT_THRESHOLD, _as_many),
            _on_frontier("absolute_error", STABLE, EXACT_THRESHOLD, _no_larger),
        ),
        {
            AGREES: "The two select by nearly the same rule. But Misra-Gries publishes counts less the smallest"
            " counter, which are too low for all; those of SpaceSaving are right for labels that are frequent from the"
            " start.",
            IN_PART: "The two select by nearly the same rule. Where the smallest counter is small, noise is all there"
            " is of either error; where labels come late, SpaceSaving's counts are too high by as much as those of"
            " Misra-Gries are too low.",
        },
    ),
    Claim(
        "selected-recall",
        "heavy labels",
        "Sketches find more of the heavy labels, never fewer, where SpaceSaving selects them and only the counts are"
        " the sketch's, than in the paper's wrapper.",
        EVERYWHERE,
        together(
            no_lower(SWEEPS, "recall", COUNT_MIN_SELECTED, (COUNT_MIN,), SLIGHTLY),
            no_lower(SWEEPS, "recall", COUNT_SKETCH_SELECTED, (COUNT_SKETCH,), SLIGHTLY),
        ),
        {
            AGREES: "The selection does not pay for the sketch's errors, only for the noise of two counters, with half"
            " of epsilon.",
            IN_PART: "The selection does not pay for the sketch's errors. But selection and counts have half of epsilon"
            f" each, and the smallest of {DEPTHS[COUNT_MIN]} rows with more noise is more often below n/k.",
        },
    ),
    Claim(
        "selected-time",
        "update time",
        "Counting for that is clearly faster than for the wrapper.",
        EVERYWHERE,
        together(
            ratio_no_higher(SWEEPS, "update_ns", COUNT_MIN_SELECTED, (COUNT_MIN,), 1 / TIMING),
            ratio_no_higher(SWEEPS, "update_ns", COUNT_SKETCH_SELECTED, (COUNT_SKETCH,), 1 / TIMING),
        ),
        {
            AGREES: "No estimate is needed before the end, so that equal items are added up before they reach the"
            " cells.",
        },
    ),
    Claim(
        "candidates-recall",
        "heavy labels",
        "The wrapper itself finds no fewer heavy labels where SpaceSaving tracks them.",
        EVERYWHERE,
        together(
            no_lower(SWEEPS, "recall", COUNT_MIN_CANDIDATES, (COUNT_MIN,), SLIGHTLY),
            no_lower(SWEEPS, "recall", COUNT_SKETCH_CANDIDATES, (COUNT_SKETCH,), SLIGHTLY),
        ),
        {
            AGREES: "The envelope then has to hold for two labels at most instead of for every item of the stream, and"
            " its threshold has one error in it instead of three. It also releases at epsilon ="
            f" {max(FULL.epsilons):g}.",
        },
    ),
    Claim(
        "ceiling",
        "ceiling",
        "No private summary does better than the exact stability histogram, in labels released or, Algorithm 3 apart,"
        " in heavy labels found.",
        EVERYWHERE,
        together(
            _finds_no_more,
            *(_on_frontier("released", method, HISTOGRAM, _no_more) for method in BOUNDED),
        ),
        {
            AGREES: "It knows every count and adds the noise of one. In bounded memory the smallest counter comes on"
            " top of the margin.",
            IN_PART: f"But for one case: at epsilon = {DELTA:g} delta is as large as epsilon. The Gaussian noise of a"
            f" sketch's cells uses it, and the median of {DEPTHS[COUNT_SKETCH]} rows evens some of it out; the"
            " histogram's Laplace noise"
            " does neither.",
        },
    ),
    Claim(
        "frontier",
        "frontier",
        "The more memory, the more labels StableThreshold releases, at equal epsilon and delta.",
        EVERYWHERE,
        _grows_with_memory,
        {
            AGREES: "The smallest counter falls as the table grows; when it is 0 the counts are exact, and what is left"
            " of the distance to the ceiling is one more draw of noise.",
            IN_PART: "The smallest counter falls as the table grows, until all labels are in it.",
        },
    ),
)
