"""The frontier as tables: labels released and their error against memory, at equal epsilon and delta."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from benchmarks.markdown import table
from experiments.methods import METHODS
from experiments.report.claims import NotMeasuredError
from experiments.report.claims.words import NAMES, shown
from experiments.report.keys import ALGORITHM_3, BOUNDED, COUNTERS, HISTOGRAM, PUBLISHED
from experiments.report.page.text import paragraph

if TYPE_CHECKING:
    from experiments.report.claims import Evidence
    from experiments.report.series import Metric

__all__ = ["tables"]

MOST_ROWS: Final = 7
"""Of a table; of more capacities every second is shown, the largest included. The raw results have all."""


def tables(evidence: Evidence) -> str:
    """Return one table for each stream and each (epsilon, delta)."""
    sections = []
    for stream in evidence.streams:
        try:
            budgets = evidence.budgets(stream)
        except NotMeasuredError:
            continue
        for budget in budgets:
            head = f"### {stream}, epsilon = {budget[0]:g}, delta = {budget[1]:g}\n\n"
            sections.append(head + _table(evidence, stream, budget))
    if not sections:
        return ""
    opening = paragraph(
        "No share is asked for: each method releases all it can. *n (e)*: n labels on average, whose counts are off by"
        " e items on average. A summary takes the same memory whatever is released from it. The exact histogram is the"
        " ceiling; its memory is that of labels and counts alone, and grows with the labels of the stream."
    )
    return "## The frontier\n\n" + opening + "\n" + "\n".join(sections)


def _table(evidence: Evidence, stream: str, budget: tuple[float, float]) -> str:
    methods: tuple[str, ...] = (*BOUNDED, HISTOGRAM)
    metrics: tuple[Metric, ...] = ("released", "absolute_error", "memory_bytes")
    labels, errors, memory = (
        {method: _measured(evidence, stream, method, budget, metric) for method in methods} for metric in metrics
    )
    capacities = sorted(set().union(*(labels[method] for method in BOUNDED)))
    if len(capacities) > MOST_ROWS:
        capacities = capacities[::-2][::-1]

    def cell(method: str, capacity: int) -> str:
        if capacity not in labels[method]:
            return "-"
        error = errors[method].get(capacity)
        return shown(labels[method][capacity], "released") + (f" ({shown(error, 'absolute_error')})" if error else "")

    def size(method: str, capacity: int) -> str:
        return shown(memory[method][capacity], "memory_bytes") if capacity in memory[method] else "-"

    rows = [
        [f"{at:,}", size(ALGORITHM_3, at), size(PUBLISHED, at), *(cell(method, at) for method in BOUNDED)]
        for at in capacities
    ]
    title = METHODS[HISTOGRAM].title
    rows += [
        [f"all {at:,} labels", size(HISTOGRAM, at), "", f"{title}: {cell(HISTOGRAM, at)}", *[""] * (len(BOUNDED) - 1)]
        for at in list(labels[HISTOGRAM])[-1:]
    ]
    memories = (f"memory of {NAMES[method]}" for method in COUNTERS)
    return table(("counters", *memories, *(NAMES[method] for method in BOUNDED)), rows)


def _measured(
    evidence: Evidence, stream: str, method: str, budget: tuple[float, float], metric: Metric
) -> dict[int, float]:
    try:
        return evidence.frontier(stream, method, budget, metric)
    except NotMeasuredError:
        return {}
