"""What is refused is refused before any job, and nothing is spent."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest

import dptop
from dptop import spark
from tests_spark.frames import skewed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests_spark.conftest import Seen


@pytest.mark.parametrize(
    "sql",
    [
        "cast(id as double)",
        "id > 3",
        "cast(id as decimal(20, 0))",
        "array(id)",
        "named_struct('a', id)",
        "current_date()",
        "current_timestamp()",
        "null",
    ],
)
def test_a_column_of_another_type_is_refused(session: SparkSession, seen: Seen, sql: str) -> None:
    df = session.range(10).selectExpr(f"{sql} as item")
    ledger = spark.Ledger(dptop.Budget(epsilon=1.0, delta=1e-6))
    with pytest.raises(dptop.UnsupportedLabel, match="Cast it"):
        spark.release(df, "item", capacity=20, epsilon=1.0, delta=1e-6, budget=ledger)
    assert ledger.spent == (0.0, 0.0)
    assert seen.pieces == []


WRONG: list[tuple[type[dptop.DptopError], str, dict[str, Any]]] = [
    (dptop.InvalidParameter, "epsilon", {"epsilon": 0.0}),
    (dptop.InvalidParameter, "delta", {"delta": 1.0}),
    (dptop.InvalidParameter, "capacity", {"capacity": 0}),
    (dptop.InvalidParameter, "top", {"top": 0}),
    (dptop.InvalidParameter, "partition", {"partition": "hash"}),
    (dptop.InvalidParameter, "max_partitions", {"max_partitions": 0}),
    (dptop.InvalidParameter, "max_partitions", {"max_partitions": True}),
    (dptop.InvalidParameter, "budget", {"budget": dptop.Budget(1.0, 1e-6)}),
    (dptop.InvalidParameter, "for labels and for counts", {"epsilon": 2.0**-20, "max_contributions": 2**12}),
    (dptop.InvalidParameter, "name of one column", {"column": "*"}),
    (dptop.InvalidParameter, "name of a column", {"column": 3}),
    (dptop.SourceError, "no column 'itm'", {"column": "itm"}),
]


@pytest.mark.parametrize(("kind", "rule", "options"), WRONG, ids=str)
def test_a_wrong_argument_is_refused(
    session: SparkSession, seen: Seen, kind: type[dptop.DptopError], rule: str, options: dict[str, Any]
) -> None:
    df = skewed(session, "int", 100)
    right: dict[str, Any] = {"column": "item", "capacity": 20, "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(kind, match=rule):
        spark.release(df, **(right | options))
    assert seen.pieces == []


def test_a_column_that_spark_cannot_tell_is_refused(session: SparkSession, seen: Seen) -> None:
    """Its name has a dot, or two columns have it; of Spark's own error only the condition is told."""
    dotted = session.range(3).toDF("a.b")
    one, other = session.range(3).alias("one"), session.range(3).alias("other")
    twice = one.join(other, one["id"] == other["id"])
    for df, column, says in ((dotted, "a.b", "in backticks if it has a dot"), (twice, "id", "AMBIGUOUS_REFERENCE")):
        with pytest.raises(dptop.SourceError, match=says) as refused:
            spark.release(df, column, capacity=20, epsilon=1.0, delta=1e-6)
        assert (refused.value.__context__, refused.value.__cause__) == (None, None)
    assert spark.release(dotted, "`a.b`", capacity=20, epsilon=1.0, delta=1e-6).private
    assert len(seen.pieces) == 1


def test_what_is_no_batch_frame_is_refused(session: SparkSession) -> None:
    stream = session.readStream.format("rate").load()
    for df in ([1, 2], stream):
        with pytest.raises(dptop.InvalidParameter, match="df must"):
            spark.release(df, "value", capacity=20, epsilon=1.0, delta=1e-6)


def test_a_ledger_adds_releases_up(session: SparkSession, seen: Seen) -> None:
    """All that are given it share its budget, whatever frames they read; the one too many starts no job."""
    ledger = spark.Ledger(dptop.Budget(epsilon=2.0, delta=3e-6))
    for partition in ("as-stored", "label"):
        df = skewed(session, "int", 1000)
        spark.release(df, "item", capacity=20, epsilon=1.0, delta=1e-6, budget=ledger, partition=partition)
    assert ledger.spent == (2.0, 2e-6)
    with pytest.raises(dptop.BudgetExhausted):
        spark.release(df, "item", capacity=20, epsilon=0.5, delta=1e-7, budget=ledger)
    assert len(seen.pieces) == 2


def test_a_ledger_is_not_copied() -> None:
    ledger = spark.Ledger(dptop.Budget(epsilon=2.0, delta=3e-6))
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(dptop.InvalidParameter, match="must not be copied"):
            copied(ledger)
