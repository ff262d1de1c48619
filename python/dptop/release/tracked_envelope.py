"""An oracle's labels made public: those above its error envelope."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from dptop._native import MAX_LENGTH
from dptop.envelope import Envelope, LabelEnvelope, beta_within, fixed_labels, noise_at_release, noise_first
from dptop.errors import InvalidParameter
from dptop.intervals import clipped
from dptop.mechanism import ENVELOPE
from dptop.oracle import LinearSketch
from dptop.release.publication import (
    Facts,
    Plan,
    Published,
    length_in_words,
    rows_of,
    share_fact,
)
from dptop.release.sketch import (
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
from dptop.tracked import ESTIMATES, SPACE_SAVING

if TYPE_CHECKING:
    from dptop import _native
    from dptop.oracle import FrequencyOracle
    from dptop.privacy import PrivacyParameters
    from dptop.release.publication import CountersSnapshot
    from dptop.release.request import PublicLength, Request
    from dptop.tracked import Tracked

__all__ = ["by_envelope"]

ASSUMED: Final = (
    "Assumed",
    (
        "rows hash labels as independent random functions, by 64-bit fingerprints, and the stream was fixed before the"
        " keys were drawn. The guarantee rests on it."
    ),
)


def by_envelope(request: Request, tracked: Tracked) -> Plan:
    """Plan a release of the labels whose estimate exceeds n/K by more than the errors of the oracle."""
    if isinstance(tracked._oracle, LinearSketch):
        return _sketch_envelope(request, tracked, tracked._oracle)
    return _stated_envelope(request, tracked, tracked._oracle)


def _sketch_envelope(request: Request, tracked: Tracked, sketch: LinearSketch) -> Plan:
    split = request.split(bounds_length=True)
    made, left = noise_of(request, sketch, split.labels)
    beta = beta_within(left, made.state.epsilon)

    def publish(snapshot: CountersSnapshot, seed: int | None) -> Published:
        public = split.public_length(snapshot[0], seed)
        bound = bound_for_both(public)
        noisy = noisy_cells(tracked._cells, sketch, made, seed)
        allowed = left if tracked.candidates == SPACE_SAVING else beta
        error = error_of(sketch, noisy, made, bound, float(allowed))
        envelope: Envelope | LabelEnvelope | None
        if tracked.candidates == SPACE_SAVING:
            envelope = fixed_labels(error, delta=left, capacity=tracked.capacity, tie=tracked.tie, state=made.state)
        else:
            form = noise_first if sketch.noise is not None else noise_at_release
            envelope = form(error, beta=beta, capacity=tracked.capacity, state=made.state)
        facts: Facts = [counted_by(tracked, sketch_in_words(sketch)), noise_fact(sketch, noisy, made, seed)]
        parameters = declared(tracked) | of_sketch(sketch, made)
        if envelope is None:
            alike = tracked.candidates == ESTIMATES and error.pairs >= beta
            facts.append(("Nothing released", _too_alike(bound) if alike else _too_small(sketch, bound)))
            return Published([], facts, parameters, noisy_length=public.noisy, private=not noisy.seeded)
        estimates = _estimates(tracked, noisy, snapshot)
        kept = _kept(request, tracked, envelope, estimates, public, bound)
        # any label of the stream may be one that estimates track; those of SpaceSaving do not depend on the hashes
        labels = tracked.capacity if tracked.candidates == SPACE_SAVING else max(1, bound)
        ends = around(error, [estimates[x] for x in kept], 1 - request.confidence, labels)
        facts += _above_errors(request, tracked, envelope, bound, length_in_words(split, public.noisy))
        facts += [ASSUMED, ("Counts", err_by(sketch))]
        parameters["threshold"] = envelope.threshold(bound, tracked.capacity)
        rows = rows_of(tracked, 0, kept, [estimates[x] for x in kept], ends)
        # the same noise picked the labels: only intervals for all that might have been picked hold for those that were
        private = not noisy.seeded
        return Published(rows, facts, parameters, noisy_length=public.noisy, private=private, simultaneous=True)

    return Plan(ENVELOPE, split, publish)


def _stated_envelope(request: Request, tracked: Tracked, oracle: FrequencyOracle) -> Plan:
    split = request.split(bounds_length=True)
    _affordable(_for_candidates(tracked, stated_by(oracle, request.length or 1)), split.labels)  # before it is spent

    def publish(snapshot: CountersSnapshot, seed: int | None) -> Published:
        public = split.public_length(snapshot[0], seed)
        bound = bound_for_both(public)
        stated = stated_by(oracle, bound)
        envelope = _affordable(_for_candidates(tracked, stated), split.labels)
        estimates = final_estimates(oracle, tracked._labels(0, range(len(snapshot[1][0][1]))))
        kept = _kept(request, tracked, envelope, estimates, public, bound)
        values = [estimates[x] for x in kept]
        ends = [clipped(v, v - stated.over, MAX_LENGTH if stated.under is None else v + stated.under) for v in values]
        facts: Facts = [counted_by(tracked, type(oracle).__name__)]
        facts += _above_errors(request, tracked, envelope, bound, length_in_words(split, public.noisy))
        facts += [STATED, ("Counts", as_stated(stated))]
        parameters = declared(tracked) | {"threshold": envelope.threshold(bound, tracked.capacity)}
        rows = rows_of(tracked, 0, kept, values, ends)
        return Published(rows, facts, parameters, noisy_length=public.noisy, simultaneous=True)

    return Plan(ENVELOPE, split, publish)


def _estimates(tracked: Tracked, noisy: _native.Sketch, snapshot: CountersSnapshot) -> list[int]:
    """Return the final estimates of all tracked labels."""
    return noisy.estimates_of(tracked._labelled, 0, list(range(len(snapshot[1][0][1]))))


def _kept(
    request: Request,
    tracked: Tracked,
    envelope: Envelope | LabelEnvelope,
    estimates: list[int],
    public: PublicLength,
    bound: int,
) -> list[int]:
    kept = [x for x, v in enumerate(estimates) if envelope.keeps(v, bound, tracked.capacity)]
    return kept if request.share is None else [x for x in kept if estimates[x] >= least_count(request, public)]


def _for_candidates(tracked: Tracked, stated: Envelope) -> Envelope | LabelEnvelope:
    if tracked.candidates == ESTIMATES:
        return stated
    return LabelEnvelope(stated.over, stated.beta, Decimal(0), tracked.tie, stated.state)


def _affordable(envelope: Envelope | LabelEnvelope, whole: PrivacyParameters) -> Envelope | LabelEnvelope:
    """Return an envelope whose privacy is within what labels and counts may spend."""
    total = envelope.total
    if total.epsilon > whole.epsilon or total.delta > whole.delta:
        raise InvalidParameter(
            f"the oracle must keep ({float(whole.epsilon)!r}, {whole.delta:.6g}), what the length leaves; it states"
            f" ({float(total.epsilon)!r}, {total.delta:.6g}), errors included. Release with more, or state more error."
        )
    return envelope


def _above_errors(
    request: Request, tracked: Tracked, envelope: Envelope | LabelEnvelope, bound: int, length: str
) -> Facts:
    errors = envelope.threshold(bound, tracked.capacity) - bound // tracked.capacity
    rule = f"exceeds {envelope.threshold(bound, tracked.capacity)}: N / capacity, rounded down, and {errors} for errors"
    lifted = (
        "" if request.length is not None else ", lifted so that it is too short only with a chance of half of delta"
    )
    facts = [("Threshold", f"a label is released only if its noisy count {rule}. N is {length}{lifted}.")]
    if request.share is not None:
        facts.append(share_fact(request.share, length))
    return facts


def _too_small(sketch: LinearSketch, bound: int) -> str:
    memory = f"{sketch_in_words(sketch)} cannot tell labels from the errors of a stream of {bound} items"
    return f"{memory} at this epsilon and delta. Give it more memory, or use mechanism 'selected'."


def _too_alike(bound: int) -> str:
    chance = f"that any two labels of a stream of {bound} items share one is likelier than delta allows"
    return (
        f"labels are counted by 64-bit fingerprints, and {chance}. Release with a larger delta, or track labels by"
        " candidates='space-saving'."
    )
