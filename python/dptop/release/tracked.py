"""What both releases of an oracle's labels share: its estimates, the length that bounds both neighbours, and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dptop._native import MAX_LENGTH
from dptop.envelope import Envelope
from dptop.errors import InvalidParameter
from dptop.oracle import CountMin, LinearSketch, NoisyAtRelease
from dptop.tracked import ESTIMATES, SPACE_SAVING, whole_estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dptop.oracle import FrequencyOracle
    from dptop.release.request import PublicLength, Request
    from dptop.tracked import Tracked

__all__ = [
    "STATED",
    "as_stated",
    "bound_for_both",
    "counted_by",
    "declared",
    "err_by",
    "final_estimates",
    "least_count",
    "stated_by",
]

STATED: Final = ("Assumed", "the oracle keeps the envelope and the privacy that it states. The guarantee rests on it.")


def final_estimates(oracle: FrequencyOracle, labels: Sequence[object]) -> list[int]:
    """Return the final estimates of an oracle of another library."""
    final = oracle.noisy() if isinstance(oracle, NoisyAtRelease) else oracle
    return [whole_estimate(final.estimate(label)) for label in labels]


def bound_for_both(public: PublicLength) -> int:
    """Return a bound on the length of both neighbours: a lifted noisy length bounds the shorter one only."""
    return public.value if public.noisy is None else min(MAX_LENGTH, public.value + 1)


def least_count(request: Request, public: PublicLength | None) -> int:
    """Return the smallest noisy count with the share asked for, of the declared or the noisy length itself."""
    if public is None:
        return 0
    return request.least_count(public.value if public.noisy is None else public.noisy)


def stated_by(oracle: FrequencyOracle, length: int) -> Envelope:
    """Return the envelope that an oracle states for streams of at most `length` items."""
    envelope = oracle.envelope(length)
    if not isinstance(envelope, Envelope):
        raise InvalidParameter(
            f"an oracle's envelope must be a dptop.Envelope; got {type(envelope).__name__}. Use Envelope.stated."
        )
    return envelope


def declared(tracked: Tracked) -> dict[str, object]:
    """Return what was declared when the stream was counted."""
    tie = tracked.tie.value if tracked.candidates == SPACE_SAVING else None
    return {"capacity": tracked.capacity, "candidates": tracked.candidates, "tie": tie}


def counted_by(tracked: Tracked, oracle: str) -> tuple[str, str]:
    """Return the fact that tells of the oracle, given in words, and of the labels."""
    if tracked.candidates == ESTIMATES:
        return "Counted by", f"{oracle}; the {tracked.capacity} labels with the largest estimates seen."
    return "Counted by", f"{oracle}; labels by SpaceSaving, capacity {tracked.capacity}, {tracked.tie.value}."


def err_by(sketch: LinearSketch) -> str:
    """Return in words how counts of a sketch err."""
    if isinstance(sketch, CountMin):
        return "a count exceeds the true count by what other labels add to its cells, besides the noise."
    return "a count errs to either side by what other labels add to its cells, besides the noise."


def as_stated(stated: Envelope) -> str:
    """Return in words how counts of another oracle err."""
    above = f"a count is at most {stated.over} above the true count"
    below = "how far below is not stated" if stated.under is None else f"at most {stated.under} below"
    return f"{above} and {below}, as the oracle states."
