"""The native Misra-Gries as it stands at the border, without the ledger and the inputs of its public class."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from dptop._native import Counters, LabelBatch, Reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neighbours import Stream

Label = int | str | bytes


def misra_gries(capacity: int, max_label_bytes: int = 4096) -> Counters:
    """Return an empty summary."""
    return Counters("misra-gries", capacity, 1, max_label_bytes)


def extend(summary: Counters, labels: Sequence[object]) -> None:
    """Count labels as one batch."""
    summary.extend([LabelBatch.from_sequence(list(labels))], None, 1, Reading())


def state(summary: Counters) -> dict[Label | tuple[str | bytes, bytes], int]:
    """Return the tracked labels with their counters, zeros included, in the order of the labels."""
    length, [(minimum, counts)] = summary.snapshot()
    assert minimum == 0
    assert length == summary.length()
    return dict(zip(summary.labels(0, list(range(len(counts)))), counts, strict=True))


def run_native(stream: Stream, capacity: int) -> dict[int, int]:
    """Return what a stream of integers leaves behind."""
    summary = misra_gries(capacity)
    extend(summary, stream)
    return cast("dict[int, int]", state(summary))
