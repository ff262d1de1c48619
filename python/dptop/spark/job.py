"""The job: the one place where anything comes from executors, and what may be said of it when it fails."""

from __future__ import annotations

import re
import signal
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dptop.errors import SourceError
from dptop.spark.pieces import PIECES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from pyspark.sql import DataFrame

    from dptop.spark.pieces import Piece

__all__ = ["collected", "keeping_interruptions", "kind_of"]

T = TypeVar("T")

TOO_LARGE: Final = re.compile(
    r"(An error occurred while calling \w+\.\w+\.\n: )?(org\.apache\.spark\.SparkException: )?"
    r"Job aborted due to stage failure: Total size of serialized results of \d+ tasks"
)
"""How Spark begins to say that the summaries are larger than the driver takes. What follows it may quote a row."""


def collected(counted: DataFrame, summarise: Callable[[Iterator[Any]], Iterator[Any]]) -> list[Piece]:
    """Run the job and return what it yields. PRIVATE.

    Raises:
        SourceError: it failed. Whatever Spark says of that may quote a row, so nothing of it hangs on to the error.
    """
    try:
        done = counted.mapInArrow(summarise, PIECES)
        if hasattr(done, "toArrow"):
            return list(zip(*(column.to_pylist() for column in done.toArrow().columns), strict=True))
        return [tuple(row) for row in done.collect()]
    except Exception as error:
        failed = error  # it is asked after this block, as what interrupts that would carry it along
    kind, too_large = kind_of(failed), TOO_LARGE.match(str(failed))
    del failed
    remedy = " Executors need the driver's version of dptop."
    if too_large:
        remedy = " The summaries exceed spark.driver.maxResultSize: take a smaller capacity, or max_partitions."
    raise SourceError(
        f"the Spark job failed ({kind}); nothing is released, and what was charged stays spent. Spark's logs say why,"
        f" and are private.{remedy}"
    )


def keeping_interruptions(work: Callable[[], T]) -> T:
    """Return what is done, and let an interruption of it come out as one.

    Spark's own handler may fail while it cancels jobs, or what it raises be lost. A loop that goes on after errors
    would then go on, and spend, after Ctrl-C.

    Raises:
        KeyboardInterrupt: the handler that is set raised an error, and another one came out, or none.
    """
    old = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(old):
        return work()
    raised: list[BaseException] = []

    def noted(number: int, frame: FrameType | None) -> None:
        try:
            old(number, frame)
        except BaseException as error:
            raised.append(error)
            raise

    signal.signal(signal.SIGINT, noted)
    try:
        done = work()
        if not raised:
            return done
    except Exception:
        if not raised:
            raise
    finally:
        signal.signal(signal.SIGINT, old)
    raised.clear()  # what hangs on to it may quote a row
    raise KeyboardInterrupt


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
