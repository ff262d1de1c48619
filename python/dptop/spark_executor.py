"""What runs on the executors of Spark: one partition -> one summary, and no randomness.

An engine may run a task twice, and on two executors at once. Whatever is drawn there would be drawn twice, and two
releases of one partition differ by nothing but noise. So executors only count. Even the identity of a summary, which
is random elsewhere, follows from a secret of the driver and the number of the partition: two runs of a task give the
same bytes, and it does not matter which of them is taken.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dptop.counters import SpaceSaving
from dptop.errors import DptopError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PIECES", "REFUSED", "Counting"]

PIECES: Final = "partition int, number int, of int, data binary"
"""The rows that a partition yields: its number, and its saved summary in numbered pieces."""
REFUSED: Final = -1
"""Instead of the number of a piece: the data are the message of an error, which quotes no item. As a row, it is not
tried again by Spark, and comes to the driver whole."""
PIECE_BYTES: Final = 2**20
"""Rows of a size that any transport takes: Arrow's binary columns end at 2 GB, Connect's messages before."""
IDENTITY_BYTES: Final = 16


@dataclass(frozen=True)
class Counting:
    """What executors are told.

    Attributes:
        capacity: of each summary.
        secret: random, drawn by the driver for one release. It keys hashes, so that nobody can make labels collide.
    """

    capacity: int
    secret: bytes = field(repr=False)

    def identity(self, partition: int) -> bytes:
        """Return the identity of a partition's summary: to all who do not know the secret, as good as random."""
        return hashlib.sha256(self.secret + partition.to_bytes(8, "little")).digest()[:IDENTITY_BYTES]

    def nothing(self, partition: int) -> SpaceSaving:
        """Return the summary of a partition before its first item."""
        return SpaceSaving._identified(self.capacity, self.identity(partition))

    def summarise(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Count the only column of the batches of one partition, in their order, and yield the summary in pieces.

        For `DataFrame.mapInArrow`: record batches of pyarrow in, and out. PRIVATE.
        """
        from pyspark import TaskContext  # here: the package does without, unless Spark runs it

        partition = TaskContext.get().partitionId()
        summary = self.nothing(partition)
        try:
            for batch in batches:
                summary.extend(batch.column(0))
        except DptopError as error:
            for _ in batches:  # to its end, as Spark goes on handing over
                pass
            yield _row(partition, REFUSED, 1, str(error).encode())
            return
        data = summary.to_bytes()
        starts = range(0, len(data), PIECE_BYTES)
        for number, start in enumerate(starts):
            yield _row(partition, number, len(starts), data[start : start + PIECE_BYTES])


def _row(partition: int, number: int, of: int, data: bytes) -> Any:
    import pyarrow  # here: the base install has none

    columns = {"partition": [partition], "number": [number], "of": [of]}
    arrays = {name: pyarrow.array(value, pyarrow.int32()) for name, value in columns.items()}
    return pyarrow.RecordBatch.from_pydict({**arrays, "data": pyarrow.array([data], pyarrow.binary())})
