"""pyarrow on the same array, one thread: group_by with a hash aggregation, and value_counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.peers import Found, Work
from benchmarks.streams import TOP

if TYPE_CHECKING:
    from benchmarks.streams import Stream


def grouped(stream: Stream, capacity: int) -> Work:
    """Group and count."""
    pa.set_cpu_count(1)
    table = pa.table({"x": stream.arrow})
    return Work(
        lambda: table.group_by("x", use_threads=False).aggregate([([], "count_all")]),
        lambda counts: Found(lambda: counts.sort_by([("count_all", "descending")])["x"][:TOP].to_pylist()),
    )


def value_counts(stream: Stream, capacity: int) -> Work:
    """Count by the function made for it."""
    pa.set_cpu_count(1)
    values = stream.arrow

    def top(counts: pa.StructArray) -> list[object]:
        best = pc.sort_indices(counts.field("counts"), sort_keys=[("", "descending")])[:TOP]
        return counts.field("values").take(best).to_pylist()  # type: ignore[no-any-return]  # pyarrow ships no types

    return Work(lambda: pc.value_counts(values), lambda counts: Found(lambda: top(counts)))
