"""What counts, and what it costs: time of one item, memory of the summary."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

import dptop
from dptop.tracked import ESTIMATES, SPACE_SAVING

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from experiments.methods.metrics import Truth

__all__ = ["EXACT", "SUMMARIES", "Counted", "count", "count_exactly"]

DEPTH: Final = 32
"""Rows of Count-Min; CountSketch has one more, as it needs an odd number."""
EXACT: Final = "exact"
"""Where everything is counted, in a summary that is none."""
SIZE: Final = 2
"""Labels that a sketch tracks, and cells of its rows, for each counter of the counter-based summaries."""


Summary = dptop.SpaceSaving | dptop.MisraGries | dptop.Tracked


class Counted(NamedTuple):
    """What has counted a stream.

    Attributes:
        summary: it; the exact counts where there is no summary.
        update_ns: CPU time of one item, in nanoseconds.
        memory_bytes: of the summary itself.
    """

    summary: Summary | Truth
    update_ns: float
    memory_bytes: int


def _tracked(
    sketch: type[dptop.CountMin] | type[dptop.CountSketch], depth: int, candidates: str
) -> Callable[[int, int], Summary]:
    return lambda capacity, seed: dptop.Tracked(sketch(SIZE * capacity, depth, seed=seed), SIZE * capacity, candidates)


SUMMARIES: Final[dict[str, Callable[[int, int], Summary]]] = {
    "space-saving, most recent": lambda capacity, _: dptop.SpaceSaving(capacity, tie="most-recent"),
    "space-saving": lambda capacity, _: dptop.SpaceSaving(capacity),
    "misra-gries": lambda capacity, _: dptop.MisraGries(capacity),
    "count-min, estimates": _tracked(dptop.CountMin, DEPTH, ESTIMATES),
    "count-sketch, estimates": _tracked(dptop.CountSketch, DEPTH + 1, ESTIMATES),
    "count-min, space-saving": _tracked(dptop.CountMin, DEPTH, SPACE_SAVING),
    "count-sketch, space-saving": _tracked(dptop.CountSketch, DEPTH + 1, SPACE_SAVING),
}
"""Empty summaries by name, from the capacity c * k and a seed for hashes."""


def count(name: str, capacity: int, seed: int, items: pa.Array) -> Counted:
    """Count a stream in one batch and one thread."""
    summary = SUMMARIES[name](capacity, seed)
    start = time.process_time_ns()
    summary.extend(items)
    taken = time.process_time_ns() - start
    if isinstance(summary, dptop.Tracked):  # memory is private, so that no public name tells it
        memory = summary._labelled.heap_bytes() + summary._cells.heap_bytes()
    else:
        memory = summary._tables.heap_bytes()
    return Counted(summary, taken / len(items), memory)


def count_exactly(truth: Truth, items: pa.Array) -> Counted:
    """Count every label, as those do who have the memory."""
    start = time.process_time_ns()
    items.value_counts()
    taken = time.process_time_ns() - start
    return Counted(truth, taken / len(items), truth.counts.memory_bytes)
