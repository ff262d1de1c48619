"""What one run measures: every (name, stream, capacity), in each round or in some."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = [
    "BEST_EXACT",
    "CAPACITIES",
    "COMMANDS",
    "EXACT",
    "HARD_CAPACITIES",
    "INTEGERS",
    "LINEAR",
    "LINEAR_WIDTH",
    "PLAN",
    "ROUNDS",
    "SKETCHES",
    "SKETCH_CAPACITIES",
    "SKEWED",
    "STRINGS",
    "THREADED",
    "TIGHT",
    "Measurement",
]

ROUNDS: Final = 5
FEW: Final = 3
"""Runs of what is no close match: no goal is decided by it."""


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
        distinct = "distinct" in self.stream
        if distinct and self.name in SLOWER_EXACT:
            return 1  # far slower, and seconds each
        few = self.name in (*SLOWER_EXACT, *SKETCHES, *LINEAR_PEERS, *SLOWER_COMMANDS) or (
            distinct and self.name in EXACT
        )
        return FEW if few else ROUNDS

    def is_due(self, number: int) -> bool:
        """Return whether round `number`, from 0, measures it: the first one does, and what is left out is spread."""
        return -(-(number + 1) * self.runs // ROUNDS) > -(-number * self.runs // ROUNDS)


CAPACITIES: Final = (1_000, 10_000, 100_000, 1_000_000)
HARD_CAPACITIES: Final = (1_000, 100_000)
TIGHT: Final = 384
"""Few enough counters that recalls differ, and a number that every sketch can have: DataSketches 3/4 of a power of 2,
DuckDB a multiple of 3, ClickHouse 3 for each of 128 labels. At Zipf 1.5 all recalls are 1 with as many."""
SKETCH_CAPACITIES: Final = (TIGHT, 10_000)
INTEGERS: Final = ("int64-zipf-1.1", "int64-zipf-1.5", "int64-distinct")
STRINGS: Final = ("string-zipf-1.1", "string-zipf-1.5", "string-distinct")
SKEWED: Final = tuple(stream for stream in (*INTEGERS, *STRINGS) if "zipf" in stream)
FLATTER: Final = ("int64-zipf-1.1", "string-zipf-1.1")
BEST_EXACT: Final = ("DuckDB", "Polars", "pyarrow group_by", "pyarrow value_counts")
"""The exact counts of which goals compare with the fastest."""
EXACT: Final = (*BEST_EXACT, "pandas", "ClickHouse", "collections.Counter")
SLOWER_EXACT: Final = EXACT[3:]
"""Those that were the fastest on no stream; a goal still compares with value_counts should it be."""
SKETCHES: Final = ("Apache DataSketches", "DuckDB approx_top_k", "ClickHouse topK")
LINEAR: Final = {
    "dptop CountMin, 5 rows": "Apache DataSketches Count-Min, 5 rows",
    "dptop CountMin, 25 rows": "Apache DataSketches Count-Min, 25 rows",
    "dptop CountSketch, 25 rows": None,
}
"""The linear sketches, and who counts in the same way: no package of Python has a CountSketch."""
LINEAR_PEERS: Final = tuple(name for name in LINEAR.values() if name)
LINEAR_WIDTH: Final = 10_000
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
SLOWER_COMMANDS: Final = (
    *("DuckDB command, all threads", "DuckDB in Python", "DuckDB in Python, column"),
    "pyarrow, reading the column at once",
)
"""Beside the commands that goals compare with."""
THREADED: Final = (("int64-zipf-1.1", 10_000), ("int64-zipf-1.1", 100_000), ("string-zipf-1.1", 10_000))

PLAN: Final = (
    *(Measurement("dptop", stream, capacity) for stream in (*INTEGERS, *STRINGS) for capacity in CAPACITIES),
    *(Measurement("dptop", stream, TIGHT) for stream in FLATTER),
    *(Measurement("dptop, Arrow", stream, 10_000) for stream in INTEGERS),
    *(Measurement(name, stream, 10_000) for name in EXACT for stream in (*INTEGERS, *STRINGS)),
    *(Measurement(name, stream, TIGHT) for name in SKETCHES for stream in FLATTER),
    *(Measurement(name, stream, 10_000) for name in SKETCHES for stream in SKEWED),
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
    *(Measurement(name, "int64-zipf-1.1", LINEAR_WIDTH) for name in (*LINEAR, *LINEAR_PEERS)),
    *(Measurement(name, file, 10_000) for name, file in COMMANDS),
    Measurement("dptop top, endless", "endless", 10_000),
)
