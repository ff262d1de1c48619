"""The job: the one place where anything comes from executors, and what may be said of it when it fails."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dptop.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dptop.spark.pieces import Piece

__all__ = ["collected"]


def collected(counted: DataFrame) -> list[Piece]:
    """Run the job and return what it yields. PRIVATE."""
    try:
        if hasattr(counted, "toArrow"):
            return list(zip(*(column.to_pylist() for column in counted.toArrow().columns), strict=True))
        return [tuple(row) for row in counted.collect()]
    except Exception as error:  # whatever it is, its text may quote a row
        raise SourceError(
            f"the Spark job failed ({kind_of(error)}); nothing is released, and what was charged stays spent. Spark's"
            " logs say why, and are private. Executors need the driver's version of dptop."
        ) from None


def kind_of(error: Exception) -> str:
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
