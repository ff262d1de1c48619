"""Labels tracked by their largest estimates, beside any frequency oracle (Holland, section 5).

An item is counted by the oracle, which then estimates its label. The estimate is stored if the label is tracked, if
there is room, or if it exceeds the smallest one stored, whose label goes; of several with the smallest estimate the one
that was stored first. A stored estimate is that of the label's own last arrival: what comes later does not touch it.

So when a label was last not stored, or was evicted, all K stored estimates were at least its own.

Written to be read. The fast twin is the crate `summaries`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from dptop.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Oracle", "Tracked"]

Label = TypeVar("Label")
Asked = TypeVar("Asked", contravariant=True)


class Oracle(Protocol[Asked]):
    """What is asked of an oracle while a stream is read."""

    def update(self, label: Asked, weight: int = 1) -> object:
        """Count one item, `weight` times."""

    def estimate(self, label: Asked) -> int:
        """Return how often a label was counted, about."""


class Tracked(Generic[Label]):
    """At most `capacity` labels, each with the oracle's estimate at its last arrival.

    Args:
        oracle: counts all items, and estimates.
        capacity: K, how many labels are tracked at the most; the paper's k-tilde.

    Raises:
        InvalidParameter: capacity below 1.

    >>> from dptop.reference.count_min import CountMin
    >>> from dptop.reference.row_hash import RowHash
    >>> sketch = CountMin(1, [RowHash(a=1, b=0, c=0)], fingerprint=ord)  # one cell: every estimate is the length
    >>> tracked = Tracked(sketch, capacity=2)
    >>> tracked.read("abca")
    >>> tracked.stored  # b, stored first, made way for c; a came again
    {'c': 3, 'a': 4}
    """

    def __init__(self, oracle: Oracle[Label], capacity: int) -> None:
        if capacity < 1:
            raise InvalidParameter(f"capacity must be at least 1; got {capacity}. Track one label or more.")
        self.oracle = oracle
        self.capacity = capacity
        self.stored: dict[Label, int] = {}  # in the order in which the estimates were stored

    def update(self, label: Label | None, weight: int = 1) -> None:
        """Read one item, `weight` times in a row. None is a null; neither it nor weight 0 changes anything."""
        if label is None or weight == 0:
            return
        self.oracle.update(label, weight)
        estimate = self.oracle.estimate(label)
        if label in self.stored:
            del self.stored[label]
        elif len(self.stored) == self.capacity:
            smallest = min(self.stored, key=self.stored.__getitem__)  # the first of several
            if estimate <= self.stored[smallest]:
                return
            del self.stored[smallest]
        self.stored[label] = estimate

    def read(self, labels: Iterable[Label | None]) -> None:
        """Read items in their order, each once."""
        for label in labels:
            self.update(label)
