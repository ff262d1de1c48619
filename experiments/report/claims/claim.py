"""What a claim is, what was found of it, and how parts make a verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from experiments.report.claims.evidence import NotMeasuredError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from experiments.report.claims.evidence import Evidence

__all__ = [
    "AGREES",
    "DISAGREES",
    "EVERYWHERE",
    "IN_PART",
    "NOT_MEASURED",
    "ON_REAL",
    "ON_ZIPF",
    "UNEXPECTED",
    "VERDICTS",
    "Claim",
    "Finding",
    "Judge",
    "Part",
]

AGREES: Final = "agrees"
IN_PART: Final = "agrees in part"
DISAGREES: Final = "disagrees"
NOT_MEASURED: Final = "not measured here"
VERDICTS: Final = (AGREES, IN_PART, DISAGREES, NOT_MEASURED)

ON_ZIPF: Final = "zipf"
"""Judged on the Zipf streams."""
ON_REAL: Final = "real"
"""Judged on every other stream there is, the trace's stand-in among them."""
EVERYWHERE: Final = "all"
"""Judged on every stream there is."""

UNEXPECTED: Final = "Not what we expected; nobody has explained it yet."
"""Said in the place of a reason where the verdict is one that none was written for."""
LISTED: Final = 4
"""Parts that are shown each; of more, those that do not hold and those that come closest to that."""


class Part(NamedTuple):
    """One thing that a claim says, measured on one stream.

    Attributes:
        margin: 0 or more if the rows have it so, and how far they are from the contrary: a difference of shares, or the
            logarithm of a ratio.
        figures: what was measured, in words.
    """

    margin: float
    figures: str

    @property
    def holds(self) -> bool:
        """Whether the rows have it so."""
        return self.margin >= 0


class Finding(NamedTuple):
    """What was found of a claim.

    Attributes:
        verdict: one of `VERDICTS`.
        figures: what was measured, in words; the claim says on which kind of stream.
        margin: how far the parts are from another verdict, in the units of `Part`; None if nothing was measured. It is
            the margin of the part that would turn it, or the last of those that would have to turn together. Another
            seed gives this verdict if it moves no margin as far.
    """

    verdict: str
    figures: str
    margin: float | None


Judge: TypeAlias = "Callable[[Evidence, str], Sequence[Part]]"
"""From the evidence and a stream to the parts of a claim on it; NotMeasuredError if the rows lack what it needs."""


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes:
        id: unique, never changed: verdicts of two runs are compared by it.
        panel: the figure's panel or the section of the paper, or what it is about.
        text: the claim, in our words.
        on: ON_ZIPF, ON_REAL or EVERYWHERE.
        judge: finds the parts on one stream.
        why: the reason, by verdict.
    """

    id: str
    panel: str
    text: str
    on: str
    judge: Judge = field(repr=False)
    why: Mapping[str, str] = field(repr=False)

    def parts(self, evidence: Evidence) -> dict[str, Sequence[Part]]:
        """Return the parts by stream; streams that lack what the claim needs are left out."""
        found = {}
        for stream in evidence.streams:
            if self.on == EVERYWHERE or (stream == "zipf") == (self.on == ON_ZIPF):
                try:
                    parts = self.judge(evidence, stream)
                except NotMeasuredError:
                    continue
                if parts:
                    found[stream] = parts
        return found

    def find(self, evidence: Evidence) -> Finding:
        """Judge the claim: it agrees if every part holds on every stream, disagrees if none does on any."""
        found = self.parts(evidence)
        named = [
            Part(part.margin, part.figures if self.on == ON_ZIPF else f"{stream}, {part.figures}")
            for stream, parts in found.items()
            for part in parts
        ]
        if not named:
            return Finding(NOT_MEASURED, "", None)
        holding = [part.margin for part in named if part.holds]
        failing = [-part.margin for part in named if not part.holds]
        if not failing:
            return Finding(AGREES, _in_words(named), min(holding))
        if not holding:
            return Finding(DISAGREES, _in_words(named), min(failing))
        return Finding(IN_PART, _in_words(named), min(max(holding), max(failing)))

    def reason(self, finding: Finding) -> str:
        """Return why the verdict is what it is."""
        return "" if finding.verdict == NOT_MEASURED else self.why.get(finding.verdict, UNEXPECTED)


def _in_words(parts: Sequence[Part]) -> str:
    if len(parts) <= LISTED:
        return "; ".join(part.figures + ("" if part.holds else " (not so)") for part in parts) + "."
    by_margin = sorted(parts, key=lambda part: part.margin)
    failing = [part.figures for part in by_margin if not part.holds]
    holding = [part.figures for part in by_margin if part.holds]
    words = f"{len(holding)} of {len(parts)} comparisons hold."
    if failing:
        more = len(failing) - LISTED
        words += " Not so: " + "; ".join(failing[:LISTED]) + (f"; and {more} more." if more > 0 else ".")
    if holding:
        words += " Closest: " + "; ".join(holding[: 1 if failing else 2]) + "."
    return words
