"""Apache DataSketches: Frequent Items and Count-Min, which take one Python object per call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import datasketches

from benchmarks.peers import Found, Work

if TYPE_CHECKING:
    from benchmarks.streams import Stream

FULL = 0.75
"""A sketch of 2^lg slots holds at most 0.75 * 2^lg labels."""
SMALLEST, LARGEST = 3, 40
"""Its lg: no smaller one is made, and nobody has the memory for a larger one."""


def lg(labels: int) -> int:
    """Return the lg of the smallest Frequent Items sketch for so many labels.

    >>> lg(6), lg(7), lg(192)
    (3, 4, 8)
    """
    return next(lg for lg in range(SMALLEST, LARGEST) if holds(lg) >= labels)


def holds(lg: int) -> int:
    """Return the labels that a Frequent Items sketch of 2^lg slots can hold."""
    return int(FULL * 2**lg)


def frequent_items(stream: Stream, capacity: int) -> Work:
    """Update with each item of a list, made before the clock starts; the smallest sketch for `capacity` labels."""
    items = stream.list
    kind = datasketches.frequent_strings_sketch if isinstance(items[0], str) else datasketches.frequent_items_sketch
    sketch = kind(lg(capacity))

    def count() -> Any:
        update = sketch.update
        for item in items:
            update(item)
        return sketch

    def look(sketch: Any) -> Found:
        every = datasketches.frequent_items_error_type.NO_FALSE_NEGATIVES
        return Found(
            lambda: [row[0] for row in sketch.get_frequent_items(every)], extra={"tracked": sketch.num_active_items}
        )

    return Work(count, look)


def count_min_5(stream: Stream, width: int) -> Work:
    """Count-Min with 5 rows."""
    return _count_min(stream, width, 5)


def count_min_25(stream: Stream, width: int) -> Work:
    """Count-Min with 25 rows."""
    return _count_min(stream, width, 25)


def _count_min(stream: Stream, width: int, depth: int) -> Work:
    items = stream.list
    sketch = datasketches.count_min_sketch(depth, width)

    def count() -> Any:
        update = sketch.update
        for item in items:
            update(item)
        return sketch

    return Work(count, lambda sketch: Found(summary_bytes=sketch.get_serialized_size_bytes()))
