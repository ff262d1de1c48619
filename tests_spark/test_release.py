"""A release of a frame is that of its partitions, counted one by one without Spark."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.functions import expr

import dptop
from dptop import spark
from dptop.spark import frame
from dptop.spark.executor import Counting
from tests_spark.conftest import ONE_SECRET
from tests_spark.frames import LABELS, counted, counters, skewed, stored

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests_spark.conftest import Seen

MANY = 10_000
"""A capacity that no partition here fills."""


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize(("partitions", "mechanism"), [(3, "local-sums"), (6, "central-counts")])
def test_a_release_is_that_of_the_partitions(
    session: SparkSession, seen: Seen, kind: str, partitions: int, mechanism: str
) -> None:
    """Counters, rows, intervals and minima are those of summaries that were made without Spark; nulls are skipped."""
    df = skewed(session, kind, partitions=partitions)
    result = spark.release(df, "item", capacity=20, epsilon=1.0, delta=1e-6)
    without = counted(stored(df), 20)
    expected = dptop.release(dptop.Sharded(without), epsilon=1.0, delta=1e-6)
    (sharded,) = seen.sharded
    assert counters(sharded.shards) == counters(without)
    assert result.mechanism == expected.mechanism == mechanism
    assert result.rows == expected.rows
    assert len(result) > 2
    assert result.noisy_minimum == tuple(sorted(expected.noisy_minimum))
    assert dict(result.parameters) == dict(expected.parameters)


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("kind", LABELS)
def test_by_label_every_label_is_in_one_partition(session: SparkSession, seen: Seen, kind: str) -> None:
    """Each partition counts its labels in their order, nothing is summed, and epsilon is whole."""
    df = skewed(session, kind)
    result = spark.release(df, "item", capacity=MANY, epsilon=1.0, delta=1e-6, partition="label", max_partitions=4)
    true = Counter(item for items in stored(df) for item in items if item is not None)
    (sharded,) = seen.sharded
    held = [dict(found) for found in counters(sharded.shards)]
    assert len(held) == 4
    assert sum(map(len, held)) == len(true)
    assert {label: count for found in held for label, count in found.items()} == true
    assert result.mechanism == "local-sums"
    assert result.parameters["scale"] == 1.0
    assert {row.item: row.count for row in result} == {x: f for x, f in true.items() if f > result.parameters["offset"]}
    assert all(row.low <= row.count <= row.high for row in result)


@pytest.mark.usefixtures("no_noise", "one_secret")
def test_by_label_partitions_are_counted_in_the_order_of_labels(session: SparkSession, seen: Seen) -> None:
    """A small table holds what the sorted rows of its partition leave in it; by default as many as a shuffle makes."""
    df = skewed(session, "string")
    spark.release(df, "item", capacity=5, epsilon=1.0, delta=1e-6, partition="label")
    routed = stored(frame.by_label(df.select("item").toDF("label"), 3, ONE_SECRET.nonce))
    assert all(items == sorted(items, key=str.encode) for items in routed)
    assert counters(seen.sharded[0].shards) == counters(counted(routed, 5))


def test_noise_is_that_of_one_release(session: SparkSession, seen: Seen) -> None:
    """With noise the counts are near the counters, and it was drawn for one release: once to select, once to count."""
    df = skewed(session, "int", partitions=6)
    result = spark.release(df, "item", capacity=MANY, epsilon=1.0, delta=1e-6)
    held = [dict(found) for found in counters(seen.sharded[0].shards)]
    *of_shards, of_counts = seen.draws
    to_select = [1 + len(found) for found in held]
    assert of_shards == [(Fraction(1, 2), draws) for draws in to_select]
    assert of_counts == (Fraction(1, 2), len(result))
    # of half of epsilon: a = e^-1/2, and P[|Z| > t] = 2 a^(t+1) / (1 + a)
    spread = 0
    while (sum(to_select) + len(result)) * 2 * math.exp(-(spread + 1) / 2) / (1 + math.exp(-0.5)) > 1e-6:
        spread += 1
    for row in result:
        exact = sum(found.get(row.item, 0) for found in held)
        lacks = len(held) * (result.parameters["offset"] + 2 * spread)  # in shards that did not select it
        assert exact - lacks - spread <= row.count <= exact + spread, "fails once in 10^6 runs"
    assert result.private


@pytest.mark.usefixtures("no_noise")
def test_partitions_are_coalesced_in_their_order(session: SparkSession, seen: Seen) -> None:
    """max_partitions joins neighbours one after the other, without a shuffle, and never makes more."""
    df = skewed(session, "int", partitions=6)
    spark.release(df, "item", capacity=20, epsilon=1.0, delta=1e-6, max_partitions=2)
    spark.release(df, "item", capacity=20, epsilon=1.0, delta=1e-6, max_partitions=100)
    items = stored(df)
    joined = [sum(items[:3], []), sum(items[3:], [])]  # noqa: RUF017 - six short lists
    assert counters(seen.sharded[0].shards) == counters(counted(joined, 20))
    assert len(seen.sharded[1]) == 6


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("partition", ["as-stored", "label"])
def test_empty_partitions_count_as_others(session: SparkSession, seen: Seen, partition: str) -> None:
    """A partition without rows is a shard like any other: one row more must not change how many there are."""
    df = skewed(session, "int", partitions=5)
    for rows in ("other < 6000", "item is null", "other = 1", "other < 0"):
        spark.release(df.where(rows), "item", capacity=20, epsilon=1.0, delta=1e-6, partition=partition)
    assert [len(sharded) for sharded in seen.sharded] == [5 if partition == "as-stored" else 3] * 4
    assert [sharded._length() for sharded in seen.sharded] == [6000 - 6000 // 7, 0, 1, 0]


@pytest.mark.parametrize("partition", ["as-stored", "label"])
def test_an_empty_frame_has_an_empty_release(session: SparkSession, partition: str) -> None:
    """Also one without any partition."""
    df = session.createDataFrame([], "item string")
    assert len(spark.release(df, "item", capacity=20, epsilon=1.0, delta=1e-6, partition=partition)) == 0


@pytest.mark.usefixtures("no_noise")
def test_files_are_partitions(session: SparkSession, seen: Seen, tmp_path: Path) -> None:
    """With the settings of the how-to a file is a partition, whatever its size, and its rows come in their order."""
    for number, rows in enumerate((500, 30_000, 9_000)):
        path = str(tmp_path / f"{number}.parquet")
        skewed(session, "string", rows, 1).coalesce(1).write.parquet(path)
    df = session.read.parquet(*(str(tmp_path / f"{number}.parquet") for number in range(3)))
    spark.release(df, "item", capacity=20, epsilon=1.0, delta=1e-6)
    without = []
    for folder in tmp_path.glob("*.parquet"):
        (file,) = folder.glob("*.parquet")
        without.append(dptop.SpaceSaving(20))
        without[-1].extend(dptop.read_labels(file, column="item"))
    assert sorted(counters(seen.sharded[0].shards)) == sorted(counters(without))


def test_what_a_release_says(session: SparkSession) -> None:
    """explain() tells how rows came to partitions, and what neighbours are; share and top work as elsewhere."""
    df = skewed(session, "string", nulls=False)
    stored_as = spark.release(df, "item", capacity=50, epsilon=1.0, delta=1e-6, share=0.07, max_contributions=2)
    by_label = spark.release(df, "item", capacity=50, epsilon=1.0, delta=1e-6, top=2, partition="label")
    assert "a part of the item" in stored_as.explain()
    assert "as Spark cut it" in stored_as.explain()
    assert "total weight at most 2" in stored_as.explain()
    assert "one row of the frame" in by_label.explain()
    assert [row.item for row in by_label] == ["item 1 é", "item 2 é"]
    assert [row.item for row in stored_as] == ["item 1 é", "item 2 é", "item 3 é"]
    assert stored_as.noisy_length is not None
    assert list(stored_as.noisy_minimum) == sorted(stored_as.noisy_minimum)


def test_nothing_is_shuffled_after_the_summary(session: SparkSession, seen: Seen) -> None:
    """As stored there is no exchange at all; by label there is one, of a fixed number of partitions, before a sort."""
    df = skewed(session, "string")
    spark.release(df, "item", capacity=50, epsilon=1.0, delta=1e-6, max_partitions=2)
    spark.release(df, "item", capacity=50, epsilon=1.0, delta=1e-6, partition="label", max_partitions=7)
    as_stored, by_label = seen.plans
    assert "Exchange" not in as_stored
    assert by_label.count("Exchange") == 1
    above, _, below = by_label.partition("Exchange hashpartitioning")
    assert above.index("MapInArrow") < above.index("Sort [")
    assert ", 7), REPARTITION_BY_NUM" in below


def rebalanced(df: DataFrame) -> DataFrame:
    """Return the frame after a shuffle by both its columns, of which Spark splits large partitions; as SQL, for 3.5."""
    df.createOrReplaceTempView("rows")
    return df.sparkSession.sql("select /*+ REBALANCE(item, constant) */ * from rows")


SHUFFLED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "groupBy": lambda labels: labels.groupBy("item").count(),
    "repartition": lambda labels: labels.repartition("item"),
    "with a constant": lambda labels: labels.repartition("item", expr("true")),
    "with what no label changes": lambda labels: labels.repartition("item", labels["item"].isNotNull()),
    "rebalance": lambda labels: rebalanced(labels.selectExpr("item", "true as constant")),
}


@pytest.mark.parametrize("label", ["id % 7", "if(id % 7 = 3, null, cast(cast(id % 7 as string) as binary))"])
@pytest.mark.parametrize("before", SHUFFLED.values(), ids=SHUFFLED)
def test_a_frame_that_was_shuffled_by_the_label_is_shuffled_again(
    session: SparkSession, seen: Seen, label: str, before: Callable[[DataFrame], DataFrame]
) -> None:
    """Spark would take the other shuffle for ours, and join and split its partitions by their sizes."""
    df = before(session.range(300).selectExpr(f"{label} as item"))
    number = int(str(session.conf.get("spark.sql.shuffle.partitions")))
    result = spark.release(df, "item", capacity=50, epsilon=1.0, delta=1e-6, partition="label", max_partitions=number)
    assert "REPARTITION_BY_NUM" in seen.plans[0]
    assert len(result.noisy_minimum) == number


def test_a_skewed_frame_keeps_each_label_in_one_partition(
    session: SparkSession, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark splits a large label by position where it takes an earlier shuffle for ours.

    A second key that the earlier one has too is seen to let it.
    """
    settings = {
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "20k",
        "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1k",
        "spark.sql.shuffle.partitions": "4",
    }
    before = {name: session.conf.get(name) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        rows = session.range(0, 225_300, 1, 4)
        labels = rows.selectExpr("coalesce(if(id < 225000, 1L, id % 50 + 2), 0L) as item", "'guessed' as constant")
        df = rebalanced(labels)
        assert in_how_many(df, seen) == 1
        monkeypatch.setattr(Counting, "nonce", "guessed")
        assert in_how_many(df, seen) > 1
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


def in_how_many(df: DataFrame, seen: Seen) -> int:
    """Return how many partitions hold the label 1, whatever else is wrong with them."""
    with contextlib.suppress(dptop.SourceError):
        spark.release(df, "item", capacity=60, epsilon=1.0, delta=1e-6, partition="label")
    summaries = [dptop.SpaceSaving.from_bytes(data) for *_, data in seen.pieces[-1]]
    return sum(1 in dict(table) for table in counters(summaries))
