"""A frame -> its labels, in the partitions that are counted. Nothing here starts a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dptop.errors import InvalidParameter, SourceError, UnsupportedLabel
from dptop.parameters import shown, whole_number
from dptop.sharded import MAX_SHARDS
from dptop.spark.job import kind_of

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
    labels, refused = _asked(df, column)
    if labels is None:
        raise SourceError(refused)
    fields = labels.schema.fields
    if len(fields) != 1:
        raise InvalidParameter(f"column must be the name of one column; got {len(fields)} of them. Name one.")
    kind = fields[0].dataType.typeName()
    if kind not in INTEGERS + TEXTS:
        raise UnsupportedLabel(
            f"labels are integers, strings or bytes; got a column of the Spark type {kind}. Cast it, for example with"
            " df.withColumn(name, df[name].cast('string'))."
        )
    return labels.toDF(LABEL)


def _asked(df: DataFrame, column: str) -> tuple[DataFrame | None, str]:
    """Return the column, or why there is none; no error of Spark's hangs on to what is raised then."""
    try:
        streams = df.isStreaming
        labels = None if streams else df.select(column)
        if labels is not None:
            labels.schema  # noqa: B018 - Spark answers when it is asked
    except Exception as error:  # of a frame that cannot be analysed, a session that has stopped
        failed = error  # as in `job.collected`
    else:
        if streams:
            raise InvalidParameter(
                "df must have an end; got a streaming DataFrame. Release each batch by itself, with a ledger for all."
            )
        return labels, ""
    kind = kind_of(failed)
    if "UNRESOLVED_COLUMN" in kind:
        quoted = "Name one that df.columns lists, in backticks if it has a dot."
        return None, f"the frame has no column {shown(column)}. {quoted}"
    return None, f"Spark cannot say what column {shown(column)} of the frame is ({kind}). Look at df.printSchema()."


def by_label(labels: DataFrame, partitions: int, nonce: str) -> DataFrame:
    """Return the rows in as many partitions, each label in one of them, in the order of the labels.

    A shuffle hands blocks over in an order that depends on their sizes, so on other rows, and on luck; Theorem A needs
    an order that one row more leaves alone. Sorted by label there is no other. Texts are sorted as bytes: a collation
    takes different labels for equal. A number that is given is kept: AQE would join partitions by their sizes.

    Where the frame was shuffled before Spark leaves a shuffle by the same keys out, and AQE joins and splits the
    partitions of the earlier one by their sizes. So there is a second key, the same for all rows, that no other plan
    has.

    Args:
        labels: the column.
        partitions: how many.
        nonce: letters and digits, of this release only.
    """
    keyed = labels.where(f"{LABEL} is not null").selectExpr(LABEL, f"'{nonce}' as nonce")
    label = keyed[LABEL]
    key = label if labels.schema.fields[0].dataType.typeName() in INTEGERS else label.cast("binary")
    return keyed.repartition(partitions, key, keyed["nonce"]).sortWithinPartitions(key).select(label)


def shuffle_partitions(labels: DataFrame) -> int:
    """Return how many partitions a shuffle makes by default."""
    set_to = labels.sparkSession.conf.get("spark.sql.shuffle.partitions")
    number = int(set_to) if isinstance(set_to, str) and set_to.isdecimal() else set_to  # some engines say "auto"
    remedy = "The number must not depend on the data: give max_partitions."
    return whole_number("spark.sql.shuffle.partitions", number, 1, MAX_SHARDS, remedy)
