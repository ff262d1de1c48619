"""Makers of native sketches, and their twins with the same keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dptop._native import LabelBatch, Reading, SignedBatchWeights, Sketch
from dptop.noise import seed_bytes
from dptop.reference.count_min import CountMin
from dptop.reference.count_sketch import CountSketch
from dptop.reference.row_hash import RowHash, fingerprint
from dptop.source import open_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

RULES = ("count-min", "count-sketch")

Label = int | str | bytes
Twin = CountMin[Any] | CountSketch[Any]


def sketch_of(rule: str, width: int, depth: int, seed: int | None = None, max_label_bytes: int = 4096) -> Sketch:
    return Sketch(rule, width, depth, max_label_bytes, None if seed is None else seed_bytes(seed))


def batches_of(items: Any) -> list[LabelBatch]:
    return list(open_labels(items))


def extend(sketch: Sketch, items: Any, weights: Sequence[int] | None = None) -> None:
    signed = None if weights is None else SignedBatchWeights(batches_of(weights))
    sketch.extend(batches_of(items), signed, Reading())


def estimates(sketch: Sketch, labels: Any) -> list[int]:
    return [estimate for batch in batches_of(labels) for estimate in sketch.estimate(batch)]


def twin_of(sketch: Sketch, labels: Sequence[Label]) -> Twin:
    """Return an empty twin with the sketch's keys, and fingerprints for these labels.

    Those of integers are worked out in Python; those of strings and bytes, which a library hashes, are asked for.
    """
    key, rows = sketch.keys()
    hashes = [RowHash(*row) for row in rows]
    of: dict[Label, int] = {label: fingerprint(label, key) for label in labels if isinstance(label, int)}
    others = [label for label in labels if not isinstance(label, int)]
    if others:
        found = sketch.fingerprints(LabelBatch.from_sequence(others))
        of.update({label: f for label, f in zip(others, found, strict=True) if f is not None})
    kind = CountMin[Any] if sketch.rule == "count-min" else CountSketch[Any]
    return kind(sketch.width, hashes, of.__getitem__)
