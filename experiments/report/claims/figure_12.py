"""What section 6.4 of the paper says of its packet trace, in our words, judged on the streams there are: figure 12."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from experiments import plan
from experiments.methods.summaries import DEPTH
from experiments.report.claims.claim import AGREES, DISAGREES, IN_PART, ON_REAL, Claim, Part
from experiments.report.claims.comparisons import (
    CLEARLY,
    NEARLY,
    NO_ERROR,
    PERFECT,
    SWEEPS,
    TIMING,
    TWICE,
    at_least,
    at_most,
    falls,
    falls_short,
    first_to_last,
    grows,
    no_lower,
    ratio,
    rises,
    shrinks,
    steady,
    together,
)
from experiments.report.claims.evidence import NotMeasuredError
from experiments.report.claims.words import shown
from experiments.report.fingerprints import limit
from experiments.report.keys import ALGORITHM_3, COUNT_MIN, COUNT_SKETCH, COUNTERS, FOUR, PUBLISHED, SKETCHES
from experiments.report.noise import margin

if TYPE_CHECKING:
    from experiments.report.claims.evidence import Evidence

__all__ = ["EPSILON", "FACTOR", "TAKEAWAY", "K"]

DECLINES: Final = 0.8
"""An error declines if it loses a fifth or more: draws and hashes move a mean by less."""
SLIGHT: Final = 0.005
"""Half a percent: below it the mean over the few labels that a sketch releases hangs on which hashes they share."""
SMALL_ERROR: Final = 0.04
"""The bound on average relative errors that the paper states."""
INSENSITIVE: Final = 0.02
"""An error is insensitive to epsilon if it moves by no more than a fiftieth of a count over the whole sweep."""
SMALLEST: Final = min(plan.FULL.epsilons)
NOT_VERY_SMALL: Final = 0.01
"""The epsilon from which on it is not very small: the second smallest of the sweep."""
MORE_MEMORY: Final = 4.0
"""How often the memory has to be multiplied from the smallest factor to the largest to be called a cost."""


LIMIT: Final = limit(max(plan.FULL.epsilons), plan.DELTA)
"""Said of the largest epsilon, where it has to be."""


def _declined(first: float, last: float) -> float:
    """Return the margin of an error that falls by a fifth, or that leaves nothing to lose."""
    return ratio(max(SLIGHT, DECLINES * first), last)


def _gained(first: float, last: float) -> float:
    """Return the margin of a recall that rises clearly, or that leaves nothing to gain."""
    return last - min(NEARLY, first + CLEARLY)


def _at_factor_one(evidence: Evidence, stream: str) -> list[Part]:
    """SpaceSaving's error is at least twice as large at the smallest factor as at the next, its recall the highest."""
    errors = evidence.means(stream, ALGORITHM_3, ("factor",), "relative_error")
    recalls = {method: evidence.means(stream, method, ("factor",), "recall") for method in FOUR}
    at = [("factor", 1), ("factor", 2)]
    if any(place not in errors or place not in recalls[ALGORITHM_3] for place in at):
        raise NotMeasuredError(stream)
    one, two = errors["factor", 1], errors["factor", 2]
    own = recalls[ALGORITHM_3]["factor", 1]
    others = max(recalls[method].get(("factor", 1), 0.0) for method in FOUR if method != ALGORITHM_3)
    return [
        Part(
            min(ratio(one, TWICE * two), ratio(one, NO_ERROR)),
            f"error {shown(one, 'relative_error')} at factor 1, {shown(two, 'relative_error')} at 2",
        ),
        Part(
            own - others - CLEARLY, f"recall {shown(own, 'recall')} and the others' {shown(others, 'recall')} at most"
        ),
    ]


K: Final = (
    Claim(
        "12a-precision",
        "12(a)",
        "Nearly every label that is released is heavy, for all four methods and at every k; SpaceSaving lets in a few"
        " others as k grows.",
        ON_REAL,
        at_least(("k",), "precision", FOUR, NEARLY),
        {
            AGREES: "SpaceSaving alone admits labels below n/k, and on these streams few are just there.",
            IN_PART: f"Algorithm 3 lowers n/k by its margin, {margin(plan.EPSILON):,} items here, and a label that"
            " comes late is counted too"
            " high by the counter that it takes over. Neither matters where n/k is in the tens of thousands. Where it"
            " is a few hundred, or many labels stand near it as on a flat stream, many pass that should not.",
        },
    ),
    Claim(
        "12b-declines",
        "12(b)",
        "Average relative errors decline as k grows, Count-Min's apart.",
        ON_REAL,
        shrinks("k", "relative_error", (ALGORITHM_3, PUBLISHED, COUNT_SKETCH), DECLINES),
        {
            IN_PART: "The summaries get larger with k, and what they are wrong by gets smaller; but so do the counts"
            " that are released, beside which the same noise is larger. For SpaceSaving noise is what matters.",
            DISAGREES: "The summaries get larger with k, but the counts that are released get smaller, beside which the"
            " same noise is larger.",
        },
    ),
    Claim(
        "12b-count-min",
        "12(b)",
        "The average relative error of Count-Min grows with k, as rarer labels are admitted.",
        ON_REAL,
        grows("k", "relative_error", (COUNT_MIN,), 1 / DECLINES),
        {
            AGREES: "Counts of n/k shrink, the noise beside them does not: on short streams the error grows many"
            " times.",
            IN_PART: "On short streams it grows, and not modestly: n/k shrinks, the noise beside it does not. On long"
            " ones collisions are what matters, which shrink in proportion to n/k.",
            DISAGREES: "Collisions are what matters, and they shrink in proportion to n/k.",
        },
    ),
    Claim(
        "12b-small",
        "12(b)",
        "The average relative errors of SpaceSaving and CountSketch stay below 0.04 at every k.",
        ON_REAL,
        at_most(("k",), "relative_error", (ALGORITHM_3, COUNT_SKETCH), SMALL_ERROR),
        {
            AGREES: "SpaceSaving's frequent labels are counted almost exactly; what CountSketch releases is far above"
            " its envelope, and so above its error.",
            IN_PART: "It holds where n/k is far above the noise. On short streams with k in the thousands n/k is about"
            " a hundred items, and the noise of a counter ten.",
        },
    ),
    Claim(
        "12c-misra-gries",
        "12(c)",
        "The recall of Misra-Gries rises with k, as its table grows.",
        ON_REAL,
        rises("k", "recall", (PUBLISHED,), CLEARLY),
        {
            AGREES: "As in 10(c).",
            IN_PART: "The larger the table, the smaller the part of n/k that its counters are too low by; but how many"
            " heavy labels are within that part of n/k is a matter of the stream.",
            DISAGREES: "How many heavy labels are within what its counters are too low by is a matter of the stream.",
        },
    ),
    Claim(
        "12c-sketches",
        "12(c)",
        "The recall of the sketches falls as k grows, since noise takes a larger part of n/k.",
        ON_REAL,
        falls("k", "recall", SKETCHES, CLEARLY),
        {
            AGREES: "These streams are shorter than the synthetic ones and k is larger, so that noise counts.",
            IN_PART: "Noise does take a larger part of n/k, the more so the shorter the stream. Where recall is nearly"
            " 0 from the start it cannot fall, and where the labels above n/k become more spread out it rises first.",
            DISAGREES: "What costs the sketches recall is the collisions in their envelopes, at any k.",
        },
    ),
)

EPSILON: Final = (
    Claim(
        "12d-precision",
        "12(d)",
        "Every label that any of the four methods releases is heavy, at every epsilon.",
        ON_REAL,
        at_least(("epsilon",), "precision", FOUR, PERFECT),
        {
            AGREES: f"At k = {plan.K} few labels are near n/k.",
            IN_PART: f"Algorithm 3 lowers n/k by a margin for the noise, {margin(NOT_VERY_SMALL):,} items at epsilon ="
            f" {NOT_VERY_SMALL:g} and {margin(SMALLEST):,} at {SMALLEST:g}: labels that stand there are released. The"
            " shorter the stream, the more there are.",
        },
    ),
    Claim(
        "12e-error",
        "12(e)",
        "Epsilon hardly changes the average relative error, as that of the summaries themselves is larger.",
        ON_REAL,
        steady("epsilon", "relative_error", FOUR, INSENSITIVE),
        {
            AGREES: "Noise is small beside n/k at every epsilon that releases something.",
            IN_PART: "So it is where n/k is far above the noise. On the shorter streams it is not: at epsilon ="
            f" {SMALLEST:g} the noise of a counter is of {1 / SMALLEST:,.0f} items, and a sketch has less epsilon for"
            " each of its cells.",
        },
    ),
    Claim(
        "12f-recall",
        "12(f)",
        "Recall suffers at very small epsilon only, below 0.01.",
        ON_REAL,
        steady("epsilon", "recall", FOUR, CLEARLY, start=NOT_VERY_SMALL),
        {
            AGREES: f"Noise is small beside n/k from epsilon = {NOT_VERY_SMALL:g} on. {LIMIT}",
            IN_PART: "So it is where n/k is well above the noise. On shorter streams noise, also that of the cells, is"
            f" a part of n/k that counts. {LIMIT}",
        },
    ),
)

FACTOR: Final = (
    Claim(
        "12g-counters",
        "12(g)",
        "More counters than k do not make the updates of the counters slower.",
        ON_REAL,
        shrinks("factor", "update_ns", COUNTERS, TIMING),
        {AGREES: "Updates take constant time; a larger table evicts less often, so that they even get faster."},
    ),
    Claim(
        "12g-sketches",
        "12(g)",
        "More labels than k do make the updates of the sketches slower.",
        ON_REAL,
        grows("factor", "update_ns", SKETCHES, TIMING),
        {
            AGREES: f"The list of tracked labels is longer, and {max(plan.FULL.factors)} times the cells no longer fit"
            " the nearest caches.",
            IN_PART: f"Somewhat: the list of tracked labels is longer, and {max(plan.FULL.factors)} times the cells no"
            f" longer fit the nearest caches. But hashing and reading {DEPTH} rows or more takes most of the time.",
            DISAGREES: f"By less than one count timed twice may differ by: hashing and"
            f" reading {DEPTH} rows or more takes most of the time, and does not depend on it.",
        },
    ),
    Claim(
        "12h-error",
        "12(h)",
        "The average relative error falls as the factor grows.",
        ON_REAL,
        first_to_last("factor", "relative_error", FOUR, _declined),
        {
            AGREES: "More counters and more cells: less is evicted, and less collides.",
            IN_PART: "For most it does. A sketch that releases rarer labels with more memory has their larger relative"
            " errors on average.",
        },
    ),
    Claim(
        "12h-space-saving",
        "12(h)",
        "SpaceSaving has a larger error at factor 1, the only method to find rarer heavy labels there.",
        ON_REAL,
        _at_factor_one,
        {
            AGREES: "With k counters the smallest is near n/k, and a label that takes it over is counted that much too"
            " high.",
            IN_PART: "It finds more than the others. Its error is larger only where labels come late enough to take"
            " over a counter near n/k.",
        },
    ),
    Claim(
        "12i-recall",
        "12(i)",
        "Recall rises with the factor, as envelopes get tighter and thresholds lower.",
        ON_REAL,
        first_to_last("factor", "recall", FOUR, _gained),
        {
            AGREES: "Thresholds and envelopes shrink with memory.",
            IN_PART: "It rises for the counters and for Count-Min. The envelope of CountSketch shrinks with the root of"
            " the memory only, and stays above most labels.",
        },
    ),
)

TAKEAWAY: Final = (
    Claim(
        "6.4-best",
        "6.4",
        "SpaceSaving has high precision and recall in every configuration, and no method has a higher recall.",
        ON_REAL,
        together(
            at_least(SWEEPS, "precision", (ALGORITHM_3,), NEARLY),
            at_least(SWEEPS, "recall", (ALGORITHM_3,), NEARLY),
            no_lower(SWEEPS, "recall", ALGORITHM_3, (PUBLISHED, *SKETCHES), CLEARLY),
        ),
        {
            IN_PART: "It has the highest recall. Precision and recall are high wherever n/k is well above the noise and"
            f" the counters are more than k; with epsilon = {SMALLEST:g}, k in the thousands or as few counters as k,"
            " not on"
            " every stream.",
        },
    ),
    Claim(
        "6.4-sketches",
        "6.4",
        "The sketches have small errors, but pay with recall.",
        ON_REAL,
        together(
            at_most(("k", "factor"), "relative_error", SKETCHES, SMALL_ERROR),
            falls_short(("k", "factor"), "recall", SKETCHES, ALGORITHM_3, CLEARLY),
        ),
        {
            AGREES: "The envelope keeps back what it cannot tell from collisions, and what is left is far above them.",
            IN_PART: "They pay with recall everywhere. The errors of what they release are small where that is far"
            " above collisions and noise.",
        },
    ),
    Claim(
        "6.4-factor",
        "6.4",
        "The factor is a good way to raise recall, for memory.",
        ON_REAL,
        together(first_to_last("factor", "recall", FOUR, _gained), grows("factor", "memory_bytes", FOUR, MORE_MEMORY)),
        {
            AGREES: "As in 12(i).",
            IN_PART: "As in 12(i): all pay in memory, and all but CountSketch gain as much as there is to gain.",
        },
    ),
)
