"""Claims and verdicts on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from benchmarks.markdown import table
from experiments.plan import DELTA
from experiments.report.claims import (
    DISAGREES,
    NOT_MEASURED,
    OURS,
    PAPER,
    VERDICTS,
)
from experiments.report.claims.comparisons import CLEARLY, NEARLY, NO_ERROR, PERFECT, TIMING
from experiments.report.page.text import bullets, paragraph

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from experiments.report.claims import Claim, Finding

__all__ = ["beyond", "how", "paper", "summary", "unmeasured"]

HOW: Final = """Every verdict is computed from the raw results, by `experiments/report/claims`; none is written down. A
claim has a part for each method or comparison that it is about. It agrees if all parts hold on all streams that it is
judged on, disagrees if none holds on any, and agrees in part otherwise. What the paper says of synthetic data is judged
on the Zipf streams; what it says of its trace on all others. Nothing hangs on equality: recall or precision is perfect
from {perfect:g} on and high from {nearly:g} on, recall is higher or lower if it differs by {clearly:g}, errors are the
same if they differ by less than {error:g} of a count, and times if they differ by less than a factor of {timing:g}.
Other margins stand beside their claims in the code. Places without a heavy label have no say on heavy labels. Figures
are means over repetitions and draws. SpaceSaving, Misra-Gries, Count-Min and CountSketch, without another word, are the
paper's four private methods at delta = {delta:g}, and an error is an average relative error."""


def summary(found: Mapping[str, Finding]) -> str:
    """Count verdicts, and list what disagrees."""

    def row(title: str, claims: Sequence[Claim]) -> list[str]:
        verdicts = [found[claim.id].verdict for claim in claims]
        return [title, *(f"{verdicts.count(verdict) or ''}" for verdict in VERDICTS)]

    everything = [claim for claims in PAPER.values() for claim in claims]
    counts = [row(title, claims) for title, claims in PAPER.items()]
    disagreeing = [claim for claim in everything if found[claim.id].verdict == DISAGREES]
    text = "## In short\n\n" + table(
        ("claims of the paper", *VERDICTS), [*counts, row("**all**", everything), row("*our own claims*", OURS)]
    )
    if disagreeing:
        text += "\nWhat the paper says and these results contradict:\n\n"
        text += bullets(f"{claim.panel}: {claim.text}" for claim in disagreeing)
    return text


def how() -> str:
    """Say how a verdict is reached."""
    text = HOW.format(perfect=PERFECT, nearly=NEARLY, clearly=CLEARLY, error=NO_ERROR, timing=TIMING, delta=DELTA)
    return "## How a verdict is reached\n\n" + paragraph(text)


def paper(found: Mapping[str, Finding], *, reasons: bool) -> str:
    """Return the paper's claims, group by group."""
    groups = (f"### {title}\n\n{_claims(claims, found, reasons=reasons)}" for title, claims in PAPER.items())
    return "## The paper's claims\n\n" + "\n".join(groups)


def beyond(found: Mapping[str, Finding], *, reasons: bool) -> str:
    """Return our own claims."""
    opening = "None of these is in the paper; they are judged in the same way, on every stream."
    return "## Beyond the paper\n\n" + paragraph(opening) + "\n" + _claims(OURS, found, reasons=reasons)


def unmeasured(found: Mapping[str, Finding]) -> list[str]:
    """Return the claims that the rows have nothing for."""
    claims = [claim for group in (*PAPER.values(), OURS) for claim in group]
    return [f"{claim.panel}, {claim.text}" for claim in claims if found[claim.id].verdict == NOT_MEASURED]


def _claims(claims: Sequence[Claim], found: Mapping[str, Finding], *, reasons: bool) -> str:
    def item(claim: Claim) -> str:
        finding = found[claim.id]
        nested = [f"Measured: {finding.figures}"] if finding.figures else []
        if reasons and (why := claim.reason(finding)):
            nested.append(f"Why: {why}")
        return bullets([f"**{claim.panel}, {finding.verdict}.** {claim.text}"]) + bullets(nested, depth=1)

    return "".join(map(item, claims))
