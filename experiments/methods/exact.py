"""Exact counts: what every method is measured against, and what the exact stability histogram releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ExactCounts", "Integers", "counted"]

Integers = np.ndarray[Any, np.dtype[np.int64]]


class ExactCounts(NamedTuple):
    """Every label of a stream with its count. The memory grows with the distinct labels, without a bound.

    Attributes:
        labels: an Arrow array of int64 or of strings, smallest first.
        counts: how often each occurs, in the same order; at least 1.
    """

    labels: pa.Array
    counts: Integers

    @property
    def memory_bytes(self) -> int:
        """Bytes of what is kept: 8 for a count, and what Arrow holds for its label, 8 or 4 and the text.

        In favour of exact counts: the hash table that finds a label while counting, about as large again, is left out,
        as are the items.
        """
        return int(self.counts.nbytes + self.labels.nbytes)


def counted(items: pa.Array) -> ExactCounts:
    """Return the count of every label.

    Args:
        items: an Arrow array of int64 or of strings, without nulls.

    Raises:
        ValueError: there is a null, which is no label.
    """
    if items.null_count:
        raise ValueError(f"items must hold no nulls; got {items.null_count}. Drop them before they are counted.")
    labels, counts = pc.value_counts(items).flatten()
    order = pc.array_sort_indices(labels)
    return ExactCounts(labels.take(order), counts.take(order).to_numpy())
