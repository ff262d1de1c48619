"""A sketch's estimates of labels that the caller declares: nothing is selected, so that noise alone protects."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any

from dptop import _native
from dptop._native import MAX_LENGTH, Reading
from dptop.errors import InvalidParameter, UnsupportedLabel
from dptop.intervals import clipped
from dptop.mechanism import PUBLIC_LABELS
from dptop.oracle import CountMin, CountSketch
from dptop.release.publication import Facts, Plan, Published, length_in_words, share_fact
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
from dptop.report import Row
from dptop.search import smallest_by_bisection
from dptop.source import open_labels
from dptop.tie import Tie

if TYPE_CHECKING:
    from dptop.label import Label
    from dptop.oracle import LinearSketch
    from dptop.release.request import Request

__all__ = ["by_public_labels"]


def by_public_labels(request: Request, sketch: LinearSketch) -> Plan:
    """Plan a release of the estimates of declared labels, whatever was counted."""
    if request.labels is None:
        raise InvalidParameter(
            f"a {type(sketch).__name__} knows no labels; got no labels. Declare them with labels=, known without the"
            " data, or count with dptop.Tracked, which finds them."
        )
    split = request.split()
    made, _ = noise_of(request, sketch, split.labels, parts=1)
    labels = _declared(request.labels)
    holder = _as_counters(labels, sketch.max_label_bytes)

    def publish(snapshot: tuple[int], seed: int | None) -> Published:
        noisy = noisy_cells(sketch._sketch, sketch, made, seed)
        estimates = [0] * len(labels)
        _, [(_, numbers)] = holder.snapshot()
        # by this way, labels of another kind than the stream's have estimates too: a refusal would tell what it holds
        for number, estimate in zip(numbers, noisy.estimates_of(holder, 0, list(range(len(numbers)))), strict=True):
            estimates[number - 1] = estimate
        beta, noisy_length = 1 - request.confidence, None
        least = None
        if request.share is not None:
            public = split.public_length(snapshot[0], seed)
            noisy_length, least = public.noisy, request.least_count(public.value)
        each = max(1, len(labels)) if request.simultaneous else 1
        floor = None if isinstance(sketch, CountSketch) else 0  # items may be taken back below zero
        if request.length is not None:
            error = error_of(sketch, noisy, made, request.length, beta / 2)
            ends = around(error, estimates, beta, each, floor)
        elif isinstance(sketch, CountMin):
            cells = made.cells
            under = smallest_by_bisection(lambda g: sketch.depth * cells.tail(g) <= beta / (2 * each))
            ends = [clipped(v, 0, v + under) for v in estimates]
        else:
            ends = [(-MAX_LENGTH, MAX_LENGTH)] * len(estimates)
        rows = [Row(label, v, *end) for label, v, end in zip(labels, estimates, ends, strict=True)]
        facts: Facts = [
            ("Counted by", f"{sketch_in_words(sketch)}."),
            noise_fact(sketch, noisy, made, seed),
            ("Labels", f"the {len(labels)} that the caller declared, whether they occurred or not."),
        ]
        if request.share is not None and least is not None:
            rows = [row for row in rows if row.count >= least]
            facts.append(share_fact(request.share, length_in_words(split, noisy_length)))
        if request.length is not None:
            facts.append(BY_HASHES)
        else:
            facts.append(("Counts", "what collisions add is not known without a declared length: low says nothing."))
        return Published(rows, facts, of_sketch(sketch, made), noisy_length=noisy_length, private=not noisy.seeded)

    return Plan(PUBLIC_LABELS, split, publish)


def _declared(labels: Any) -> list[Label]:
    """Return declared labels as plain Python objects, each once, or refuse them."""
    if isinstance(labels, Mapping):
        raise InvalidParameter("labels must be a list of labels; got a mapping. Pass its keys.")
    try:
        source = open_labels(list(labels) if isinstance(labels, Set) else labels)  # a set's order does not matter here
        found: dict[Any, None] = {item: None for batch in source for item in batch.to_list()}
    except (InvalidParameter, UnsupportedLabel):
        raise InvalidParameter(
            "labels must be a list of int, str or bytes, all of one kind;"
            f" got {type(labels).__name__}. Wrap a single one: labels=[label]."
        ) from None
    if None in found:
        raise InvalidParameter("labels must not have nulls; got one. Drop it.")
    return list(found)


def _as_counters(labels: list[Label], max_label_bytes: int) -> _native.Counters:
    """Return what a sketch reads labels from: the first has the counter 1, the second 2, and so on."""
    holder = _native.Counters(Tie.LEAST_RECENT.algorithm, max(1, len(labels)), 1, max_label_bytes)
    weights = _native.BatchWeights([_native.LabelBatch.from_sequence(list(range(1, len(labels) + 1)))])
    holder.extend([_native.LabelBatch.from_sequence(labels)], weights, 1, Reading())
    return holder
