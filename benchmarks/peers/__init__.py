"""Who is measured: one file per family, one function per way to count.

A function gets the stream and the number of counters, prepares everything that is not to be measured, and returns the
`Work`. The clocks run while `count` does; `look` then says what was found.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.streams import Stream

__all__ = ["DISTRIBUTIONS", "PEERS", "Found", "Work", "peer"]

PEERS: Final = {
    "dptop": "ours:array",
    "dptop, Arrow": "ours:arrow",
    "dptop, list": "ours:sequence",
    "reading of the list": "ours:walk",
    "dptop, update": "ours:update",
    "dptop, release": "ours:released",
    "dptop, partitions=2": "ours:two_partitions",
    "dptop, partitions=2 threads=2": "ours:two_threads",
    "dptop, partitions=capacity/16": "ours:small_partitions",
    "dptop CountMin, 5 rows": "ours:count_min_5",
    "dptop CountMin, 25 rows": "ours:count_min_25",
    "dptop CountSketch, 25 rows": "ours:count_sketch_25",
    "Apache DataSketches Count-Min, 5 rows": "datasketches:count_min_5",
    "Apache DataSketches Count-Min, 25 rows": "datasketches:count_min_25",
    "DuckDB": "duckdb:exact",
    "Polars": "polars:exact",
    "pyarrow group_by": "pyarrow:grouped",
    "pyarrow value_counts": "pyarrow:value_counts",
    "pandas": "pandas:exact",
    "ClickHouse": "clickhouse:exact",
    "collections.Counter": "counter:exact",
    "Apache DataSketches": "datasketches:frequent_items",
    "DuckDB approx_top_k": "duckdb:approximate",
    "ClickHouse topK": "clickhouse:approximate",
    "dptop top, command": "commands:dptop_lines",
    "sort | uniq -c | sort -rn | head": "commands:sort_uniq",
    "DuckDB command": "commands:duckdb_lines",
    "DuckDB command, all threads": "commands:duckdb_lines_threads",
    "DuckDB in Python": "commands:duckdb_lines_python",
    "dptop top --column, CSV": "commands:dptop_csv",
    "DuckDB command, column": "commands:duckdb_csv",
    "DuckDB in Python, column": "commands:duckdb_csv_python",
    "dptop top --column, Parquet": "commands:dptop_parquet",
    "pyarrow, reading the column in batches": "commands:pyarrow_batches",
    "pyarrow, reading the column at once": "commands:pyarrow_at_once",
    "dptop top, endless": "commands:dptop_endless",
}
"""Name in the table -> module:function here. A module is imported only where it is measured."""

DISTRIBUTIONS: Final = (
    *("dptop", "datasketches", "duckdb", "duckdb-cli", "polars", "pyarrow", "pandas", "numpy", "chdb"),
    "chdb-core",
)
"""Packages whose versions belong to the results."""


@dataclass(frozen=True)
class Found:
    """What there is to say after counting."""

    top: Callable[[], list[Any]] | None = None
    """Finds the most frequent labels, at least 100 if there are as many, the most frequent first. It is called only
    where the truth is known: to pick them among ten million takes as long as to count them."""
    summary_bytes: int | None = None
    """Memory of the summary, by its own account."""
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """What is measured, and how to look at its result."""

    count: Callable[[], Any]
    look: Callable[[Any], Found] = lambda _: Found()
    items: int | None = None
    """Items counted, where they are not the whole stream."""


def peer(name: str) -> Callable[[Stream, int], Work]:
    """Return the function behind a name. ImportError where its package is not installed."""
    module, function = PEERS[name].split(":")
    found: Callable[[Stream, int], Work] = getattr(importlib.import_module(f"benchmarks.peers.{module}"), function)
    return found
