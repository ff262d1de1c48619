"""The one door from private to public: `release` checks, charges the ledger, draws noise once, and keeps what may pass.

Nothing private leaves by another way: the rows are built from noisy counts, in an order that depends on them and the
labels alone, and the result holds no reference to the summary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dptop._native import MAX_LENGTH
from dptop.counters import MisraGries, SpaceSaving
from dptop.errors import InvalidParameter, SourceError
from dptop.label import label_order
from dptop.mechanism import (
    CENTRAL_COUNTS,
    ENVELOPE,
    LOCAL_SUMS,
    MISRA_GRIES,
    MISRA_GRIES_PUBLISHED,
    PAPER,
    PUBLIC_LABELS,
    SELECTED,
    STABLE,
)
from dptop.oracle import LinearSketch
from dptop.parameters import whole_number
from dptop.release.misra_gries import by_published_threshold, by_smallest_threshold
from dptop.release.public_labels import by_public_labels
from dptop.release.request import Request
from dptop.release.sharded import by_central_counts, by_local_sums, sums_locally
from dptop.release.space_saving import by_noisy_minimum, by_paper
from dptop.release.tracked_envelope import by_envelope
from dptop.release.tracked_selected import by_selection
from dptop.report import Release
from dptop.sharded import Sharded
from dptop.tracked import ESTIMATES, Tracked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dptop.release.publication import Plan
    from dptop.summary import Summary

__all__ = ["Request", "check_whole", "plan", "release", "release_as"]

PLANS: dict[type[Any], dict[str, Callable[[Request, Any], Plan]]] = {
    SpaceSaving: {STABLE: by_noisy_minimum, PAPER: by_paper},
    MisraGries: {MISRA_GRIES: by_smallest_threshold, MISRA_GRIES_PUBLISHED: by_published_threshold},
    Tracked: {SELECTED: by_selection, ENVELOPE: by_envelope},
    LinearSketch: {PUBLIC_LABELS: by_public_labels},
    Sharded: {LOCAL_SUMS: by_local_sums, CENTRAL_COUNTS: by_central_counts},
}
"""The mechanisms of each summary by name, the default first."""


def release(
    summary: Summary | Sharded,
    *,
    epsilon: float,
    delta: float,
    top: int | None = None,
    share: float | None = None,
    length: int | None = None,
    max_contributions: int = 1,
    mechanism: str | None = None,
    noise: str | None = None,
    labels: Sequence[int | str | bytes] | None = None,
    confidence: float = 0.95,
    simultaneous: bool | None = None,
    seed: int | None = None,
) -> Release:
    """Release the most frequent labels of a stream: everything in the result is (epsilon, delta)-private, together.

    Two streams are neighbours if one is the other with one item added or removed anywhere. With `max_contributions` c
    the promise holds for all items of one unit (a person, a device), of total weight at most c, provided that the
    source bounds them.

    Args:
        summary: what was counted. One release, unless it declared a budget.
        epsilon: the total, 2^-20 to 64; rounded down to a multiple of 2^-32.
        delta: the total, 0 < delta < 1; well below one over the number of units.
        top: the number of largest noisy counts to keep; by default every label that passes the threshold.
        share: keep labels with at least this share of the stream, 0 < share <= 1 (the paper's 1/k). The length of the
            stream is then estimated with 2 % of epsilon, unless `length` declares a bound.
        length: a public upper bound on the length, known without looking at the data. For several shards it bounds the
            sum of their lengths, and is declared in one release only.
        max_contributions: the largest total weight of the items of one unit, 1 to 2^31.
        mechanism: by default the best one for the summary. For SpaceSaving "stable-threshold", or "paper": the paper's
            Algorithm 3, which needs a `share` and one partition, publishes no minimum, and is seldom better. For
            MisraGries "misra-gries", or "misra-gries-published", with the threshold of its authors. For Tracked
            "selected", for labels that SpaceSaving tracks, or "envelope". For a sketch by itself "public-labels". For
            Sharded "local-sums", up to four shards, or "central-counts".
        noise: of the cells of a sketch: "laplace" or "gaussian"; by default the one that spreads less.
        labels: for a sketch by itself: the labels to release, known without looking at the data. They must be of the
            kind that was counted: a text and its UTF-8 as bytes are one label to a sketch.
        confidence: of the intervals, 0 < confidence < 1.
        simultaneous: whether all intervals hold at once, whatever is picked among them; they are wider. Otherwise each
            holds by itself, given that its label was released, and less often if it was picked once more by its
            noisy count. By default True where `top` or `share` picks, else False; always of Sharded.
        seed: for tests only: repeatable noise, and a result that is not private.

    Raises:
        InvalidParameter: a value out of range: nothing is spent. A stream longer than `length`: the release is spent
            and the summary closed, since the error tells of the length; the promise covers streams within the bound.
        BudgetExhausted: the stream has been released already, or its budget does not cover this.
        SourceError: an error cut the stream short.

    Source: docs/privacy.md sections 4 to 7 and 12 to 17; the mechanisms are in `dptop.mechanism` and `dptop.envelope`.

    >>> import dptop
    >>> pages = dptop.SpaceSaving(capacity=1000)
    >>> pages.extend(["/home", "/cart", "/home"] * 500)
    >>> [row.item for row in dptop.release(pages, epsilon=1.0, delta=1e-9)]
    ['/home', '/cart']
    """
    request = Request(
        epsilon=epsilon,
        delta=delta,
        top=top,
        share=share,
        length=length,
        max_contributions=max_contributions,
        mechanism=mechanism,
        noise=noise,
        labels=labels,
        confidence=confidence,
        simultaneous=simultaneous,
    )
    return release_as(request, summary, seed)


def plan(request: Request, summary: Summary | Sharded) -> Plan:
    """Return the mechanism that would release a summary: by default the best one for it.

    Raises:
        InvalidParameter: not a summary, a mechanism that is not for it, or parameters that the mechanism refuses.
    """
    plans = next((plans for kind, plans in PLANS.items() if isinstance(summary, kind)), None)
    if plans is None:
        raise InvalidParameter(
            f"summary must be a summary of dptop; got {type(summary).__name__}. Count the stream with SpaceSaving."
        )
    mechanism = request.mechanism or _best(summary, next(iter(plans)))
    if mechanism not in plans:
        choices = ", ".join(map(repr, plans))
        raise InvalidParameter(
            f"mechanism must be one for a {type(summary).__name__}: {choices}; got {mechanism!r}. Choose one of them."
        )
    counted_by = summary._oracle if isinstance(summary, Tracked) else summary
    for name, given, has_cells in (("noise", request.noise, counted_by), ("labels", request.labels, summary)):
        if given is not None and not isinstance(has_cells, LinearSketch):
            raise InvalidParameter(
                f"{name} is for sketches of dptop; got {name} for a {type(has_cells).__name__}. Leave it out."
            )
    return plans[mechanism](request, summary)


def _best(summary: Summary | Sharded, first: str) -> str:
    """Return the mechanism that is taken where none is asked for: the first one, but where another one does better."""
    if isinstance(summary, Tracked) and summary.candidates == ESTIMATES:
        return ENVELOPE
    if isinstance(summary, Sharded) and not sums_locally(summary):
        return CENTRAL_COUNTS
    return first


def check_whole(summary: Summary | Sharded) -> None:
    """Refuse a summary of a stream that was not read to its end.

    Raises:
        SourceError: it says so.
    """
    if not summary._releasable:
        raise SourceError(
            "a summary is released only if its stream was read to the end; this one is being read, or was cut"
            " short. Wait for every extend(), or count the stream again with a new summary."
        )


def release_as(
    request: Request,
    summary: Summary | Sharded,
    seed: int | None = None,
    on_charged: Callable[[], object] | None = None,
) -> Release:
    """Release what is asked for: promise, errors and `seed` as in `release`.

    `on_charged` is called once the ledger says all that this release spends, before noise is drawn and before an error
    tells of the length: it makes that last beyond this process. If it raises, nothing is released.
    """
    planned = plan(request, summary)
    if seed is not None:
        seed = whole_number("seed", seed, 0, MAX_LENGTH, "Leave it out: a seed is for tests only.")
    begun = summary._begun
    check_whole(summary)
    summary._charge(request.spent, request.length)
    snapshot = summary._snapshot()
    length = snapshot[0]
    bound = MAX_LENGTH if request.length is None else request.length  # shards may have more, together
    too_long = length > bound  # asked after the charge: the answer tells of n
    if too_long:
        summary._close()  # no second bound is compared with the same stream, nor with a copy
    if on_charged is not None:
        on_charged()
    if too_long:
        raise InvalidParameter(
            f"length must bound the length of the stream; {bound} does not, and the stream is spent."
            " Count it again, and declare a bound that you know without the data."
        )

    result = planned.publish(snapshot, seed)
    if summary._length() != length or not summary._releasable or summary._begun != begun:
        # then the labels may be those of other counters, or one of two parts had counted more than the other
        raise SourceError(
            "a summary is released only after its stream was read to the end; items were counted meanwhile, and the"
            " release is spent. Wait for every extend() before release()."
        )
    rows = sorted(result.rows, key=lambda row: (-row.count, label_order(row.item)))
    return Release(
        rows=tuple(rows[: request.top]),
        epsilon=float(request.total.epsilon),
        delta=float(request.total.delta),
        mechanism=planned.mechanism,
        private=result.private and seed is None,
        noisy_minimum=result.noisy_minimum,
        noisy_length=result.noisy_length,
        parameters={
            "summary": type(summary).__name__,
            **result.parameters,
            "top": request.top,
            "share": request.share,
            "length": request.length,
            "length_epsilon": float(planned.split.length_epsilon),
            "max_contributions": request.max_contributions,
            "item_epsilon": float(request.per_item.epsilon),
            "item_delta": float(request.per_item.delta),
            "confidence": request.confidence,
            "simultaneous": request.simultaneous or result.simultaneous,
        },
        facts=tuple(result.facts),
    )
