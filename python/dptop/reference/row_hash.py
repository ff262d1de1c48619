"""The hash family of the linear sketches: vector multiply-shift, a bucket and a sign for each row.

A label's fingerprint F has 64 bits; a row has three numbers a, b, c of its own, uniform on the 64-bit words, and

    h(F) = a * lo32(F) + b * hi32(F) + c    mod 2^64

Its top 33 bits are strongly universal: uniform and 2-independent over distinct fingerprints (Dietzfelbinger 1996;
Thorup, "High Speed Hashing for Integers and Strings", section 3). The top 32 bits say the bucket, the next the sign.

Two distinct fingerprints share a bucket with chance at most ceil(2^32 / width) / 2^32. What is proved of the family,
and what the sketches assume beyond that, stands in crates/summaries/src/row_hash.rs, the fast twin.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["RowHash", "fingerprint"]

WORD: Final = 2**64
HALF: Final = 2**32


class RowHash(NamedTuple):
    """The hash of one row.

    Args:
        a: multiplies the low half of a fingerprint; below 2^64.
        b: multiplies the high half; below 2^64.
        c: is added; below 2^64.

    >>> row = RowHash(a=2**62, b=0, c=2**31)
    >>> [row.bucket(f, width=4) for f in (0, 1, 2, 3)], [row.sign(f) for f in (0, 1)]
    ([0, 1, 2, 3], [-1, -1])
    """

    a: int
    b: int
    c: int

    def hash(self, f: int) -> int:
        """Return h(f), 64 bits of which the top 33 are strongly universal."""
        return (self.a * (f % HALF) + self.b * (f // HALF) + self.c) % WORD

    def bucket(self, f: int, width: int) -> int:
        """Return a bucket below `width`, 1 to 2^31: all of nearly the same size."""
        return (self.hash(f) // HALF) * width // HALF

    def sign(self, f: int) -> int:
        """Return 1 or -1, jointly 2-independent with the bucket."""
        return -1 if self.hash(f) // (HALF // 2) % 2 else 1


def fingerprint(label: int, key: int) -> int:
    """Return the fingerprint of an integer label: two rounds of multiplying to 128 bits and folding the halves.

    Negative labels are taken modulo 2^64. Each label of 2^63 or above shares these bits with one of them, and differs
    from it in the last bit of the fingerprint.

    Args:
        label: -2^63 to 2^64 - 1.
        key: the sketch's, below 2^64.

    >>> fingerprint(-1, key=7) ^ fingerprint(2**64 - 1, key=7)
    1
    """
    rotated = (key % HALF) * HALF + key // HALF
    once = _fold(label % WORD ^ key, 0x9FB21C651E98DF25)
    return _fold(once ^ rotated, 0xA3B195354A39B70D) ^ (label >= WORD // 2)


def _fold(x: int, factor: int) -> int:
    product = x * factor
    return product % WORD ^ product // WORD
