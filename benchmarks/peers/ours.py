"""dptop, in the ways in which it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import dptop
from benchmarks.peers import Found, Work
from benchmarks.streams import TOP

if TYPE_CHECKING:
    from benchmarks.streams import Stream
    from dptop.oracle import LinearSketch

UPDATES = 1_000_000


def _look(summary: dptop.SpaceSaving) -> Found:
    # as private_counters(), which would build and sort a million pairs
    tables = summary._tables
    _, counters = tables.snapshot()
    sizes = [len(counts) for _, counts in counters]

    def top() -> list[Any]:
        every = np.array([count for _, counts in counters for count in counts], dtype=np.uint64)
        first = np.cumsum([0, *sizes])
        best = np.argsort(every, kind="stable")[: -TOP - 1 : -1]
        owners = np.searchsorted(first, best, side="right") - 1
        return [label for p, i in zip(owners, best - first[owners], strict=True) for label in tables.labels(p, [i])]

    label_bytes = 0
    if tables.kind == "strings":
        everywhere = ((p, list(range(size))) for p, size in enumerate(sizes))
        label_bytes = sum(len(str(label)) for p, positions in everywhere for label in tables.labels(p, positions))
    return Found(top, tables.heap_bytes(), {"label_bytes": label_bytes, "tracked": sum(sizes)})


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


def arrow(stream: Stream, capacity: int) -> Work:
    """`extend` of an Arrow array where `array` takes NumPy."""
    return _counting(stream, dptop.SpaceSaving(capacity), stream.arrow)


def sequence(stream: Stream, capacity: int) -> Work:
    """`extend` of a list of Python objects."""
    return _counting(stream, dptop.SpaceSaving(capacity), stream.list)


def walk(stream: Stream, capacity: int) -> Work:
    """Read each object of the list once, in C, by `max`: what no one who counts a list can save."""
    items = stream.list
    return Work(lambda: max(items))


def update(stream: Stream, capacity: int) -> Work:
    """Call `update` for each item, the loop around it included."""
    items = stream.head(UPDATES).list
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


def count_min_5(stream: Stream, width: int) -> Work:
    """Count-Min, an array at once; its capacity is the width."""
    return _sketching(stream, dptop.CountMin(width, 5))


def count_min_25(stream: Stream, width: int) -> Work:
    """Count-Min with as many rows as an envelope asks for."""
    return _sketching(stream, dptop.CountMin(width, 25))


def count_sketch_25(stream: Stream, width: int) -> Work:
    """CountSketch with as many rows."""
    return _sketching(stream, dptop.CountSketch(width, 25))


def _sketching(stream: Stream, sketch: LinearSketch) -> Work:
    def count() -> LinearSketch:
        sketch.extend(stream.values)
        return sketch

    return Work(count, lambda sketch: Found(summary_bytes=sketch._sketch.heap_bytes()))
