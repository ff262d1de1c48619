"""Misra-Gries, the paper's Algorithm 1, in the variant of Lebeda and Tětek 2023, whose neighbours are known.

When an item x arrives, if it is already present in the table, its counter is incremented. If it is not present and a
free counter exists, x is inserted with count 1. If all K counters are occupied, and some are zero, the smallest label
with a zero counter is replaced by x with count 1. If none is zero, all counters are decremented, and x is dropped.

Labels whose counter is zero stay: the textbook drops them, and then neighbours may differ in all labels.

Written to be read. Every step scans the table; the fast twin is the crate `summaries`.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from dptop.errors import InvalidParameter

__all__ = ["MisraGries"]

Label = TypeVar("Label", int, str, bytes)


class MisraGries(Generic[Label]):
    """Every count is at most the label's true count, and below it by at most n / (K + 1).

    Args:
        capacity: K, the most labels tracked at once; at least 1.

    Raises:
        InvalidParameter: capacity below 1.

    >>> summary = MisraGries(capacity=2)
    >>> for label in "aabcd":
    ...     summary.update(label)
    >>> summary.counters(), summary.length
    ({'a': 1, 'd': 1}, 5)
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise InvalidParameter(f"capacity must be at least 1; got {capacity}. It is the number of labels tracked.")
        self.capacity = capacity
        self.length = 0  # n, the items read so far
        self._count: dict[Label, int] = {}

    def update(self, label: Label, weight: int = 1) -> None:
        """Read one item. Weight w counts as w occurrences in a row, 0 as none.

        Raises:
            InvalidParameter: a negative weight.
        """
        if weight < 0:
            raise InvalidParameter(f"weight must not be negative; got {weight}. Items cannot be taken back.")
        for _ in range(weight):
            self._occurrence(label)

    def _occurrence(self, x: Label) -> None:
        self.length += 1
        zeros = [label for label, count in self._count.items() if count == 0]
        if x in self._count:
            self._count[x] += 1
        elif len(self._count) < self.capacity:
            self._count[x] = 1
        elif zeros:
            del self._count[min(zeros)]
            self._count[x] = 1
        else:
            self._decrement()

    def _decrement(self) -> None:
        for label in self._count:
            self._count[label] -= 1

    def counters(self) -> dict[Label, int]:
        """Return the tracked labels with their counters, zeros included."""
        return dict(self._count)
