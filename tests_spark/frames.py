"""Frames whose rows are known, and the same counted without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dptop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LABELS = {
    "int": "cast({} as int)",
    "bigint": "{} + 9000000000000000000",
    "string": "concat('item ', {}, ' é')",
    "binary": "encode(concat('item ', {}), 'utf-8')",
}
"""SQL of a label for its rank, by the type of the column."""


def skewed(session: SparkSession, kind: str, rows: int = 30_000, partitions: int = 3, *, nulls: bool = True) -> Any:
    """Return a frame with a column `item` and another: label r on about 1/r of the rows, and nulls on a seventh."""
    rank = "floor(1000 / (1 + (id * 7919) % 1000))"
    label = LABELS[kind].format(rank)
    item = f"case when id % 7 = 3 then null else {label} end" if nulls else label
    return session.range(0, rows, 1, partitions).selectExpr(f"{item} as item", "id as other")


def stored(df: DataFrame) -> list[list[Any]]:
    """Return the items of each partition in their order, as they come to Python."""
    plain = df.rdd.map(lambda row: bytes(row[0]) if isinstance(row[0], bytearray) else row[0])
    return list(plain.glom().collect())


def counted(partitions: list[list[Any]], capacity: int) -> list[dptop.SpaceSaving]:
    """Count each partition without Spark."""
    shards = []
    for items in partitions:
        shards.append(dptop.SpaceSaving(capacity))
        shards[-1].extend(items)
    return shards


def counters(shards: Any) -> list[list[tuple[dptop.Label, int]]]:
    """Return what each shard holds."""
    return [shard.private_counters() for shard in shards]
