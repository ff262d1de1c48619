"""SpaceSaving, the paper's Algorithm 2, in the variant whose neighbours are known: docs/privacy.md section 2.

When an item x arrives, if it is already present in the table, its counter is incremented. If it is not present and a
free counter exists, x is inserted with count 1. If all K counters are occupied, a label with the minimum count is
replaced by x, and x gets that minimum plus one. Ties are broken by last occurrence.

Written to be read. Every step scans the table; the fast twin is the crate `summaries`.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from dptop.errors import InvalidParameter
from dptop.tie import Tie

__all__ = ["SpaceSaving"]

Label = TypeVar("Label")


class SpaceSaving(Generic[Label]):
    """Every count is at least the label's true count, and above it by at most `minimum`.

    Args:
        capacity: K, the most labels tracked at once; at least 1. The paper's k-tilde.
        tie: "least-recent", or "most-recent", which is the paper's rule.

    Raises:
        InvalidParameter: capacity below 1, or no such rule.

    >>> summary = SpaceSaving(capacity=2)
    >>> for label in "aabc":
    ...     summary.update(label)
    >>> summary.counters(), summary.minimum, summary.length
    ({'a': 2, 'c': 2}, 2, 4)
    """

    def __init__(self, capacity: int, tie: str | Tie = Tie.LEAST_RECENT) -> None:
        if capacity < 1:
            raise InvalidParameter(f"capacity must be at least 1; got {capacity}. It is the number of labels tracked.")
        self.capacity = capacity
        self.tie = Tie.of(tie)
        self.length = 0  # n, the items read so far
        self._count: dict[Label, int] = {}  # C, its labels in order of last occurrence, the longest ago first

    def update(self, label: Label, weight: int = 1) -> None:
        """Read one item. Weight w counts as w occurrences in a row; 0 counts as none, and does not refresh the label.

        Raises:
            InvalidParameter: a negative weight.
        """
        if weight < 0:
            raise InvalidParameter(f"weight must not be negative; got {weight}. Items cannot be taken back.")
        for _ in range(weight):
            self._occurrence(label)

    def _occurrence(self, x: Label) -> None:
        if x in self._count:
            count = self._count.pop(x) + 1
        elif len(self._count) < self.capacity:
            count = 1
        else:
            evicted = self._victim()
            count = self._count.pop(evicted) + 1
        self._count[x] = count  # at the end: x occurred last
        self.length += 1

    def _victim(self) -> Label:
        at_minimum = [label for label, count in self._count.items() if count == self.minimum]
        return at_minimum[0] if self.tie is Tie.LEAST_RECENT else at_minimum[-1]

    @property
    def minimum(self) -> int:
        """Return m: the smallest counter, and 0 while a slot is free."""
        return 0 if len(self._count) < self.capacity else min(self._count.values())

    def counters(self) -> dict[Label, int]:
        """Return the tracked labels with their counts, in order of last occurrence, the longest ago first. Private."""
        return dict(self._count)
