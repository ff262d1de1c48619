"""Spark: every partition of a frame is counted where it lies, and one release comes back.

Executors count and draw nothing. What comes to the driver is one summary for each partition, never a row; noise is
drawn there, once, after the job has succeeded. Only the DataFrame interface is used, so that it works on Spark 3.5 and
4, and over Spark Connect. Executors need dptop, of the driver's version.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dptop.counters import capacity_of
from dptop.errors import InvalidParameter
from dptop.parameters import one_of, whole_number
from dptop.release import Request, plan, release_as
from dptop.release.sharded import MOST_SUMMED
from dptop.sharded import AS_STORED, BY_LABEL, MAX_SHARDS, PARTITIONS, Sharded
from dptop.spark.executor import Counting
from dptop.spark.frame import by_label, labels_of, shuffle_partitions
from dptop.spark.job import collected, keeping_interruptions
from dptop.spark.ledger import Ledger
from dptop.spark.pieces import shards_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dptop.report import Release
    from dptop.spark.pieces import Piece

__all__ = ["Ledger", "release"]

SECRET_BYTES: Final = 32


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
        SourceError: no such column, or a frame that Spark cannot analyse, likewise; or the job failed, and nothing is
            released. What Spark said is not repeated, as it may quote rows: its own logs have it, and are as private as
            the data.

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
    for number in (1, MOST_SUMMED + 1):  # either form refuses now what it would refuse after the job
        plan(request, Sharded(map(counting.nothing, range(number)), partition))

    def counted() -> tuple[list[Piece], int | None]:
        labels, numbered = labels_of(df, column), None
        if partition == BY_LABEL:
            numbered = max_partitions or shuffle_partitions(labels)
            labels = by_label(labels, numbered, counting.nonce)
        elif max_partitions is not None:
            labels = labels.coalesce(max_partitions)
        if budget is not None:
            budget._charge(request.spent)
        return collected(labels, counting.summarise), numbered

    pieces, numbered = keeping_interruptions(counted)
    shards = shards_of(pieces, counting, numbered)
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
