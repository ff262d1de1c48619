"""dptop, in the ways in which it is called."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import dptop
from benchmarks.peers import Found, Work
from benchmarks.streams import TOP

if TYPE_CHECKING:
    from benchmarks.streams import Stream

UPDATES = 1_000_000


def _look(summary: dptop.SpaceSaving) -> Found:
    # as private_counters(), which would build and sort a million pairs
    tables = summary._tables
    _, counters = tables.snapshot()
    ranked = [(count, p, position) for p, (_, counts) in enumerate(counters) for position, count in enumerate(counts)]
    top = [label for _, p, position in heapq.nlargest(TOP, ranked) for label in tables.labels(p, [position])]
    label_bytes = 0
    if tables.kind == "strings":
        everywhere = ((p, list(range(len(counts)))) for p, (_, counts) in enumerate(counters))
        label_bytes = sum(len(str(label)) for p, positions in everywhere for label in tables.labels(p, positions))
    return Found(top, tables.heap_bytes(), {"label_bytes": label_bytes, "tracked": len(ranked)})


def _counting(stream: Stream, summary: dptop.SpaceSaving, items: Any, threads: int = 1) -> Work:
    if stream.prologue is not None:
        summary.extend(stream.prologue, weights=stream.prologue_weights)
    weights = None if stream.weights is None or (stream.weights == 1).all() else stream.weights

    def count() -> dptop.SpaceSaving:
        summary.extend(items, weights=weights, threads=threads)
        return summary

    return Work(count, _look)


def array(stream: Stream, capacity: int) -> Work:
    """`extend` of an array: NumPy for integers, Arrow for strings."""
    return _counting(stream, dptop.SpaceSaving(capacity), stream.values)


def sequence(stream: Stream, capacity: int) -> Work:
    """`extend` of a list of Python objects."""
    return _counting(stream, dptop.SpaceSaving(capacity), stream.list)


def walk(stream: Stream, capacity: int) -> Work:
    """Read each object of the list once, in C, by `max`: what no one who counts a list can save."""
    items = stream.list
    return Work(lambda: max(items))


def update(stream: Stream, capacity: int) -> Work:
    """Call `update` for each item, the loop around it included."""
    items = stream.list[:UPDATES]
    summary = dptop.SpaceSaving(capacity)

    def count() -> dptop.SpaceSaving:
        for item in items:
            summary.update(item)
        return summary

    return Work(count, items=len(items))


def released(stream: Stream, capacity: int) -> Work:
    """Release a summary that is full: calibration, noise, threshold, intervals and order. The figure is per release."""
    summary = dptop.SpaceSaving(capacity)
    summary.extend(stream.values)
    return Work(
        lambda: dptop.release(summary, epsilon=1.0, delta=1e-9),
        lambda result: Found(extra={"rows": len(result)}),
        items=1,
    )


def two_partitions(stream: Stream, capacity: int) -> Work:
    """Two tables, one worker."""
    return _counting(stream, dptop.SpaceSaving(capacity, partitions=2), stream.values)


def two_threads(stream: Stream, capacity: int) -> Work:
    """Two tables, two workers."""
    return _counting(stream, dptop.SpaceSaving(capacity, partitions=2), stream.values, threads=2)


def small_partitions(stream: Stream, capacity: int) -> Work:
    """Tables of 16 counters."""
    return _counting(stream, dptop.SpaceSaving(capacity, partitions=capacity // 16), stream.values)
