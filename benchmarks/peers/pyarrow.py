"""pyarrow on the same array, one thread: group_by with a hash aggregation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.peers import Found, Work
from benchmarks.streams import TOP

if TYPE_CHECKING:
    from benchmarks.streams import Stream


def exact(stream: Stream, capacity: int) -> Work:
    """Group and count."""
    pa.set_cpu_count(1)
    table = pa.table({"x": stream.arrow})
    return Work(
        lambda: table.group_by("x", use_threads=False).aggregate([([], "count_all")]),
        lambda counts: Found(lambda: counts.sort_by([("count_all", "descending")])["x"][:TOP].to_pylist()),
    )
