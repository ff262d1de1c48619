"""Polars on the same memory, one thread (POLARS_MAX_THREADS): group_by by the streaming engine, its faster one here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from benchmarks.peers import Found, Work
from benchmarks.streams import TOP

if TYPE_CHECKING:
    from benchmarks.streams import Stream


def exact(stream: Stream, capacity: int) -> Work:
    """Group and count."""
    if pl.thread_pool_size() != 1:
        raise RuntimeError("POLARS_MAX_THREADS must be 1 before Polars is imported. Run python -m benchmarks.measure.")
    column = pl.from_arrow(stream.arrow)
    assert isinstance(column, pl.Series)  # noqa: S101 - an Arrow array becomes a Series; for the type checker
    frame = column.alias("x").to_frame().lazy()

    def count() -> pl.DataFrame:
        return frame.group_by("x").len().collect(engine="streaming")

    return Work(count, lambda counts: Found(lambda: counts.top_k(TOP, by="len")["x"].to_list()))
