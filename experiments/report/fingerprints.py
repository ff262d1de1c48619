"""Of which streams the paper's wrapper can release anything: a limit of our 64-bit fingerprints, not of the method.

A sketch hashes fingerprints of labels, and the wrapper over labels by estimates pays for the chance that any two labels
of the stream share one, as for every other way in which its envelope may fail: (1 + e^epsilon) times that chance, out
of delta. A stream can be so long that this alone is more than there is, and then nothing is released, whatever it says.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from dptop.envelope import beta_within
from dptop.envelope.rows import EQUAL_FINGERPRINTS, some_pair
from dptop.mechanism import SketchNoise
from dptop.privacy import PrivacyParameters
from experiments.methods.summaries import DEPTH
from experiments.report.keys import COUNT_MIN, COUNT_SKETCH

if TYPE_CHECKING:
    from experiments.results import Row

__all__ = ["DEPTHS", "can_release", "chance_of_equal", "limit", "longest", "longest_stream"]

DEPTHS: Final = {COUNT_MIN: DEPTH, COUNT_SKETCH: DEPTH + 1}
"""Rows of the sketch, by method, of those that have this limit."""


@cache
def longest_stream(epsilon: float, delta: float, depth: int) -> int:
    """Return the longest stream of which the wrapper over a sketch can pay for equal fingerprints alone.

    Labels tracked by estimates, declared length: (1 + e^epsilon) times the chance that two of N + 1 labels share one of
    64 bits has to be below what noise leaves of delta. docs/privacy.md, section 15.

    >>> longest_stream(10.0, 0.001, 32) < 2**24 < longest_stream(1.0, 0.001, 32)
    True
    """
    made, left = SketchNoise.of(None, PrivacyParameters.of(epsilon, delta), depth)
    beta = float(beta_within(left, made.state.epsilon))
    low, high = 0, 2**40
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if chance_of_equal(middle) < beta else (low, middle)
    return low


def longest(epsilon: float, delta: float) -> int:
    """Return the longest stream of which the wrapper can release anything over both sketches, as they are run here."""
    return min(longest_stream(epsilon, delta, depth) for depth in DEPTHS.values())


def limit(epsilon: float, delta: float) -> str:
    """Return the same as a sentence."""
    return (
        f"At epsilon = {epsilon:g} and delta = {delta:g} our 64-bit fingerprints, and not the method, let the wrapper"
        f" release nothing of more than {longest(epsilon, delta):,} items: where a stream has more, this epsilon has no"
        " say."
    )


def chance_of_equal(length: int) -> float:
    """Return the chance, at most, that any two labels of a stream, and one more, share a fingerprint."""
    return some_pair(length, EQUAL_FINGERPRINTS)


def can_release(row: Row) -> bool:
    """Return whether a release of a method, from a stream of that length, can have labels at all."""
    if row.method not in DEPTHS or row.epsilon is None or row.delta is None:
        return True
    return row.length <= longest_stream(row.epsilon, row.delta, DEPTHS[row.method])
