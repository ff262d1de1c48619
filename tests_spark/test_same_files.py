"""Three files, released by `dptop summarize` and `dptop release`, and by Spark: counts agree within noise and bias."""

from __future__ import annotations

import csv
import math
import subprocess
import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import dptop
from dptop import spark
from tests_spark.frames import counters, skewed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests_spark.conftest import Seen

CAPACITY = 50
"""Fewer than there are labels in the larger files: minima above zero, and counters that exceed the counts."""
DRAWS_OF_BOTH = 2 * 3 * (1 + CAPACITY)


def command(*arguments: object) -> None:
    """Run the command, as its user does."""
    call = [sys.executable, "-m", "dptop.cli", *map(str, arguments)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def reach(draws: int) -> int:
    """Return what all draws at epsilon = 1 stay within, but once in 10^6: P[|Z| > t] = 2 a^(t+1)/(1+a), a = e^-1."""
    t = 0
    while draws * 2 * math.exp(-(t + 1)) / (1 + math.exp(-1)) > 1e-6:
        t += 1
    return t


def largest(table: dict[Any, int]) -> int:
    """Return the largest counter: it tells the tables apart."""
    return max(table.values())


def differ_by(held: list[tuple[int, int]], offset: int, reach: int) -> int:
    """Return how far apart two releases of one label may be: they were drawn from the same counters.

    Args:
        held: the label's counter in each shard, 0 where it has none, and the shard's minimum.
        offset: how far above the noisy minimum a shard selects.
        reach: what no draw exceeds.
    """
    bound = 0
    for counter, minimum in held:
        if counter - minimum > offset + 2 * reach:  # selected by both: each adds noise of its own
            bound += 2 * reach
        elif counter and counter - minimum > offset - 2 * reach:  # perhaps by one only, which adds it all
            bound += max(counter + reach, 2 * reach)
    return bound


def test_a_release_of_parts_and_one_of_spark_agree(session: SparkSession, seen: Seen, tmp_path: Path) -> None:
    """Both count the same tables; rows differ by what noise may do, and from true counts by noise and bias."""
    files: list[Path] = []
    parts: list[Path] = []
    for number, rows in enumerate((2_000, 30_000, 9_000)):
        skewed(session, "string", rows, 1).write.parquet(str(tmp_path / f"{number}"))
        files.extend((tmp_path / f"{number}").glob("*.parquet"))
        parts.append(tmp_path / f"{number}.dptop")
        command("summarize", files[number], "--column", "item", "--capacity", CAPACITY, "-o", parts[number])
    tables = [dptop.load(part) for part in parts]
    privately = ("--top", "1000", "--epsilon", "1", "--delta", "1e-6")
    command("release", *parts, *privately, "-o", tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open() as file:
        by_parts = {row["item"]: int(row["count"]) for row in csv.DictReader(file)}
    df = session.read.parquet(*map(str, files))
    result = spark.release(df, "item", capacity=CAPACITY, epsilon=1.0, delta=1e-6)
    by_spark = {row.item: row.count for row in result}

    held = [dict(table) for table in counters(tables)]
    in_spark = map(dict, counters(seen.sharded[0].shards))
    assert sorted(held, key=largest) == sorted(in_spark, key=largest)
    minima = [min(table.values()) if len(table) == CAPACITY else 0 for table in held]
    assert min(minima) > 0
    spread, offset = reach(DRAWS_OF_BOTH), int(result.parameters["offset"])
    assert {epsilon for epsilon, _ in seen.draws} == {Fraction(1)}
    true = dict(df.where("item is not null").groupBy("item").count().collect())
    assert len(by_spark) > 5
    bias = sum(minima)
    for label in {label for table in held for label in table}:
        in_shards = [(table.get(label, 0), minimum) for table, minimum in zip(held, minima, strict=True)]
        apart = abs(by_parts.get(label, 0) - by_spark.get(label, 0))
        assert apart <= differ_by(in_shards, offset, spread), "fails once in 10^6 runs"
        lacks = bias + 3 * (offset + 2 * spread)  # in shards that did not select it
        for count in (found[label] for found in (by_parts, by_spark) if label in found):
            assert true[label] - lacks <= count + 3 * spread, "fails once in 10^6 runs"
            assert count - 3 * spread <= true[label] + bias, "fails once in 10^6 runs"
