"""Labels as they leave a summary: int, str, bytes, or `ShortenedLabel` for one above the length limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Label", "ShortenedLabel", "label_order", "largest_first"]


@dataclass(frozen=True, slots=True)
class ShortenedLabel:
    """A label longer than `max_label_bytes`: counted apart from every other, kept as a prefix and a digest.

    Attributes:
        prefix: the first characters or bytes of the label.
        sha256: the SHA-256 digest of the whole label (of its UTF-8 bytes, for text).
    """

    prefix: str | bytes
    sha256: bytes

    def plain(self) -> str | bytes:
        """Return prefix and digest as one text or bytes, for formats that know nothing else. It does not read back."""
        mark = f"…[sha256:{self.sha256.hex()}]"
        return self.prefix + mark if isinstance(self.prefix, str) else self.prefix + mark.encode()


Label = int | str | bytes | ShortenedLabel


def label_order(label: Label) -> tuple[int | str | bytes, bytes]:
    """Return the key that sorts the labels of one summary: integers by value, text and bytes by their bytes.

    >>> sorted(["b", "a", "B"], key=label_order)
    ['B', 'a', 'b']
    """
    if isinstance(label, ShortenedLabel):
        return label.prefix, label.sha256
    return label, b""


def largest_first(counted: Iterable[tuple[Label, int]]) -> list[tuple[Label, int]]:
    """Return labels and counts by count downwards, then label.

    >>> largest_first([("a", 1), ("c", 2), ("b", 2)])
    [('b', 2), ('c', 2), ('a', 1)]
    """
    return sorted(counted, key=lambda pair: (-pair[1], label_order(pair[0])))
