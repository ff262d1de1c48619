"""ClickHouse in the process, by chdb, on the Arrow array, one thread: GROUP BY, and topK (Filtered Space-Saving)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import chdb
import pyarrow as pa

from benchmarks.peers import Found, Work
from benchmarks.streams import TOP

if TYPE_CHECKING:
    from benchmarks.streams import Stream

engine: Any = chdb  # types of its own only in part


def _query(stream: Stream, sql: str) -> Work:
    table = pa.table({"x": stream.arrow})
    engine.query("SELECT 1")  # starts the engine

    def count() -> str:
        items = table  # noqa: F841 - Python(items) in the query looks among the variables of the caller
        return str(engine.query(f"{sql} SETTINGS max_threads = 1", "JSONCompactEachRow"))

    return Work(count, lambda text: Found(lambda: _labels(text)))


def _labels(text: str) -> list[Any]:
    return [json.loads(line)[0] for line in text.splitlines()]


def exact(stream: Stream, capacity: int) -> Work:
    """GROUP BY, and the first 100 groups, which takes no time beside it."""
    return _query(stream, f"SELECT x, count() AS n FROM Python(items) GROUP BY x ORDER BY n DESC LIMIT {TOP}")


def approximate(stream: Stream, capacity: int) -> Work:
    """Ask topK(N, load_factor) for 100 labels or more: N * load_factor is its number of counters, the same as ours."""
    number = next(number for number in range(TOP, capacity + 1) if capacity % number == 0)
    return _query(stream, f"SELECT arrayJoin(topK({number}, {capacity // number})(x)) FROM Python(items)")
