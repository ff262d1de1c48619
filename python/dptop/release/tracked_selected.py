"""An oracle's labels made public: those that SpaceSaving selects, with counts from the oracle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dptop.errors import InvalidParameter
from dptop.intervals import clipped
from dptop.mechanism import SELECTED, StableThreshold
from dptop.oracle import LinearSketch
from dptop.privacy import PRECISE, PrivacyParameters, floor_epsilon
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
from dptop.release.selection import select
from dptop.release.sketch import (
    BY_HASHES,
    around,
    error_of,
    noise_fact,
    noise_of,
    noisy_cells,
    of_sketch,
    sketch_in_words,
)
from dptop.release.tracked import (
    STATED,
    as_stated,
    bound_for_both,
    counted_by,
    declared,
    err_by,
    final_estimates,
    least_count,
    stated_by,
)
from dptop.tracked import SPACE_SAVING

if TYPE_CHECKING:
    from fractions import Fraction

    from dptop.envelope import Envelope
    from dptop.mechanism import SketchNoise
    from dptop.oracle import FrequencyOracle
    from dptop.release.publication import CountersSnapshot
    from dptop.release.request import Request
    from dptop.tracked import Tracked

__all__ = ["by_selection"]


def by_selection(request: Request, tracked: Tracked) -> Plan:
    """Plan a release of the labels that SpaceSaving selects by `StableThreshold`, with counts from the oracle."""
    if tracked.candidates != SPACE_SAVING:
        raise InvalidParameter(
            f"mechanism 'selected' must have candidates of SpaceSaving; got candidates={tracked.candidates!r}."
            " Track with candidates='space-saving', or use 'envelope'."
        )
    if isinstance(tracked._oracle, LinearSketch):
        return _sketch_selection(request, tracked, tracked._oracle)
    return _stated_selection(request, tracked, tracked._oracle)


def _sketch_selection(request: Request, tracked: Tracked, sketch: LinearSketch) -> Plan:
    split = request.split()
    for_cells, for_labels = _halves(split.labels, sketch.noise)
    made, left = noise_of(request, sketch, PrivacyParameters(for_cells, split.labels.delta))
    stable = StableThreshold.of(PrivacyParameters(for_labels, left), tracked.tie)
    beta = 1 - request.confidence
    over = tracked.capacity if request.simultaneous else None

    def publish(snapshot: CountersSnapshot, seed: int | None) -> Published:
        public = split.public_length(snapshot[0], seed) if _length_is_public(request) else None
        [(minimum, selected)] = select(stable, snapshot[1], seed)
        noisy = noisy_cells(tracked._cells, sketch, made, seed)
        positions, tracked_counts = list(selected), list(selected.values())
        estimates = noisy.estimates_of(tracked._labelled, 0, positions)
        kept = [i for i, v in enumerate(estimates) if request.share is None or v >= least_count(request, public)]
        # half of beta for either: what SpaceSaving says of the label, and what the sketch does
        ends = stable.intervals([tracked_counts[i] for i in kept], minimum, beta / 2, simultaneous_over=over)
        values = [estimates[i] for i in kept]
        if request.length is not None:
            error = error_of(sketch, noisy, made, request.length, beta / 4)
            closer = around(error, values, beta / 2, over or 1)
            ends = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(ends, closer, strict=True)]
        ends = [clipped(v, low, high) for v, (low, high) in zip(values, ends, strict=True)]
        noisy_length = public.noisy if public else None
        facts: Facts = [
            counted_by(tracked, sketch_in_words(sketch)),
            noise_fact(sketch, noisy, made, seed),
            *_how_it_selects(stable, minimum, seed),
        ]
        if request.share is not None:
            facts.append(share_fact(request.share, length_in_words(split, noisy_length)))
        facts.append(("Counts", err_by(sketch)))
        if request.length is not None:
            facts.append(BY_HASHES)
        parameters = declared(tracked) | of_sketch(sketch, made) | {"offset": stable.offset}
        rows = rows_of(tracked, 0, [positions[i] for i in kept], values, ends)
        return Published(rows, facts, parameters, (minimum,), noisy_length, private=not noisy.seeded)

    return Plan(SELECTED, split, publish)


def _stated_selection(request: Request, tracked: Tracked, oracle: FrequencyOracle) -> Plan:
    split = request.split(bounds_length=True)
    _selecting(tracked, stated_by(oracle, request.length or 1), split.labels)  # before it is spent
    over = tracked.capacity if request.simultaneous else None

    def publish(snapshot: CountersSnapshot, seed: int | None) -> Published:
        public = split.public_length(snapshot[0], seed)
        stated = stated_by(oracle, bound_for_both(public))
        stable = _selecting(tracked, stated, split.labels)
        [(minimum, selected)] = select(stable, snapshot[1], seed)
        estimates = final_estimates(oracle, tracked._labels(0, list(selected)))
        kept = [i for i, v in enumerate(estimates) if request.share is None or v >= least_count(request, public)]
        positions, counts = list(selected), list(selected.values())
        values = [estimates[i] for i in kept]
        ends = stable.intervals([counts[i] for i in kept], minimum, 1 - request.confidence, simultaneous_over=over)
        ends = [clipped(v, low, high) for v, (low, high) in zip(values, ends, strict=True)]
        facts: Facts = [
            counted_by(tracked, type(oracle).__name__),
            *_how_it_selects(stable, minimum, seed),
        ]
        if request.share is not None:
            facts.append(share_fact(request.share, length_in_words(split, public.noisy)))
        facts += [STATED, ("Counts", as_stated(stated))]
        parameters = declared(tracked) | {"scale": stable.scale, "offset": stable.offset}
        rows = rows_of(tracked, 0, [positions[i] for i in kept], values, ends)
        return Published(rows, facts, parameters, (minimum,), public.noisy)

    return Plan(SELECTED, split, publish)


def _length_is_public(request: Request) -> bool:
    return request.share is not None or request.length is not None


def _halves(whole: PrivacyParameters, made: SketchNoise | None) -> tuple[Fraction, Fraction]:
    """Return the epsilon of the cells and that of the labels: halves, or what noise in the cells leaves."""
    for_labels = floor_epsilon(whole.epsilon / 2) if made is None else whole.epsilon - made.state.epsilon
    if for_labels <= 0:
        raise InvalidParameter(
            f"epsilon must be enough for the cells and for the labels; got {float(whole.epsilon)!r}."
            " Release with a larger one, or put more noise into the cells."
        )
    return whole.epsilon - for_labels, for_labels


def _selecting(tracked: Tracked, stated: Envelope, whole: PrivacyParameters) -> StableThreshold:
    """Return what selects labels with what the oracle leaves of epsilon and delta."""
    epsilon, delta = whole.epsilon - stated.state.epsilon, PRECISE.subtract(whole.delta, stated.state.delta)
    if epsilon <= 0 or delta <= 0:
        raise InvalidParameter(
            f"the oracle must leave some of ({float(whole.epsilon)!r}, {whole.delta:.6g}) to select labels with; it"
            f" states ({float(stated.state.epsilon)!r}, {stated.state.delta:.6g}). Release with more."
        )
    return StableThreshold.of(PrivacyParameters(epsilon, delta), tracked.tie)


def _how_it_selects(stable: StableThreshold, minimum: int, seed: int | None) -> Facts:
    """Return what the release says of the noise of the selection, and of its threshold."""
    where = "on every counter and on the minimum counter, which select"
    rule = f"exceeds the noisy minimum, {minimum}, by more than {stable.offset}"
    return [
        noise_in_words(DISCRETE_LAPLACE, stable.scale, where, seeded=seed is not None),
        ("Threshold", f"a label is released only if its noisy counter {rule}; its count is read from the oracle."),
    ]
