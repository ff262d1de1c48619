"""DuckDB on the Arrow array, one thread: exact GROUP BY, and approx_top_k (Filtered Space-Saving)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from benchmarks.peers import Found, Work
from benchmarks.streams import TOP

if TYPE_CHECKING:
    from benchmarks.streams import Stream

COUNTERS_PER_K = 3
"""approx_top_k(x, k) keeps 3 k counters (ApproxTopKState::MONITORED_VALUES_RATIO in DuckDB's source)."""


def _query(stream: Stream, sql: str) -> Work:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("items", pa.table({"x": stream.arrow}))

    def count() -> list[Any]:
        return connection.execute(sql).fetchall()

    return Work(count, lambda rows: Found(lambda: [row[0] for row in rows]))


def exact(stream: Stream, capacity: int) -> Work:
    """GROUP BY, and the first 100 groups, which takes no time beside it."""
    return _query(stream, f"SELECT x, count(*) AS n FROM items GROUP BY x ORDER BY n DESC LIMIT {TOP}")


def approximate(stream: Stream, capacity: int) -> Work:
    """approx_top_k with as many counters as ours."""
    k = capacity // COUNTERS_PER_K
    return _query(stream, f"SELECT unnest(approx_top_k(x, {k})) FROM items")
