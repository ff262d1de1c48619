"""Executors draw nothing and send summaries; what is lost is counted again, and released once or not at all."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dptop
from dptop import spark
from tests_spark.frames import counted, counters, skewed, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from tests_spark.conftest import Seen


def release(df: Any, **options: Any) -> dptop.Release:
    return spark.release(df, "item", **({"capacity": 20, "epsilon": 1.0, "delta": 1e-6} | options))


@pytest.mark.usefixtures("one_secret")
@pytest.mark.parametrize("partition", ["as-stored", "label"])
def test_two_runs_give_the_same_bytes(session: SparkSession, seen: Seen, partition: str) -> None:
    """With the driver's secret everything that executors send is determined."""
    df = skewed(session, "string")
    for _ in range(2):
        release(df, partition=partition)
    first, second = seen.pieces
    assert sorted(first) == sorted(second)


def test_the_driver_names_the_parts(session: SparkSession, seen: Seen) -> None:
    """Each release has a secret of its own, and each part an identity of its own."""
    df = skewed(session, "string")
    for _ in range(2):
        release(df)
    identities = {shard._identity for sharded in seen.sharded for shard in sharded.shards}
    assert len(identities) == 6


@pytest.mark.usefixtures("one_secret")
def test_by_label_the_order_of_rows_does_not_matter(session: SparkSession, seen: Seen) -> None:
    """A frame that is cut and ordered otherwise gives the same bytes; without the sort it would not."""
    df = skewed(session, "string")
    for same_rows in (df, df.orderBy(df["other"].desc()), df.repartition(5)):
        release(same_rows, partition="label")
    first, *others = map(sorted, seen.pieces)
    assert all(other == first for other in others)

    unsorted = [
        frame.select("item").toDF("label").where("label is not null").repartition(3, "label")
        for frame in (df, df.orderBy(df["other"].desc()))
    ]
    held = [counters(counted(stored(frame), 20)) for frame in unsorted]
    assert held[0] != held[1]


def test_what_is_collected_is_summaries(session: SparkSession, seen: Seen) -> None:
    """A row for each partition, of a size that the capacity bounds, whatever the number of rows."""
    df = session.range(0, 300_000, 1, 4).selectExpr("concat('a label of about thirty bytes ', id) as item")
    release(df, capacity=100)
    (pieces,) = seen.pieces
    assert sorted(partition for partition, *_ in pieces) == [0, 1, 2, 3]
    # a count, a length and the label each; header, parameters and record besides
    assert max(len(data) for *_, data in pieces) < 100 * (8 + 4 + 36) + 200


def test_a_large_summary_comes_in_pieces(session: SparkSession, seen: Seen) -> None:
    """Beyond 2^20 bytes there are several rows, put together in their order."""
    df = session.range(0, 60_000, 1, 2).selectExpr("concat('a label of about thirty bytes ', id) as item")
    release(df, capacity=50_000)
    (pieces,) = seen.pieces
    assert sorted(piece[:3] for piece in pieces) == [(0, 0, 2), (0, 1, 2), (1, 0, 2), (1, 1, 2)]
    assert counters(seen.sharded[0].shards) == counters(counted(stored(df), 50_000))


def killing(marker: Path) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a step that passes rows on, and the first time that partition 2 is in its second batch kills its executor.

    Nested, so that executors need no module of the tests.
    """

    def step(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        partition = TaskContext.get().partitionId()
        attempts = marker.with_name(f"{marker.name}-{partition}")
        with attempts.open("a") as file:
            file.write("x")
        for number, batch in enumerate(batches):
            if (partition, number) == (2, 1):
                try:
                    marker.touch(exist_ok=False)
                except FileExistsError:
                    pass
                else:
                    daemon = os.getppid()
                    executor = Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1]
                    os.kill(int(executor), signal.SIGKILL)
            yield batch

    return step


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the executor by /proc")
def test_an_executor_that_is_killed_changes_nothing(session: SparkSession, seen: Seen, tmp_path: Path) -> None:
    """Its tasks are run again; every partition is counted once, and noise is drawn once for each counter."""
    rows = skewed(session, "int", 100_000, 4)
    marker = tmp_path / "killed"
    df = rows.mapInArrow(killing(marker), rows.schema)
    result = release(df, capacity=1000)
    assert marker.exists()
    assert len((tmp_path / "killed-2").read_text()) > 1, "the partition was begun once more"
    assert [piece[:3] for piece in sorted(seen.pieces[0])] == [(number, 0, 1) for number in range(4)]
    without = counted(stored(rows), 1000)
    assert counters(seen.sharded[0].shards) == counters(without)
    assert [count for _, count in seen.draws] == [1 + len(held) for held in counters(without)]
    assert len(result) > 2


def said(error: BaseException) -> str:
    """Return all that a traceback would show, of the local variables too; no other error hangs on to it."""
    assert (error.__context__, error.__cause__) == (None, None)
    shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    return str(error) + "".join(frame for frame in shown.format() if f"{os.sep}dptop{os.sep}" in frame)


def test_a_job_that_fails_quotes_no_row(session: SparkSession, seen: Seen) -> None:
    """Spark's own message quotes the row; ours has at most its condition, and the release is charged all the same."""
    rows = session.range(0, 10, 1, 2).selectExpr("concat('s3cret ', id) as text")
    df = rows.selectExpr("cast(text as int) as item")
    with pytest.raises(Exception, match="s3cret"):
        df.collect()
    ledger = spark.Ledger(dptop.Budget(epsilon=1.5, delta=1e-5))
    with pytest.raises(dptop.SourceError, match=r"job failed \(\w+(, CAST_INVALID_INPUT)?\)") as failed:
        release(df, budget=ledger)
    assert "s3cret" not in said(failed.value)
    assert ledger.spent == (1.0, 1e-6)
    with pytest.raises(dptop.BudgetExhausted):
        release(df, budget=ledger)
    assert (seen.pieces, seen.draws) == ([], [])


def test_an_error_in_python_quotes_no_row(session: SparkSession) -> None:
    """Neither does one that a step before ours raises on an executor."""
    rows = skewed(session, "int", 100, 2)

    def step(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            raise ValueError(f"s3cret {batch.num_rows}")
        yield

    with pytest.raises(dptop.SourceError, match="job failed") as failed:
        release(rows.mapInArrow(step, rows.schema))
    assert "s3cret" not in said(failed.value)


def test_an_item_that_is_refused_is_not_quoted(session: SparkSession) -> None:
    """Text that is no UTF-8 is refused on the executor, and the reason comes to the driver without it."""
    df = session.range(0, 10, 1, 2).selectExpr("cast(unhex('73337265FF') as string) as item")
    with pytest.raises(dptop.SourceError, match=r"cannot be counted: .*UTF-8") as failed:
        release(df)
    assert "s3re" not in said(failed.value)


def test_an_interrupted_job_is_an_interruption(session: SparkSession, seen: Seen, tmp_path: Path) -> None:
    """Not an error that a loop would pass over: Spark cancels the job, and what it charged stays spent."""
    marker = tmp_path / "begun"
    rows = skewed(session, "int", 100, 2)

    def step(batches: Iterator[Any]) -> Iterator[Any]:
        marker.touch()
        time.sleep(3)
        yield from batches

    def interrupt() -> None:
        while not marker.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    ledger = spark.Ledger(dptop.Budget(epsilon=1.0, delta=1e-6))
    waiting = threading.Thread(target=interrupt)
    waiting.start()
    with pytest.raises(KeyboardInterrupt) as stopped:
        release(rows.mapInArrow(step, rows.schema), budget=ledger)
    waiting.join()
    assert stopped.value.__context__ is None
    assert ledger.spent == (1.0, 1e-6)
    assert (seen.pieces, seen.draws) == ([], [])
