"""What the envelopes assume of a sketch's rows."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from dptop.envelope.rounding import SLACK
from dptop.errors import InvalidParameter
from dptop.parameters import shown, whole_number

__all__ = ["EQUAL_FINGERPRINTS", "checked_collision", "checked_shape", "collision_chance", "some_pair"]

EQUAL_FINGERPRINTS: Final = Fraction(1, 2**64)
"""The chance that two labels have one fingerprint under this package's hashes, and so share all cells."""
HASH_BITS: Final = 32
LARGEST: Final = 2**63 - 1


def collision_chance(width: int) -> Fraction:
    """Return c with which two distinct labels fall into one of `width` cells at most, under this package's hashes.

    A label's 32 bits for a row, uniform and independent for two labels, are scaled to the width: no cell gets more than
    ceil(2^32/w) of the 2^32 values. That is 1/w for powers of two, and above it by less than 2^-32 otherwise.

    >>> collision_chance(1024), float(collision_chance(1000))
    (Fraction(1, 1024), 0.0010000001639127731)
    """
    return Fraction(-(-(2**HASH_BITS) // width), 2**HASH_BITS)


def checked_shape(width: int, depth: int, length: int, sharing: Fraction) -> None:
    """Check what every sketch has."""
    if not 0 <= sharing < 1:
        raise InvalidParameter(
            f"sharing must be a chance below 1; got {shown(sharing)}. 2^-b for fingerprints of b bits."
        )
    whole_number("width", width, 1, LARGEST, "A row needs a cell.")
    whole_number("depth", depth, 1, LARGEST, "A sketch needs a row.")
    whole_number("length", length, 1, LARGEST, "Declare a bound on the length of the stream.")


def some_pair(length: int, sharing: Fraction) -> float:
    """Return at least the chance that any two of N + 1 labels share all their cells: N (N + 1)/2 pairs.

    >>> round(some_pair(10**6, Fraction(1, 2**64)), 10), some_pair(10**9, Fraction(1, 2**128)) < 1e-20
    (2.71e-08, True)
    """
    return float(length * (length + 1) * sharing / 2) * (1 + SLACK)


def checked_collision(collision: Fraction | None, width: int) -> Fraction:
    """Return the chance of a collision: this package's, or the one that is stated for other hashes."""
    if collision is None:
        return collision_chance(width)
    if not Fraction(1, 2 * width) <= collision <= 1:
        raise InvalidParameter(
            f"collision must be a chance near 1 / width; got {shown(collision)}. State what the hashes guarantee."
        )
    return Fraction(collision)
