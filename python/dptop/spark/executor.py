"""What runs on the executors of Spark: one partition -> one summary, and no randomness.

An engine may run a task twice, and on two executors at once. Whatever is drawn there would be drawn twice, and two
releases of one partition differ by nothing but noise. So executors only count. Even the identity of a summary, which
is random elsewhere, follows from a secret of the driver and the number of the partition: two runs of a task give the
same bytes, and it does not matter which of them is taken.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dptop.counters import SpaceSaving
from dptop.errors import DptopError
from dptop.ledger import IDENTITY_BYTES
from dptop.spark.pieces import pieces_of, refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Counting"]


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

    @property
    def nonce(self) -> str:
        """A word that no other release has; it tells nothing of the secret."""
        return hashlib.sha256(self.secret + b"nonce").hexdigest()

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
            yield refusal(partition, error)
            return
        yield from pieces_of(partition, summary.to_bytes())
