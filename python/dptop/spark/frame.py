"""A frame -> its labels, in the partitions that are counted. Nothing here starts a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dptop.errors import InvalidParameter, SourceError, UnsupportedLabel
from dptop.parameters import shown, whole_number
from dptop.sharded import MAX_SHARDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["by_label", "labels_of", "shuffle_partitions"]

INTEGERS: Final = ("byte", "short", "integer", "long")
TEXTS: Final = ("string", "char", "varchar", "binary")
"""How Spark names the types of columns that hold labels."""
LABEL: Final = "label"
"""What the column is called on its way, whatever it was called."""


def labels_of(df: DataFrame, column: str) -> DataFrame:
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
    from pyspark.errors import AnalysisException  # here: only who has such a frame has pyspark

    try:
        labels = df.select(column)
        fields = labels.schema.fields
    except AnalysisException:
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


def by_label(labels: DataFrame, partitions: int) -> DataFrame:
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


def shuffle_partitions(labels: DataFrame) -> int:
    """Return how many partitions a shuffle makes by default."""
    set_to = labels.sparkSession.conf.get("spark.sql.shuffle.partitions")
    number = int(set_to) if isinstance(set_to, str) and set_to.isdecimal() else set_to  # some engines say "auto"
    remedy = "The number must not depend on the data: give max_partitions."
    return whole_number("spark.sql.shuffle.partitions", number, 1, MAX_SHARDS, remedy)
