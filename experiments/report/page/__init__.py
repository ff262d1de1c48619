"""Raw rows -> docs/experiments.md: what was run, what the paper claims, what was measured, agrees or not, and why."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from dptop.atomic import replacing
from experiments.report import claims
from experiments.report.page import frontier, setup, verdicts
from experiments.report.page.text import bullets, paragraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from experiments.results import Row

__all__ = ["text", "write"]


def write(rows: Sequence[Row], made_by: Mapping[str, Any], figures: Iterable[Path], path: Path) -> None:
    """Write the page, whole or not at all.

    Args:
        rows: raw results, all of one run.
        made_by: what they were made by, as in the file of the rows.
        figures: the files of the figures, which the page links.
        path: of the page.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, private=False) as file:
        file.write(text(rows, made_by, figures, path.parent).encode())


def text(rows: Sequence[Row], made_by: Mapping[str, Any], figures: Iterable[Path], folder: Path) -> str:
    """Return the page, as it is to stand in `folder`.

    Reasons are given where they are founded: on the streams of everybody, whole; not for a quick run, nor for a trace
    of the user's own, which nobody has looked at.
    """
    evidence = claims.Evidence(rows)
    found = claims.judged(evidence)
    quick = bool(made_by.get("quick", False))
    reasons = not quick and "trace" not in made_by.get("streams", {})
    sections = (
        _opening(quick=quick),
        verdicts.summary(found),
        setup.run(rows, made_by),
        setup.differences(rows, folder),
        verdicts.how(),
        _figures(figures, folder),
        verdicts.paper(found, reasons=reasons),
        verdicts.beyond(found, reasons=reasons),
        frontier.tables(evidence),
        setup.missing(made_by, verdicts.unmeasured(found)),
    )
    return "\n".join(section for section in sections if section)


def _opening(*, quick: bool) -> str:
    opening = "# The paper's experiments, repeated\n\n" + paragraph(
        "Written by `make reproduce` from its raw results; not edited. Section 6 of *An Iconic Heavy Hitter Algorithm"
        " Made Private* (R. Holland) compares four private methods that find the heavy labels of a stream. This page"
        " says, claim by claim and in our words, what was measured here, whether it agrees, and why. It then compares"
        " what the paper does not: `StableThreshold`, the other releases of sketches, and the exact histogram that"
        " nothing private can be expected to beat."
    )
    warning = "**This was a quick run, to see that all of it runs: its streams are too short for conclusions.**"
    return opening + ("\n" + paragraph(warning) if quick else "")


def _figures(figures: Iterable[Path], folder: Path) -> str:
    links = [
        f"[{figure.stem.replace('-', ' ', 1).replace('-', ', ', 1).capitalize()}]({os.path.relpath(figure, folder)})"
        for figure in sorted(figures)
    ]
    return "## Figures\n\n" + bullets(links) if links else ""
