"""Misra-Gries made public: every counter with noise of its own and noise that all share."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from dptop import noise
from dptop._native import MAX_LENGTH
from dptop.intervals import quantile
from dptop.mechanism import MISRA_GRIES, MISRA_GRIES_PUBLISHED, MisraGriesThreshold
from dptop.release.publication import (
    DISCRETE_LAPLACE,
    Facts,
    Plan,
    Published,
    length_in_words,
    noise_in_words,
    rows_of,
    share_fact,
)

if TYPE_CHECKING:
    from dptop.counters import MisraGries
    from dptop.release.publication import CountersSnapshot
    from dptop.release.request import Request

__all__ = ["by_published_threshold", "by_smallest_threshold"]

BELOW: Final = "a count is below the true count by up to n / (capacity + 1) of a stream of n items, besides the noise"
LENGTH_DOUBT: Final = 0.1
"""The part of an interval's chance to fail that a noisy length takes."""


def by_smallest_threshold(request: Request, summary: MisraGries) -> Plan:
    """Plan a release by `MisraGriesThreshold`, at the smallest threshold."""
    return _plan(request, summary, MISRA_GRIES)


def by_published_threshold(request: Request, summary: MisraGries) -> Plan:
    """Plan a release by `MisraGriesThreshold`, at the published threshold."""
    return _plan(request, summary, MISRA_GRIES_PUBLISHED)


def _plan(request: Request, summary: MisraGries, name: str) -> Plan:
    split = request.split()
    mechanism = MisraGriesThreshold.of(split.labels, published=name == MISRA_GRIES_PUBLISHED)

    def publish(snapshot: CountersSnapshot, seed: int | None) -> Published:
        length, [(_, counts)] = snapshot
        beta, undercount, noisy_length = 1 - request.confidence, None, None
        least_count = -MAX_LENGTH
        if request.share is not None or request.length is not None:
            public_length, noisy_length = split.public_length(length, seed)
            least_count = request.least_count(public_length)
            if noisy_length is not None:
                public_length += quantile(split.length_epsilon, Decimal(beta * LENGTH_DOUBT))
                beta *= 1 - LENGTH_DOUBT
            undercount = max(0, public_length) // (summary.capacity + 1)
        common, *draws = noise.draw(mechanism.epsilon, 1 + len(counts), seed)
        noisy = [count + common + draw for count, draw in zip(counts, draws, strict=True)]
        kept = [x for x, v in enumerate(noisy) if mechanism.keeps(v) and v >= least_count]
        published = [noisy[x] for x in kept]
        over = summary.capacity if request.simultaneous else None
        ends = mechanism.intervals(published, beta, undercount=undercount, simultaneous_over=over)
        intervals = [(low, MAX_LENGTH if high is None else high) for low, high in ends]
        facts: Facts = [
            ("Counted by", f"MisraGries, capacity {summary.capacity}, zero counters kept."),
            noise_in_words(
                DISCRETE_LAPLACE,
                mechanism.scale,
                "on every counter, and once more on all together",
                seeded=seed is not None,
            ),
            ("Threshold", f"a label is released only if its noisy count is at least {mechanism.threshold}."),
        ]
        if request.share is not None:
            facts.append(share_fact(request.share, length_in_words(split, noisy_length)))
        if undercount is None:
            facts.append(("Counts", f"{BELOW}. As no length is public, there is no upper end: high is 2^63 - 1."))
        else:
            facts.append(("Counts", f"{BELOW}, here at most {undercount}, which high allows for."))
        parameters = {
            "capacity": summary.capacity,
            "scale": mechanism.scale,
            "threshold": mechanism.threshold,
            "undercount": undercount,
        }
        rows = rows_of(summary, 0, kept, published, intervals)
        return Published(rows, facts, parameters, noisy_length=noisy_length)

    return Plan(name, split, publish)
