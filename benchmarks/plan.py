"""What one run measures: every (name, stream, capacity), once per round."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["CAPACITIES", "EXACT", "HARD_CAPACITIES", "PLAN", "SKETCHES", "Measurement"]


class Measurement(NamedTuple):
    """The arguments of `python -m benchmarks.measure`."""

    name: str
    stream: str
    capacity: int

    @property
    def once(self) -> bool:
        """Whether one round is enough: it takes its samples itself."""
        return self.stream == "endless"


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
