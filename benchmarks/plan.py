"""What one run measures: every (name, stream, capacity), in each round or in some."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = [
    "CAPACITIES",
    "COMMANDS",
    "EXACT",
    "HARD_CAPACITIES",
    "INTEGERS",
    "PLAN",
    "ROUNDS",
    "SKETCHES",
    "SKETCH_CAPACITIES",
    "SKEWED",
    "STRINGS",
    "THREADED",
    "Measurement",
]

ROUNDS: Final = 5
FEW: Final = 3
"""Runs of what takes its time and is no close match: no goal is decided by it."""


class Measurement(NamedTuple):
    """The arguments of `python -m benchmarks.measure`."""

    name: str
    stream: str
    capacity: int

    @property
    def runs(self) -> int:
        """How many of ROUNDS rounds measure it."""
        if self.stream == "endless":
            return 1  # it takes its samples itself
        other, distinct = self.name in EXACT[3:], "distinct" in self.stream
        if other and distinct:
            return 1  # far slower, and seconds each
        return FEW if other or self.name in SKETCHES or (self.name in EXACT and distinct) else ROUNDS

    def is_due(self, number: int) -> bool:
        """Return whether round `number`, from 0, measures it: the first one does, and what is left out is spread."""
        return -(-(number + 1) * self.runs // ROUNDS) > -(-number * self.runs // ROUNDS)


CAPACITIES: Final = (1_000, 10_000, 100_000, 1_000_000)
HARD_CAPACITIES: Final = (1_000, 100_000)
SKETCH_CAPACITIES: Final = (1_000, 10_000)
INTEGERS: Final = ("int64-zipf-1.1", "int64-zipf-1.5", "int64-distinct")
STRINGS: Final = ("string-zipf-1.1", "string-zipf-1.5")
SKEWED: Final = tuple(stream for stream in (*INTEGERS, *STRINGS) if "zipf" in stream)
EXACT: Final = ("DuckDB", "Polars", "pyarrow", "pandas", "ClickHouse", "collections.Counter")
SKETCHES: Final = ("Apache DataSketches", "DuckDB approx_top_k", "ClickHouse topK")
COMMANDS: Final = (
    ("dptop top, command", "lines"),
    ("sort | uniq -c | sort -rn | head", "lines"),
    ("DuckDB command", "lines"),
    ("DuckDB command, all threads", "lines"),
    ("DuckDB in Python", "lines"),
    ("dptop top --column, CSV", "csv"),
    ("DuckDB command, column", "csv"),
    ("DuckDB in Python, column", "csv"),
    ("dptop top --column, Parquet", "parquet"),
    ("pyarrow, reading the column in batches", "parquet"),
    ("pyarrow, reading the column at once", "parquet"),
)
THREADED: Final = (("int64-zipf-1.1", 10_000), ("int64-zipf-1.1", 100_000), ("string-zipf-1.1", 10_000))

PLAN: Final = (
    *(Measurement("dptop", stream, capacity) for stream in (*INTEGERS, *STRINGS) for capacity in CAPACITIES),
    *(Measurement(name, stream, 10_000) for name in EXACT for stream in (*INTEGERS, *STRINGS)),
    *(Measurement(name, stream, capacity) for name in SKETCHES for stream in SKEWED for capacity in SKETCH_CAPACITIES),
    *(
        Measurement(name, stream, 10_000)
        for name in ("dptop, list", "reading of the list")
        for stream in ("int64-zipf-1.1", "string-zipf-1.1")
    ),
    Measurement("dptop, update", "int64-zipf-1.1", 10_000),
    Measurement("dptop, release", "int64-zipf-1.1", 65_536),
    *(
        Measurement(name, *case)
        for case in THREADED
        for name in ("dptop, partitions=2", "dptop, partitions=2 threads=2")
    ),
    *(
        Measurement("dptop, partitions=capacity/16", stream, capacity)
        for stream in (
            "int64-zipf-1.1",
            "int64-distinct",
        )  # the one for its time, the other because it fills all counters
        for capacity in (10_000, 1_000_000)
    ),
    *(
        Measurement("dptop", stream, capacity)
        for stream in ("free-slot", "far-apart", "large-weights", "sawtooth")
        for capacity in HARD_CAPACITIES
    ),
    *(Measurement(name, file, 10_000) for name, file in COMMANDS),
    Measurement("dptop top, endless", "endless", 10_000),
)
