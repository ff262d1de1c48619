"""What each method says of the labels of a stream that was counted."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

from dptop.mechanism import ENVELOPE, MISRA_GRIES, MISRA_GRIES_PUBLISHED, PAPER, SELECTED, STABLE
from dptop.release import Request, plan
from experiments.methods.histogram import StabilityHistogram
from experiments.methods.metrics import Truth

if TYPE_CHECKING:
    from experiments.methods.summaries import Counted

__all__ = ["Asked", "Released", "release", "seed_of", "unprotected"]

MECHANISMS: Final = {
    "paper": PAPER,
    "misra-gries-published": MISRA_GRIES_PUBLISHED,
    "count-min": ENVELOPE,
    "count-sketch": ENVELOPE,
    "misra-gries": MISRA_GRIES,
    "stable-threshold": STABLE,
    "count-min-selected": SELECTED,
    "count-sketch-selected": SELECTED,
    "count-min-candidates": ENVELOPE,
    "count-sketch-candidates": ENVELOPE,
}
"""What `dptop.release` calls them."""
NO_SHARE: Final = 1e-9
"""For Algorithm 3 where no share is asked for: so small that the capacity decides."""


class Asked(NamedTuple):
    """What a private release is asked to be; k is None where no share is asked for."""

    epsilon: float
    delta: float
    k: int | None
    seed: int


class Released(NamedTuple):
    """What one method says: counts by label, and what a count had to exceed in this release, apart from n/k."""

    counts: dict[int | str, int]
    threshold: int | None


def seed_of(*what: object) -> int:
    """Return a seed for one purpose: other words give another seed.

    >>> seed_of("hashes", 1) == seed_of("hashes", 1) != seed_of("hashes", 2)
    True
    """
    return int.from_bytes(hashlib.blake2b(repr(what).encode(), digest_size=7).digest())  # below 2^63, as seeds are


def release(method: str, counted: Counted, truth: Truth, asked: Asked) -> Released:
    """Release by a private method, again and again past the ledger: an experiment's noise protects nobody.

    The length is declared, where the paper compares with the exact one.
    """
    if isinstance(counted.summary, Truth):
        return _release_exact(counted.summary, asked)
    mechanism = MECHANISMS[method]
    share = 1 / asked.k if asked.k else NO_SHARE if mechanism == PAPER else None
    request = Request(epsilon=asked.epsilon, delta=asked.delta, mechanism=mechanism, share=share, length=truth.length)
    published = plan(request, counted.summary).publish(counted.summary._snapshot(), asked.seed)
    exceeded: int | None = published.parameters.get("threshold")
    if mechanism == PAPER:  # without the part of n/k, which of the others stands apart
        exceeded = truth.length // published.parameters["capacity"] + 1 + published.parameters["gap"]
    elif mechanism in (STABLE, SELECTED):
        [minimum] = published.noisy_minimum
        exceeded = minimum + published.parameters["offset"]
    elif exceeded is not None and mechanism in (MISRA_GRIES, MISRA_GRIES_PUBLISHED):
        exceeded -= 1  # it is enough to reach it
    return Released({_whole_label(row.item): row.count for row in published.rows}, exceeded)


def _release_exact(truth: Truth, asked: Asked) -> Released:
    histogram = StabilityHistogram.calibrate(epsilon=asked.epsilon, delta=asked.delta)
    least = truth.least_count(asked.k) if asked.k else None
    return Released(histogram.release(truth.counts, seed=asked.seed, least_count=least), histogram.threshold)


def unprotected(counted: Counted, truth: Truth, k: int) -> Released:
    """Return what the summary itself says of heavy labels, without any privacy."""
    if isinstance(counted.summary, Truth):
        raise TypeError("exact counts are the truth, and no method")
    counters = counted.summary.private_counters()
    return Released({_whole_label(label): v for label, v in counters if v >= truth.least_count(k)}, None)


def _whole_label(label: object) -> int | str:
    if not isinstance(label, (int, str)):
        raise TypeError("streams are of numbers and texts that fit a summary whole")
    return label
