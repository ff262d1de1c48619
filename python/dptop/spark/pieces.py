"""How a summary comes from an executor to the driver: as numbered pieces, which are put together or refused."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from dptop.counters import SpaceSaving
from dptop.errors import CorruptSummary, SourceError
from dptop.sharded import MAX_SHARDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dptop.spark.executor import Counting

__all__ = ["PIECES", "Piece", "pieces_of", "refusal", "shards_of"]

PIECES: Final = "partition int, number int, of int, data binary"
"""The rows that a partition yields: its number, and its saved summary in numbered pieces."""
REFUSED: Final = -1
"""Instead of the number of a piece: the data are the message of an error, which quotes no item. As a row, it is not
tried again by Spark, and comes to the driver whole."""
PIECE_BYTES: Final = 2**20
"""Rows of a size that any transport takes: Arrow's binary columns end at 2 GB, Connect's messages before."""

Piece = tuple[int, int, int, bytes]
"""A row of what is collected: see `PIECES`. PRIVATE."""


def pieces_of(partition: int, data: bytes) -> Iterator[Any]:
    """Yield a saved summary as record batches of `PIECES`."""
    starts = range(0, len(data), PIECE_BYTES)
    for number, start in enumerate(starts):
        yield _row(partition, number, len(starts), data[start : start + PIECE_BYTES])


def refusal(partition: int, error: Exception) -> Any:
    """Return the record batch that says why a partition cannot be counted; the error must quote no item."""
    return _row(partition, REFUSED, 1, str(error).encode())


def _row(partition: int, number: int, of: int, data: bytes) -> Any:
    import pyarrow  # here: the base install has none

    columns = {"partition": [partition], "number": [number], "of": [of]}
    arrays = {name: pyarrow.array(value, pyarrow.int32()) for name, value in columns.items()}
    return pyarrow.RecordBatch.from_pydict({**arrays, "data": pyarrow.array([data], pyarrow.binary())})


def shards_of(pieces: list[Piece], counting: Counting, numbered: int | None) -> list[SpaceSaving]:
    """Return the summary of every partition: each counted once, whole, and by this job.

    Args:
        pieces: what was collected; emptied.
        counting: what executors were told.
        numbered: the number of partitions, where it is known. If nothing came, all are empty: Spark skips a shuffle
            that turns out to be empty, as a whole.

    Raises:
        SourceError: parts are missing, double or foreign, or too many, or an executor refused an item. Where the
            number of partitions is not known, the last ones are not missed; Spark has none to lose after a job that
            succeeded, as a partition without rows yields a summary too. No frame of the error holds a label.
    """
    try:
        return _put_together(pieces, counting, numbered)
    except SourceError as error:
        said = str(error)
    finally:
        pieces.clear()
    raise SourceError(f"{said} Nothing is released, and what was charged stays spent.")


def _put_together(pieces: list[Piece], counting: Counting, numbered: int | None) -> list[SpaceSaving]:
    found: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
    of: dict[int, int] = {}
    for partition, number, pieces_of_it, data in pieces:
        if number == REFUSED:
            raise SourceError(f"a partition cannot be counted: {data.decode(errors='replace')}")
        if number in found[partition] or of.setdefault(partition, pieces_of_it) != pieces_of_it:
            raise _torn()
        found[partition][number] = bytes(data)
    if any(set(found[partition]) != set(range(count)) for partition, count in of.items()):
        raise _torn()
    numbers = range(len(found) or 1 if numbered is None else numbered)  # a frame without partitions is one empty shard
    if len(numbers) > MAX_SHARDS:
        raise SourceError(
            f"at most 2**20 partitions are released together; got {len(numbers)}. Join them with max_partitions."
        )
    if not set(found) <= set(numbers) or (numbered is not None and found and len(found) < numbered):
        raise _torn()
    return [_shard(found.get(number), number, counting) for number in numbers]


def _shard(pieces: dict[int, bytes] | None, number: int, counting: Counting) -> SpaceSaving:
    if pieces is None:
        return counting.nothing(number)
    try:
        summary, _ = SpaceSaving._read(b"".join(data for _, data in sorted(pieces.items())), known=False)
    except CorruptSummary:
        raise _torn() from None
    if (summary._identity, summary.capacity) != (counting.identity(number), counting.capacity):
        raise _torn()
    return summary


def _torn() -> SourceError:
    return SourceError(
        "every partition must be counted once, by this job; Spark delivered parts that are missing, double or foreign."
        " Run it again, with one version of dptop on driver and executors."
    )
