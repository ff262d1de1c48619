"""Claims and verdicts: every statement of the paper's experiments in our words, and what the raw rows say of it.

No verdict is written down: each is computed from the rows. A claim has parts, one for each method or comparison that it
is about; it agrees if all of them hold on every stream it is judged on, and disagrees if none holds on any.

    Row -> Evidence (means) -> comparisons (parts, with their margins) -> Claim.find -> Finding
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from experiments.report.claims import elsewhere, figure_10, figure_11, figure_12, ours
from experiments.report.claims.claim import (
    AGREES,
    DISAGREES,
    EVERYWHERE,
    IN_PART,
    NOT_MEASURED,
    ON_REAL,
    ON_ZIPF,
    UNEXPECTED,
    VERDICTS,
    Claim,
    Finding,
    Part,
)
from experiments.report.claims.evidence import Evidence, NotMeasuredError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from experiments.results import Row

__all__ = [
    "AGREES",
    "DISAGREES",
    "EVERYWHERE",
    "IN_PART",
    "NOT_MEASURED",
    "ON_REAL",
    "ON_ZIPF",
    "OURS",
    "PAPER",
    "UNEXPECTED",
    "VERDICTS",
    "Change",
    "Claim",
    "Evidence",
    "Finding",
    "NotMeasuredError",
    "Part",
    "changed",
    "every",
    "judged",
]

PAPER: Final[dict[str, tuple[Claim, ...]]] = {
    "Zipf streams, k varies": figure_10.CLAIMS,
    "Zipf streams, skew varies": figure_11.SKEW,
    "Zipf streams, epsilon varies": figure_11.EPSILON,
    "Zipf streams, in sum": figure_11.TAKEAWAY,
    "Streams in the trace's place, k varies": figure_12.K,
    "Streams in the trace's place, epsilon varies": figure_12.EPSILON,
    "Streams in the trace's place, the factor varies": figure_12.FACTOR,
    "Streams in the trace's place, in sum": figure_12.TAKEAWAY,
    "What other sections rest on this": elsewhere.CLAIMS,
}
"""The paper's claims, by what they are about."""
OURS: Final = ours.CLAIMS
"""This project's own."""


class Change(NamedTuple):
    """A claim whose verdict differs between two runs."""

    claim: Claim
    first: Finding
    second: Finding

    def __str__(self) -> str:
        """Return it in one line."""
        first, second = (f"{found.verdict} ({found.figures or 'no rows'})" for found in (self.first, self.second))
        return f"{self.claim.id}: {self.claim.text} First: {first}. Second: {second}."


def every() -> tuple[Claim, ...]:
    """Return all claims, the paper's first."""
    return (*(claim for group in PAPER.values() for claim in group), *OURS)


def judged(evidence: Evidence) -> dict[str, Finding]:
    """Return what the rows say of each claim, by its id."""
    return {claim.id: claim.find(evidence) for claim in every()}


def changed(rows: Iterable[Row], other_rows: Iterable[Row]) -> list[Change]:
    """Return the claims whose verdict differs between two runs; none means that the seed changes no conclusion."""
    first, second = judged(Evidence(rows)), judged(Evidence(other_rows))
    pairs = ((claim, first[claim.id], second[claim.id]) for claim in every())
    return [Change(*pair) for pair in pairs if pair[1].verdict != pair[2].verdict]
