"""CountSketch (Charikar, Chen, Farach-Colton 2002): d rows of w cells; the estimate is the median of signed cells.

In each row an item adds its weight to one cell, with a sign; the row's hash says both. A label's cell, taken with the
label's sign, holds its count plus the counts of the labels that share the cell, with random signs: on average they
cancel, whatever the signs of the weights.

Written to be read. The fast twin is the crate `summaries`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from dptop.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dptop.reference.row_hash import RowHash

__all__ = ["CountSketch"]

Label = TypeVar("Label")


class CountSketch(Generic[Label]):
    """In every row the expected estimate of a label is its true count.

    Args:
        width: w, cells in a row; 1 to 2^31.
        rows: the hash of each row, an odd number of them.
        fingerprint: 64 bits that stand for a label, distinct ones for distinct labels.

    Raises:
        InvalidParameter: width below 1, or an even number of rows.

    >>> from dptop.reference.row_hash import RowHash
    >>> sketch = CountSketch(2, [RowHash(a=2**63, b=0, c=2**31)], fingerprint=ord)
    >>> for label in "aab":
    ...     sketch.update(label)
    >>> sketch.cells, sketch.estimate("a"), sketch.estimate("b")
    ([[-1, -2]], 2, 1)
    """

    def __init__(self, width: int, rows: Sequence[RowHash], fingerprint: Callable[[Label], int]) -> None:
        if width < 1:
            raise InvalidParameter(f"a sketch has cells; got width {width}. Use at least one.")
        if len(rows) % 2 == 0:
            raise InvalidParameter(f"a median takes an odd number of rows; got {len(rows)}. Add one.")
        self.width = width
        self.rows = rows
        self.fingerprint = fingerprint
        self.length = 0  # the sum of all weights without their signs
        self.cells = [[0] * width for _ in rows]

    def update(self, label: Label, weight: int = 1) -> None:
        """Read one item, `weight` times in a row; a negative weight takes it back as often."""
        f = self.fingerprint(label)
        for row, cells in zip(self.rows, self.cells, strict=True):
            cells[row.bucket(f, self.width)] += row.sign(f) * weight
        self.length += abs(weight)

    def estimate(self, label: Label) -> int:
        """Return the median of the signed cells of a label."""
        return sorted(self.row_estimates(label))[len(self.rows) // 2]

    def row_estimates(self, label: Label) -> list[int]:
        """Return the signed cell of a label in each row."""
        f = self.fingerprint(label)
        pairs = zip(self.rows, self.cells, strict=True)
        return [row.sign(f) * cells[row.bucket(f, self.width)] for row, cells in pairs]

    def merge(self, other: CountSketch[Label]) -> None:
        """Add what a sketch with the same width, rows and fingerprints has counted."""
        for cells, added in zip(self.cells, other.cells, strict=True):
            cells[:] = [one + another for one, another in zip(cells, added, strict=True)]
        self.length += other.length
