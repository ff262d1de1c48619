"""The envelopes of the smallest thresholds that a sketch can claim, within a given chance of failure.

Three uses of a sketch; which estimates must be right in each, and why no others, is proved in docs/privacy.md.
None is a normal result: no threshold below the length of the stream can be claimed, so that nothing could be released.
It depends on public numbers only.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from dptop.envelope.claim import Envelope, LabelEnvelope, isolated
from dptop.envelope.rounding import at_most
from dptop.errors import InvalidParameter
from dptop.parameters import shown
from dptop.search import smallest_between, smallest_sum

if TYPE_CHECKING:
    from dptop.privacy import PrivacyParameters
    from dptop.tie import Tie

__all__ = ["SketchError", "fixed_labels", "noise_at_release", "noise_first"]


class SketchError(Protocol):
    """The chances that a sketch's estimates err: `CountMinError`, `CountSketchError`. All fall as the error grows."""

    @property
    def length(self) -> int:
        """N, a bound on the length of the stream."""

    @property
    def once(self) -> float:
        """The chance that what all others rest on is wrong."""

    @property
    def pairs(self) -> float:
        """The chance that any two labels share all their cells."""

    def over_fixed(self, g: int) -> float:
        """Return P[estimate - f > g] at the end, for a label fixed beforehand."""

    def finals(self, g: int) -> float:
        """Return the chance that the final estimate of any of N + 1 labels is above f + g."""

    def trackings(self, t: int) -> float:
        """Return the chance that an estimate without noise leaves [f - t2, f + t1] on arrival, (t1, t2) = parted(t)."""

    def parted(self, t: int) -> tuple[int, int]:
        """Return (t1, t2) with t1 + t2 = t and the smallest chance."""

    def noisy_overs(self, g: int) -> float:
        """Return the chance that any noisy estimate, on arrival or at the end, is above f + g."""

    def noisy_unders(self, g: int) -> float:
        """Return the chance that any noisy estimate is below f - g on arrival."""


def noise_at_release(
    error: SketchError, *, beta: Decimal, capacity: int, state: PrivacyParameters, within: int | None = None
) -> Envelope | None:
    """Return the envelope of a sketch without noise while the stream is read, and noise in every cell at release.

    The smallest t1 + t2 + g1 with trackings(t1 + t2) + finals(g1) + pairs + once <= beta: exact below 2^16, above it at
    most one in 2^16 too large.

    Args:
        error: of the sketch, whose noise is that of the release.
        beta: the chance of failure that is allowed, 0 < beta < 1/2; `beta_within` has it for a delta.
        capacity: K, how many labels are tracked.
        state: the privacy of the noisy cells.
        within: the largest sum of errors that is of interest; none without it but that the threshold be below N.

    Raises:
        InvalidParameter: beta out of range.

    >>> from fractions import Fraction
    >>> from dptop.envelope import CountMinError, LaplaceCells
    >>> from dptop.privacy import PrivacyParameters
    >>> error = CountMinError(width=4096, depth=16, length=10**6, noise=LaplaceCells(Fraction(1, 16)))
    >>> state = PrivacyParameters(Fraction(1), Decimal(0))
    >>> envelope = noise_at_release(error, beta=Decimal("1e-10"), capacity=2000, state=state)
    >>> envelope.over_tracking, envelope.under_tracking, envelope.over, envelope.threshold(10**6, 2000)
    (2553, 0, 2545, 5598)
    """
    allowed, most = _allowed(beta, error), _most(error, capacity, 0, within)
    split = smallest_sum(error.finals, error.trackings, allowed, most)
    if split is None:
        return None
    g, t = split
    over_tracking, under_tracking = error.parted(t)
    chance = error.finals(g) + error.trackings(t) + error.pairs + error.once
    return Envelope(over_tracking, under_tracking, g, Decimal(chance), state)


def noise_first(
    error: SketchError, *, beta: Decimal, capacity: int, state: PrivacyParameters, within: int | None = None
) -> Envelope | None:
    """Return the envelope of a sketch whose cells get their noise before the first item: the paper's form.

    Every estimate is noisy, on arrival and at the end: the smallest 2 g1 + g2 with
    noisy_overs(g1) + noisy_unders(g2) + pairs + once <= beta: exact below 2^16, above it at most one in 2^16 too large.

    Args:
        error: of the sketch.
        beta: the chance of failure that is allowed, 0 < beta < 1/2; `beta_within` has it for a delta.
        capacity: K, how many labels are tracked.
        state: the privacy of the noisy cells.
        within: the largest 2 g1 + g2 that is of interest; none without it but that the threshold be below N.

    Raises:
        InvalidParameter: beta out of range.
    """
    allowed, most = _allowed(beta, error), _most(error, capacity, 0, within)
    split = smallest_sum(error.noisy_overs, error.noisy_unders, allowed, most, times=2)
    if split is None:
        return None
    over, under = split
    chance = error.noisy_overs(over) + error.noisy_unders(under) + error.pairs + error.once
    return Envelope(over, under, over, Decimal(chance), state)


def fixed_labels(
    error: SketchError,
    *,
    delta: Decimal,
    capacity: int,
    tie: Tie,
    state: PrivacyParameters,
    within: int | None = None,
) -> LabelEnvelope | None:
    """Return the envelope for labels that SpaceSaving tracks, whose counts are read from the sketch at the end.

    The smallest g1 with s over_fixed(g1) + once <= delta, s = 2 under least recent and 4 under most recent.

    Args:
        error: of the sketch, whose noise is that of the release.
        delta: what the labels may cost, 0 < delta < 1; the state's own delta comes on top.
        capacity: K, of the SpaceSaving summary.
        tie: its tie rule.
        state: the privacy of the noisy cells.
        within: the largest g1 that is of interest; none without it but that the threshold be below N.

    Raises:
        InvalidParameter: delta out of range.
    """
    if not 0 < delta < 1:
        raise InvalidParameter(f"delta must be a decimal with 0 < delta < 1; got {shown(delta)}. Take a part of delta.")
    s = isolated(tie)
    allowed, most = at_most(delta) - error.once, _most(error, capacity, 1, within)
    if most < 0 or s * error.over_fixed(most) > allowed:
        return None
    g = smallest_between(0, most, lambda g: s * error.over_fixed(g) <= allowed)
    return LabelEnvelope(g, Decimal(error.over_fixed(g)), Decimal(error.once), tie, state)


def _allowed(beta: Decimal, error: SketchError) -> float:
    if not 0 < beta < Decimal("0.5"):
        raise InvalidParameter(
            f"beta must be a decimal with 0 < beta < 1/2; got {shown(beta)}. beta_within has it for a delta."
        )
    return at_most(beta) - error.pairs - error.once


def _most(error: SketchError, capacity: int, extra: int, within: int | None) -> int:
    """Return the largest sum of errors that leaves the threshold below the length; above it nothing is released."""
    most = error.length - 1 - error.length // capacity - extra
    return most if within is None else min(most, within)
