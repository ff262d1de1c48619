"""Count-Min (Cormode, Muthukrishnan 2005): d rows of w cells; the estimate of a label is its smallest cell.

In each row an item adds its weight to one cell, which the row's hash says. On a stream without negative weights every
cell of a label holds at least its count, and exceeds it by the weights of the labels that share the cell: by F1 / w on
average, for labels of total weight F1.

Written to be read. The fast twin is the crate `summaries`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from dptop.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dptop.reference.row_hash import RowHash

__all__ = ["CountMin"]

Label = TypeVar("Label")


class CountMin(Generic[Label]):
    """Every estimate is at least the label's true count, on a stream without negative weights.

    Args:
        width: w, cells in a row; 1 to 2^31.
        rows: the hash of each row.
        fingerprint: 64 bits that stand for a label, distinct ones for distinct labels.

    Raises:
        InvalidParameter: width below 1, or no row.

    >>> from dptop.reference.row_hash import RowHash
    >>> sketch = CountMin(2, [RowHash(a=2**63, b=0, c=0), RowHash(a=2**62, b=0, c=0)], fingerprint=ord)
    >>> for label in "aab":
    ...     sketch.update(label)
    >>> sketch.cells, sketch.estimate("a"), sketch.estimate("b")
    ([[1, 2], [2, 1]], 2, 1)
    """

    def __init__(self, width: int, rows: Sequence[RowHash], fingerprint: Callable[[Label], int]) -> None:
        if width < 1 or not rows:
            raise InvalidParameter(
                f"a sketch has cells; got width {width} and {len(rows)} rows. Use at least one each."
            )
        self.width = width
        self.rows = rows
        self.fingerprint = fingerprint
        self.length = 0  # the sum of all weights without their signs
        self.cells = [[0] * width for _ in rows]

    def update(self, label: Label, weight: int = 1) -> None:
        """Read one item, `weight` times in a row; a negative weight takes it back as often."""
        f = self.fingerprint(label)
        for row, cells in zip(self.rows, self.cells, strict=True):
            cells[row.bucket(f, self.width)] += weight
        self.length += abs(weight)

    def estimate(self, label: Label) -> int:
        """Return the smallest cell of a label."""
        f = self.fingerprint(label)
        return min(cells[row.bucket(f, self.width)] for row, cells in zip(self.rows, self.cells, strict=True))

    def merge(self, other: CountMin[Label]) -> None:
        """Add what a sketch with the same width, rows and fingerprints has counted."""
        for cells, added in zip(self.cells, other.cells, strict=True):
            cells[:] = [one + another for one, another in zip(cells, added, strict=True)]
        self.length += other.length
