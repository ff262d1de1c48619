"""The job: the one place where anything comes from executors, and what may be said of it when it fails."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from dptop.errors import SourceError
from dptop.spark.pieces import PIECES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

    from dptop.spark.pieces import Piece

__all__ = ["collected", "kind_of"]

TOO_LARGE: Final = "spark.driver.maxResultSize"
"""What Spark's error names where the summaries are larger than the driver takes."""


def collected(counted: DataFrame, summarise: Callable[[Iterator[Any]], Iterator[Any]]) -> list[Piece]:
    """Run the job and return what it yields. PRIVATE.

    Raises:
        SourceError: it failed. Whatever Spark says of that may quote a row, so nothing of it hangs on to the error.
        KeyboardInterrupt: as it came, also where Spark's own error took its place.
    """
    try:
        done = counted.mapInArrow(summarise, PIECES)
        if hasattr(done, "toArrow"):
            return list(zip(*(column.to_pylist() for column in done.toArrow().columns), strict=True))
        return [tuple(row) for row in done.collect()]
    except Exception as error:
        kind, interrupted, too_large = kind_of(error), _was_interrupted(error), TOO_LARGE in str(error)
    if interrupted:
        raise KeyboardInterrupt
    remedy = " Executors need the driver's version of dptop."
    if too_large:
        remedy = f" The summaries exceed {TOO_LARGE}: take a smaller capacity, or max_partitions."
    raise SourceError(
        f"the Spark job failed ({kind}); nothing is released, and what was charged stays spent. Spark's logs say why,"
        f" and are private.{remedy}"
    )


def _was_interrupted(error: BaseException) -> bool:
    """Return whether an error came while an interruption was handled: Spark cancels the job, and may fail at it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            return True
        cause = cause.__context__
    return False


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
