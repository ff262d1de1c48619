"""Spark: every partition of a frame is counted where it lies, and one release comes back.

Executors count and draw nothing. What comes to the driver is one summary for each partition, never a row; noise is
drawn there, once, after the job has succeeded. Only the DataFrame interface is used, so that it works on Spark 3.5 and
4, and over Spark Connect. Executors need dptop, of the driver's version.
"""

from __future__ import annotations

import importlib
import math
import os
import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NoReturn

from dptop.counters import SpaceSaving, capacity_of
from dptop.errors import CorruptSummary, InvalidParameter, MissingExtra, SourceError, UnsupportedLabel
from dptop.parameters import one_of, shown, whole_number
from dptop.privacy import Budget, Spent
from dptop.privacy import Ledger as StreamLedger
from dptop.release import plan, release_as
from dptop.release.request import Request
from dptop.release.sharded import FEW
from dptop.sharded import AS_STORED, BY_LABEL, MAX_SHARDS, PARTITIONS, Sharded
from dptop.spark_executor import PIECES, REFUSED, Counting

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from pyspark.sql import DataFrame

    from dptop.report import Release

__all__ = ["Ledger", "release"]

INTEGERS: Final = ("byte", "short", "integer", "long")
TEXTS: Final = ("string", "char", "varchar", "binary")
"""How Spark names the types of columns that hold labels."""
LABEL: Final = "label"
"""What the column is called on its way, whatever it was called."""
SECRET_BYTES: Final = 32

Piece = tuple[int, int, int, bytes]
"""A row of what is collected: see `PIECES`. PRIVATE."""


class Ledger:
    """What may be spent on one set of data, and what was: kept by the caller, and given to every release of it.

    A frame is a plan that Spark runs anew, and nothing in it says that two frames read the same data. So no ledger is
    found by itself: releases that are not given the same one are not added up by anybody but you. It lives as long as
    the process and is not copied; two processes do not know of each other.

    Args:
        budget: what all releases may spend together, by basic composition. The first one says which unit it protects,
            by its `max_contributions`; the others must say the same.

    Raises:
        InvalidParameter: something else than a `dptop.Budget`.

    Source: docs/privacy.md section 9.

    >>> import dptop
    >>> from dptop.spark import Ledger
    >>> visits = Ledger(dptop.Budget(epsilon=2.0, delta=2e-9))
    >>> visits.spent
    (0.0, 0.0)
    """

    def __init__(self, budget: Budget) -> None:
        if not isinstance(budget, Budget):
            raise InvalidParameter(f"budget must be a dptop.Budget; got {type(budget).__name__}. Build one of it.")
        self._budget = budget
        self._ledger = StreamLedger(os.urandom(16))

    @property
    def budget(self) -> Budget:
        """What was declared."""
        return self._budget

    @property
    def spent(self) -> tuple[float, float]:
        """The sums of epsilon and of delta of all releases so far, also of those that failed after the charge."""
        entries = [spent.parameters for spent in self._ledger.record().entries.values()]
        return math.fsum(float(p.epsilon) for p in entries), math.fsum(float(p.delta) for p in entries)

    def _charge(self, spent: Spent) -> None:
        self._ledger.charge(spent, self._budget)

    def __reduce__(self) -> NoReturn:
        raise InvalidParameter(
            "a ledger must not be copied or pickled, or the budget could be spent twice; got a copy of one asked for."
            " Hand over the ledger itself."
        )


def release(
    df: DataFrame,
    column: str,
    *,
    capacity: int,
    epsilon: float,
    delta: float,
    top: int | None = None,
    share: float | None = None,
    budget: Ledger | None = None,
    max_partitions: int | None = None,
    partition: str = AS_STORED,
    max_contributions: int = 1,
) -> Release:
    """Release the most frequent labels of a column: everything in the result is (epsilon, delta)-private, together.

    With `partition="label"` two frames are neighbours if one has one row more than the other, in any place. Rows are
    shuffled by label and sorted, so that neither how Spark cuts a frame nor how it orders one matters.

    With "as-stored" they are neighbours if one has one row more in one partition, at any place in it, and all other
    partitions are equal. Nothing is shuffled. Which partition a row is in, and so how Spark cuts the frame, is a part
    of the item and not protected: use it for a frame that is read from storage and changed row by row at the most, and
    read docs/how-to-spark.md on files that Spark cuts or packs by their sizes. After a join, a sort, a `groupBy` or
    another shuffle use "label".

    Args:
        df: a DataFrame, also of Spark Connect; of a batch, not of a stream.
        column: its one column of labels: integers up to 64 bits, strings or binary. Nulls are skipped.
        capacity: counters for each partition, as in `dptop.SpaceSaving`. A summary comes to the driver for each
            partition; its size is in docs/how-to-spark.md.
        epsilon: the total, 2^-20 to 64; rounded down to a multiple of 2^-32.
        delta: the total, 0 < delta < 1; well below one over the number of units.
        top: the number of largest noisy counts to keep; by default every label that passes the threshold.
        share: keep labels with at least this share of the rows, 0 < share <= 1; see `dptop.release`.
        budget: the `Ledger` of these data, charged before the job starts. What was charged stays spent, also when the
            job fails. Without one this release is counted by nobody.
        max_partitions: the partitions that are counted in, 1 to 2^20. "as-stored": the frame is coalesced to at most
            as many, as Spark joins them, which becomes a part of the item as well. "label": the number
            itself, by default `spark.sql.shuffle.partitions`.
        partition: "as-stored" or "label".
        max_contributions: the largest number of rows of one unit, 1 to 2^31, bounded at the source.

    Returns:
        A plain `Release`, with noisy minima in ascending order, as partitions have no order of their own.

    Raises:
        InvalidParameter, UnsupportedLabel: an argument or the type of the column breaks its rule: no job was started
            and nothing is spent.
        BudgetExhausted: the ledger does not cover this; likewise.
        SourceError: no such column, likewise; or the job failed, and nothing is released. What Spark said is not
            repeated, as it may quote rows: its own logs have it, and are as private as the data.
        MissingExtra: pyspark is not installed.

    Source: docs/privacy.md sections 8, 9 and 17.
    """
    request = Request(epsilon=epsilon, delta=delta, top=top, share=share, max_contributions=max_contributions)
    counting = Counting(capacity_of(capacity), os.urandom(SECRET_BYTES))
    partition = one_of("partition", partition, PARTITIONS)
    if max_partitions is not None:
        remedy = "Leave it out for as many as there are."
        max_partitions = whole_number("max_partitions", max_partitions, 1, MAX_SHARDS, remedy)
    if budget is not None and not isinstance(budget, Ledger):
        raise InvalidParameter(
            f"budget must be a dptop.spark.Ledger; got {type(budget).__name__}. Make one of a dptop.Budget, keep it,"
            " and give it to every release of the same data."
        )
    empty = [SpaceSaving(counting.capacity) for _ in range(FEW + 1)]  # as many as take the mechanism that asks for more
    plan(request, Sharded(empty, partition))  # refuses what it would refuse after the job
    labels = _labels(df, column)
    if partition == BY_LABEL:
        numbered = max_partitions or _shuffle_partitions(labels)
        counted = _by_label(labels, numbered)
    else:
        numbered = None
        counted = labels if max_partitions is None else labels.coalesce(max_partitions)
    if budget is not None:
        budget._charge(Spent(request.total, request.max_contributions))
    shards = _shards(_collected(counted.mapInArrow(counting.summarise, PIECES)), counting, numbered)
    result = release_as(request, Sharded(shards, partition))
    # Spark may number partitions by the sizes of files, and one row more may then swap two of them
    minima = tuple(sorted(result.noisy_minimum))
    return replace(result, noisy_minimum=minima, facts=(*result.facts, ("Spark", _WHAT_A_PARTITION_IS[partition])))


_WHAT_A_PARTITION_IS: Final = {
    AS_STORED: "a shard is a partition of the frame, as Spark cut it when it was counted; how it was cut is not"
    " protected.",
    BY_LABEL: "rows were shuffled by label and sorted by it; neighbours differ in one row of the frame, however it was"
    " cut and ordered before.",
}


def _labels(df: DataFrame, column: str) -> DataFrame:
    """Return the column alone, as `LABEL`, or refuse it; asks Spark for the types and starts no job."""
    if not hasattr(df, "mapInArrow"):
        raise InvalidParameter(
            f"df must be a DataFrame of Spark 3.5 or later; got {type(df).__name__}. Count other data with"
            " dptop.SpaceSaving."
        )
    if not isinstance(column, str):
        raise InvalidParameter(f"column must be the name of a column; got {shown(column)}. Name one column.")
    if df.isStreaming:
        raise InvalidParameter(
            "df must have an end; got a streaming DataFrame. Release each batch by itself, with a ledger for all."
        )
    try:
        labels = df.select(column)
        fields = labels.schema.fields
    except _pyspark("pyspark.errors").AnalysisException:
        raise SourceError(f"the frame has no column {shown(column)}. Name one that df.columns lists.") from None
    if len(fields) != 1:
        raise InvalidParameter(f"column must be the name of one column; got {len(fields)} of them. Name one.")
    kind = fields[0].dataType.typeName()
    if kind not in INTEGERS + TEXTS:
        raise UnsupportedLabel(
            f"labels are integers, strings or bytes; got a column of the Spark type {kind}. Cast it, for example with"
            " df.withColumn(name, df[name].cast('string'))."
        )
    return labels.toDF(LABEL)


def _by_label(labels: DataFrame, partitions: int) -> DataFrame:
    """Return the rows in as many partitions, each label in one of them, in the order of the labels.

    A shuffle hands blocks over in an order that depends on their sizes, so on other rows, and on luck; Theorem A needs
    an order that one row more leaves alone. Sorted by label there is no other. Texts are sorted as bytes: a collation
    takes different labels for equal. A number that is given is kept: AQE would join partitions by their sizes.

    The second key is the same for all rows. Without it Spark would leave the shuffle out after a join or `groupBy` by
    the same column, and AQE would join and split that one's partitions by their sizes.
    """
    label = labels[LABEL]
    key = label if labels.schema.fields[0].dataType.typeName() in INTEGERS else label.cast("binary")
    return labels.where(label.isNotNull()).repartition(partitions, key, label.isNotNull()).sortWithinPartitions(key)


def _shuffle_partitions(labels: DataFrame) -> int:
    set_to = labels.sparkSession.conf.get("spark.sql.shuffle.partitions")
    number = int(set_to) if isinstance(set_to, str) and set_to.isdecimal() else set_to  # some engines say "auto"
    remedy = "The number must not depend on the data: give max_partitions."
    return whole_number("spark.sql.shuffle.partitions", number, 1, MAX_SHARDS, remedy)


def _collected(counted: DataFrame) -> list[Piece]:
    """Run the job and return what it yields: the one place where anything comes from executors. PRIVATE."""
    try:
        if hasattr(counted, "toArrow"):
            return list(zip(*(column.to_pylist() for column in counted.toArrow().columns), strict=True))
        return [tuple(row) for row in counted.collect()]
    except Exception as error:  # whatever it is, its text may quote a row
        raise SourceError(
            f"the Spark job failed ({_kind_of(error)}); nothing is released, and what was charged stays spent. Spark's"
            " logs say why, and are private. Executors need the driver's version of dptop."
        ) from None


def _kind_of(error: Exception) -> str:
    """Return what can be said of an error without its text: its type, and the condition that Spark gives it."""
    for name in ("getCondition", "getErrorClass"):  # of Spark 4, of Spark 3.5
        if hasattr(error, name):
            try:
                condition = getattr(error, name)()
            except Exception:  # it asks the JVM, which may be gone; its own text would show the first error too
                break
            if isinstance(condition, str) and re.fullmatch(r"[A-Z0-9_.]+", condition):
                return f"{type(error).__name__}, {condition}"
            break
    return type(error).__name__


def _shards(pieces: Iterable[Piece], counting: Counting, numbered: int | None) -> list[SpaceSaving]:
    """Return the summary of every partition: each counted once, whole, and by this job.

    Args:
        pieces: what was collected.
        counting: what executors were told.
        numbered: the number of partitions, where it is known. If nothing came, all are empty: Spark skips a shuffle
            that turns out to be empty, as a whole.

    Raises:
        SourceError: parts are missing, double or foreign, or an executor refused an item.
    """
    found: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
    of: dict[int, int] = {}
    for partition, number, pieces_of_it, data in pieces:
        if number == REFUSED:
            raise SourceError(f"a partition cannot be counted: {data.decode()}")
        if number in found[partition] or of.setdefault(partition, pieces_of_it) != pieces_of_it:
            raise _torn()
        found[partition][number] = bytes(data)
    if any(set(found[partition]) != set(range(count)) for partition, count in of.items()):
        raise _torn()
    numbers = range(len(found) or 1 if numbered is None else numbered)  # a frame without partitions is one empty shard
    if not set(found) <= set(numbers) or (numbered is not None and found and len(found) < numbered):
        raise _torn()
    return [_shard(found.get(number), number, counting) for number in numbers]


def _shard(pieces: dict[int, bytes] | None, number: int, counting: Counting) -> SpaceSaving:
    if pieces is None:
        return counting.nothing(number)
    try:
        summary = SpaceSaving.from_bytes(b"".join(data for _, data in sorted(pieces.items())))
    except CorruptSummary:
        raise _torn() from None
    if (summary._identity, summary.capacity) != (counting.identity(number), counting.capacity):
        raise _torn()
    return summary


def _torn() -> SourceError:
    return SourceError(
        "every partition must be counted once, by this job; Spark delivered parts that are missing, double or foreign."
        " Nothing is released. Run it again, with one version of dptop on driver and executors."
    )


def _pyspark(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtra(
            "this needs pyspark 3.5 or later, which is not installed. Run: pip install 'dptop[spark]'"
        ) from None
