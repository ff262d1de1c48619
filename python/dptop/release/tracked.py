"""An oracle's labels made public: those that SpaceSaving selects, or those above the oracle's error envelope."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from dptop._native import MAX_LENGTH
from dptop.envelope import Envelope, LabelEnvelope, beta_within, fixed_labels, noise_at_release, noise_first
from dptop.errors import InvalidParameter
from dptop.intervals import clipped
from dptop.mechanism import ENVELOPE, SELECTED, StableThreshold
from dptop.oracle import CountMin, LinearSketch, NoisyAtRelease
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
from dptop.tracked import ESTIMATES, SPACE_SAVING, whole_estimate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from dptop import _native
    from dptop.mechanism import SketchNoise
    from dptop.oracle import FrequencyOracle
    from dptop.release.publication import CountersSnapshot
    from dptop.release.request import PublicLength, Request
    from dptop.tracked import Tracked

__all__ = ["by_envelope", "by_selection"]

ASSUMED: Final = (
    "Assumed",
    (
        "rows hash labels as independent random functions, by 64-bit fingerprints, and the stream was fixed before the"
        " keys were drawn. The guarantee rests on it."
    ),
)
STATED: Final = ("Assumed", "the oracle keeps the envelope and the privacy that it states. The guarantee rests on it.")


def by_envelope(request: Request, tracked: Tracked) -> Plan:
    """Plan a release of the labels whose estimate exceeds n/K by more than the errors of the oracle."""
    if isinstance(tracked._oracle, LinearSketch):
        return _sketch_envelope(request, tracked, tracked._oracle)
    return _stated_envelope(request, tracked, tracked._oracle)


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


def _sketch_envelope(request: Request, tracked: Tracked, sketch: LinearSketch) -> Plan:
    split = request.split(bounds_length=True)
    made, left = noise_of(request, sketch, split.labels)
    beta = beta_within(left, made.state.epsilon)

    def publish(snapshot: CountersSnapshot, seed: int | None) -> Published:
        public = split.public_length(snapshot[0], seed)
        bound = _for_both(public)
        noisy = noisy_cells(tracked._cells, sketch, made, seed)
        allowed = left if tracked.candidates == SPACE_SAVING else beta
        error = error_of(sketch, noisy, made, bound, float(allowed))
        envelope: Envelope | LabelEnvelope | None
        if tracked.candidates == SPACE_SAVING:
            envelope = fixed_labels(error, delta=left, capacity=tracked.capacity, tie=tracked.tie, state=made.state)
        else:
            form = noise_first if sketch.noise is not None else noise_at_release
            envelope = form(error, beta=beta, capacity=tracked.capacity, state=made.state)
        facts: Facts = [_counted_by(tracked, sketch_in_words(sketch)), noise_fact(sketch, noisy, made, seed)]
        parameters = _declared(tracked) | of_sketch(sketch, made)
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
        facts += [ASSUMED, ("Counts", _err_by(sketch))]
        parameters["threshold"] = envelope.threshold(bound, tracked.capacity)
        rows = rows_of(tracked, 0, kept, [estimates[x] for x in kept], ends)
        # the same noise picked the labels: only intervals for all that might have been picked hold for those that were
        private = not noisy.seeded
        return Published(rows, facts, parameters, noisy_length=public.noisy, private=private, simultaneous=True)

    return Plan(ENVELOPE, split, publish)


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
        kept = [i for i, v in enumerate(estimates) if request.share is None or v >= _least(request, public)]
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
            _counted_by(tracked, sketch_in_words(sketch)),
            noise_fact(sketch, noisy, made, seed),
            noise_in_words(
                DISCRETE_LAPLACE,
                stable.scale,
                "on every counter and on the minimum counter, which select",
                seeded=seed is not None,
            ),
            ("Threshold", _selects(stable, minimum)),
        ]
        if request.share is not None:
            facts.append(share_fact(request.share, length_in_words(split, noisy_length)))
        facts.append(("Counts", _err_by(sketch)))
        if request.length is not None:
            facts.append(BY_HASHES)
        parameters = _declared(tracked) | of_sketch(sketch, made) | {"offset": stable.offset}
        rows = rows_of(tracked, 0, [positions[i] for i in kept], values, ends)
        return Published(rows, facts, parameters, (minimum,), noisy_length, private=not noisy.seeded)

    return Plan(SELECTED, split, publish)


def _stated_envelope(request: Request, tracked: Tracked, oracle: FrequencyOracle) -> Plan:
    split = request.split(bounds_length=True)
    _affordable(_for_candidates(tracked, _stated(oracle, request.length or 1)), split.labels)  # before it is spent

    def publish(snapshot: CountersSnapshot, seed: int | None) -> Published:
        public = split.public_length(snapshot[0], seed)
        bound = _for_both(public)
        stated = _stated(oracle, bound)
        envelope = _affordable(_for_candidates(tracked, stated), split.labels)
        estimates = _ask(oracle, tracked._labels(0, range(len(snapshot[1][0][1]))))
        kept = _kept(request, tracked, envelope, estimates, public, bound)
        values = [estimates[x] for x in kept]
        ends = [clipped(v, v - stated.over, MAX_LENGTH if stated.under is None else v + stated.under) for v in values]
        facts: Facts = [_counted_by(tracked, type(oracle).__name__)]
        facts += _above_errors(request, tracked, envelope, bound, length_in_words(split, public.noisy))
        facts += [STATED, ("Counts", _as_stated(stated))]
        parameters = _declared(tracked) | {"threshold": envelope.threshold(bound, tracked.capacity)}
        rows = rows_of(tracked, 0, kept, values, ends)
        return Published(rows, facts, parameters, noisy_length=public.noisy, simultaneous=True)

    return Plan(ENVELOPE, split, publish)


def _stated_selection(request: Request, tracked: Tracked, oracle: FrequencyOracle) -> Plan:
    split = request.split(bounds_length=True)
    _selecting(tracked, _stated(oracle, request.length or 1), split.labels)  # before it is spent
    over = tracked.capacity if request.simultaneous else None

    def publish(snapshot: CountersSnapshot, seed: int | None) -> Published:
        public = split.public_length(snapshot[0], seed)
        stated = _stated(oracle, _for_both(public))
        stable = _selecting(tracked, stated, split.labels)
        [(minimum, selected)] = select(stable, snapshot[1], seed)
        estimates = _ask(oracle, tracked._labels(0, list(selected)))
        kept = [i for i, v in enumerate(estimates) if request.share is None or v >= _least(request, public)]
        positions, counts = list(selected), list(selected.values())
        values = [estimates[i] for i in kept]
        ends = stable.intervals([counts[i] for i in kept], minimum, 1 - request.confidence, simultaneous_over=over)
        ends = [clipped(v, low, high) for v, (low, high) in zip(values, ends, strict=True)]
        facts: Facts = [
            _counted_by(tracked, type(oracle).__name__),
            noise_in_words(
                DISCRETE_LAPLACE,
                stable.scale,
                "on every counter and on the minimum counter, which select",
                seeded=seed is not None,
            ),
            ("Threshold", _selects(stable, minimum)),
        ]
        if request.share is not None:
            facts.append(share_fact(request.share, length_in_words(split, public.noisy)))
        facts += [STATED, ("Counts", _as_stated(stated))]
        parameters = _declared(tracked) | {"scale": stable.scale, "offset": stable.offset}
        rows = rows_of(tracked, 0, [positions[i] for i in kept], values, ends)
        return Published(rows, facts, parameters, (minimum,), public.noisy)

    return Plan(SELECTED, split, publish)


# ---- labels


def _estimates(tracked: Tracked, noisy: _native.Sketch, snapshot: CountersSnapshot) -> list[int]:
    """Return the final estimates of all tracked labels."""
    return noisy.estimates_of(tracked._labelled, 0, list(range(len(snapshot[1][0][1]))))


def _ask(oracle: FrequencyOracle, labels: Sequence[object]) -> list[int]:
    """Return the final estimates of an oracle of another library."""
    final = oracle.noisy() if isinstance(oracle, NoisyAtRelease) else oracle
    return [whole_estimate(final.estimate(label)) for label in labels]


def _kept(
    request: Request,
    tracked: Tracked,
    envelope: Envelope | LabelEnvelope,
    estimates: list[int],
    public: PublicLength,
    bound: int,
) -> list[int]:
    kept = [x for x, v in enumerate(estimates) if envelope.keeps(v, bound, tracked.capacity)]
    return kept if request.share is None else [x for x in kept if estimates[x] >= _least(request, public)]


# ---- numbers


def _for_both(public: PublicLength) -> int:
    """Return a bound on the length of both neighbours: a lifted noisy length bounds the shorter one only."""
    return public.value if public.noisy is None else min(MAX_LENGTH, public.value + 1)


def _length_is_public(request: Request) -> bool:
    return request.share is not None or request.length is not None


def _least(request: Request, public: PublicLength | None) -> int:
    """Return the smallest noisy count with the share asked for, of the declared or the noisy length itself."""
    if public is None:
        return 0
    return request.least_count(public.value if public.noisy is None else public.noisy)


def _halves(whole: PrivacyParameters, made: SketchNoise | None) -> tuple[Fraction, Fraction]:
    """Return the epsilon of the cells and that of the labels: halves, or what noise in the cells leaves."""
    for_labels = floor_epsilon(whole.epsilon / 2) if made is None else whole.epsilon - made.state.epsilon
    if for_labels <= 0:
        raise InvalidParameter(
            f"epsilon must be enough for the cells and for the labels; got {float(whole.epsilon)!r}."
            " Release with a larger one, or put more noise into the cells."
        )
    return whole.epsilon - for_labels, for_labels


def _stated(oracle: FrequencyOracle, length: int) -> Envelope:
    envelope = oracle.envelope(length)
    if not isinstance(envelope, Envelope):
        raise InvalidParameter(
            f"an oracle's envelope must be a dptop.Envelope; got {type(envelope).__name__}. Use Envelope.stated."
        )
    return envelope


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


def _selecting(tracked: Tracked, stated: Envelope, whole: PrivacyParameters) -> StableThreshold:
    """Return what selects labels with what the oracle leaves of epsilon and delta."""
    epsilon, delta = whole.epsilon - stated.state.epsilon, PRECISE.subtract(whole.delta, stated.state.delta)
    if epsilon <= 0 or delta <= 0:
        raise InvalidParameter(
            f"the oracle must leave some of ({float(whole.epsilon)!r}, {whole.delta:.6g}) to select labels with; it"
            f" states ({float(stated.state.epsilon)!r}, {stated.state.delta:.6g}). Release with more."
        )
    return StableThreshold.of(PrivacyParameters(epsilon, delta), tracked.tie)


# ---- words


def _declared(tracked: Tracked) -> dict[str, object]:
    tie = tracked.tie.value if tracked.candidates == SPACE_SAVING else None
    return {"capacity": tracked.capacity, "candidates": tracked.candidates, "tie": tie}


def _counted_by(tracked: Tracked, oracle: str) -> tuple[str, str]:
    if tracked.candidates == ESTIMATES:
        return "Counted by", f"{oracle}; the {tracked.capacity} labels with the largest estimates seen."
    return "Counted by", f"{oracle}; labels by SpaceSaving, capacity {tracked.capacity}, {tracked.tie.value}."


def _selects(stable: StableThreshold, minimum: int) -> str:
    rule = f"exceeds the noisy minimum, {minimum}, by more than {stable.offset}"
    return f"a label is released only if its noisy counter {rule}; its count is read from the oracle."


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


def _err_by(sketch: LinearSketch) -> str:
    if isinstance(sketch, CountMin):
        return "a count exceeds the true count by what other labels add to its cells, besides the noise."
    return "a count errs to either side by what other labels add to its cells, besides the noise."


def _as_stated(stated: Envelope) -> str:
    above = f"a count is at most {stated.over} above the true count"
    below = "how far below is not stated" if stated.under is None else f"at most {stated.under} below"
    return f"{above} and {below}, as the oracle states."
