"""What sections 1, 4.3 and 7 of the paper rest on the experiments, in our words, judged on every stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from experiments import plan
from experiments.report.claims.claim import AGREES, EVERYWHERE, IN_PART, ON_REAL, ON_ZIPF, Claim, Part
from experiments.report.claims.comparisons import (
    CLEARLY,
    NO_ERROR,
    PERFECT,
    SLIGHTLY,
    SWEEPS,
    TIMING,
    as_plain,
    no_higher,
    no_lower,
    ratio,
    ratio_no_higher,
    shrinks,
    together,
)
from experiments.report.claims.evidence import NotMeasuredError
from experiments.report.claims.words import shown
from experiments.report.keys import ALGORITHM_3, COUNT_MIN, COUNT_SKETCH, COUNTERS, PLAIN_OF, PUBLISHED, SKETCHES
from experiments.report.noise import gamma

if TYPE_CHECKING:
    from experiments.report.claims.evidence import Evidence
    from experiments.results import Row

__all__ = ["CLAIMS"]

OTHERS_PLAIN: Final = tuple(PLAIN_OF[method] for method in (PUBLISHED, *SKETCHES))
MATCHING: Final = 1.5
"""Times as much memory as another to be called more: labels and counters are laid out differently."""
PROPORTIONAL: Final = 1.5
"""How far bytes a counter may differ between the smallest table and the largest: tables grow in steps."""


SMALLEST: Final = min(plan.FULL.epsilons)
COUNTERS_THERE: Final = plan.FACTOR * plan.K
"""K where epsilon is swept."""


def _gamma(row: Row) -> float:
    """Return the paper's margin for the noise in a release."""
    if row.epsilon is None or row.delta is None:
        raise NotMeasuredError(row.method)
    return gamma(row.epsilon, row.delta)


def _noise_is_smaller(evidence: Evidence, stream: str) -> list[Part]:
    """n/K exceeds gamma: one part for each epsilon."""
    points = evidence.points(stream, ALGORITHM_3, "epsilon")
    if not points:
        raise NotMeasuredError(stream)
    return [
        Part(
            ratio(rows[0].length / rows[0].capacity, _gamma(rows[0])),
            f"n/K {rows[0].length / rows[0].capacity:,.0f}, gamma {_gamma(rows[0]):,.0f} at epsilon = {epsilon:g}",
        )
        for epsilon, rows in points.items()
    ]


def _finds_all(evidence: Evidence, stream: str) -> list[Part]:
    """Where n/(2k) > 2 (gamma + 1), Algorithm 3 finds every heavy label, by the mean at each point."""
    recalls = evidence.means(stream, ALGORITHM_3, SWEEPS, "recall")
    covered = {}
    for (along, value), recall in recalls.items():
        row = evidence.points(stream, ALGORITHM_3, along)[value][0]
        if row.k and row.factor and row.factor >= 2 and row.length / (2 * row.k) > 2 * (_gamma(row) + 1):
            covered[along, value] = recall
    if not covered:
        raise NotMeasuredError(stream)
    least = min(covered.values())
    return [Part(least - PERFECT, f"recall {shown(least, 'recall')} at the least")]


def _as_much_at_two(evidence: Evidence, stream: str) -> list[Part]:
    """With twice k counters SpaceSaving does as well as with the most that were tried."""
    recalls = evidence.means(stream, ALGORITHM_3, ("factor",), "recall")
    precisions = evidence.means(stream, ALGORITHM_3, ("factor",), "precision")
    parts = []
    for metric, means in (("recall", recalls), ("precision", precisions)):
        if ("factor", 2) not in means or len(means) < 2:
            raise NotMeasuredError(stream)
        at_two, at_most = means["factor", 2], means[max(means)]
        words = f"{metric} {shown(at_two, 'recall')} at factor 2, {shown(at_most, 'recall')} at {max(means)[1]:g}"
        parts.append(Part(at_two - at_most + CLEARLY, words))
    return parts


def _in_proportion(evidence: Evidence, stream: str) -> list[Part]:
    """Memory of SpaceSaving is in proportion to its capacity."""
    each = {
        rows[0].capacity: rows[0].memory_bytes / rows[0].capacity
        for rows in evidence.points(stream, ALGORITHM_3, "k").values()
    }
    if len(each) < 2:
        raise NotMeasuredError(stream)
    low, high = min(each.values()), max(each.values())
    return [Part(ratio(PROPORTIONAL * low, high), f"{low:.0f} to {high:.0f} bytes a counter")]


CLAIMS: Final = (
    Claim(
        "1-misra-gries",
        "1",
        "For any epsilon and memory private SpaceSaving is at least as good as private Misra-Gries, in recall and"
        " error, with as much memory and time.",
        EVERYWHERE,
        together(
            no_lower(SWEEPS, "recall", ALGORITHM_3, (PUBLISHED,), SLIGHTLY),
            no_higher(SWEEPS, "relative_error", ALGORITHM_3, (PUBLISHED,), NO_ERROR),
            ratio_no_higher(SWEEPS, "memory_bytes", ALGORITHM_3, (PUBLISHED,), MATCHING),
            ratio_no_higher(SWEEPS, "update_ns", ALGORITHM_3, (PUBLISHED,), TIMING),
        ),
        {
            AGREES: "Its counters are right for labels that are frequent from the start; those of Misra-Gries are too"
            " low for all of them.",
            IN_PART: "In recall, memory and time it is. Where labels come late and counters are few, some of its counts"
            " are far too high; and where it alone finds the rarer labels, it has their larger relative errors.",
        },
    ),
    Claim(
        "1-plain",
        "1",
        "Without privacy SpaceSaving is at least as good as Misra-Gries and the sketches, in recall and error.",
        EVERYWHERE,
        together(
            no_lower(SWEEPS, "recall", PLAIN_OF[ALGORITHM_3], OTHERS_PLAIN, SLIGHTLY),
            no_higher(SWEEPS, "relative_error", PLAIN_OF[ALGORITHM_3], OTHERS_PLAIN, NO_ERROR),
        ),
        {
            AGREES: "Its counters are never too low, and right for labels that are frequent from the start.",
            IN_PART: "In recall it is, as its counters are never too low. On streams where labels come late its counts"
            " are too high by the counter they take over, and a sketch of many times its memory has smaller errors.",
        },
    ),
    Claim(
        "1-retained",
        "1",
        "With privacy SpaceSaving still has the highest recall.",
        EVERYWHERE,
        no_lower(SWEEPS, "recall", ALGORITHM_3, (PUBLISHED, COUNT_MIN, COUNT_SKETCH), CLEARLY),
        {AGREES: "Its threshold adds one counter's noise to n/k or n/K; an envelope adds collisions, twice or thrice."},
    ),
    Claim(
        "4.3-noise",
        "4.3",
        "On large streams n/K is larger than the margin for the noise, gamma.",
        EVERYWHERE,
        _noise_is_smaller,
        {
            AGREES: "It is a matter of n, K and epsilon alone.",
            IN_PART: f"It is a matter of n, K and epsilon alone: at epsilon = {SMALLEST:g} gamma is"
            f" {gamma(SMALLEST):,.0f} items, more than n/K of a stream of fewer than"
            f" {gamma(SMALLEST) * COUNTERS_THERE / 1e6:.1f} million items at K = {COUNTERS_THERE}.",
        },
    ),
    Claim(
        "4.3-finds",
        "4.3",
        "If n/(2k) > 2 (gamma + 1), Algorithm 3 with 2k counters or more finds every heavy label.",
        EVERYWHERE,
        _finds_all,
        {
            AGREES: "Then its threshold is n/k less gamma, and noise takes a heavy label below it with a chance of less"
            " than delta."
        },
    ),
    Claim(
        "4.3-capacity",
        "4.3",
        "A capacity of a small multiple of k is enough: with 2k counters recall and precision are as with many more.",
        ON_REAL,
        _as_much_at_two,
        {
            AGREES: "The threshold is then n/k less the margin for the noise, whatever more counters there are.",
            IN_PART: "For recall it is. Precision gains from more counters where labels come late.",
        },
    ),
    Claim(
        "4.3-time",
        "4.3",
        "An update takes constant time, whatever the capacity.",
        ON_ZIPF,
        shrinks("k", "update_ns", (ALGORITHM_3,), TIMING),
        {AGREES: "With more counters fewer items evict one, so that it even falls."},
    ),
    Claim(
        "4.3-memory",
        "4.3",
        "Memory is in proportion to the capacity.",
        ON_ZIPF,
        _in_proportion,
        {AGREES: "A table, and no more, of as many slots as there are counters and a third."},
    ),
    Claim(
        "7-counters",
        "7",
        "Private SpaceSaving and Misra-Gries do about as well as without privacy.",
        EVERYWHERE,
        together(*(as_plain(("k",), method) for method in COUNTERS)),
        {
            AGREES: f"At epsilon = {plan.EPSILON:g} noise is small beside n/k.",
            IN_PART: f"At epsilon = {plan.EPSILON:g} noise is small beside n/k, except on short streams with k in the"
            " thousands.",
        },
    ),
    Claim(
        "7-sketches",
        "7",
        "The private sketches do nearly as well as without privacy.",
        EVERYWHERE,
        together(*(as_plain(("k",), method) for method in SKETCHES)),
        {
            IN_PART: "Their counts are. But the wrapper keeps back what does not stand above its envelope, and that"
            " takes most of their recall.",
        },
    ),
)
