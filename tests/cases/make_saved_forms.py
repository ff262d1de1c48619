"""Write the files of tests/cases/saved-form-1 that are missing: `python tests/cases/make_saved_forms.py`.

A file that is there stays: it shows what version 1 was. What each holds is written down in expected.json, by hand, from
the streams below. For another version of the saved form copy this script's streams to another folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import dptop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDER = Path(__file__).parent / "saved-form-1"

INTEGERS = [7, -1, 7, 2**64 - 1, 7, -1, 2**63]
TEXT = ["b", "a", "b", "é", "b", "a"]
BYTES = [b"\xff", b"", b"\xff"]


def integers() -> dptop.Summary:
    summary = dptop.SpaceSaving(4)
    summary.extend(INTEGERS)
    return summary


def evicted_and_released() -> dptop.Summary:
    summary = dptop.SpaceSaving(2, tie="most-recent", budget=dptop.Budget(2.0, 2e-6))
    summary.extend(["a", "b", "b", "c"])
    dptop.release(summary, epsilon=0.5, delta=1e-6, length=10)
    dptop.release(summary, epsilon=0.25, delta=2.5e-7, length=10)
    return summary


def partitions() -> dptop.Summary:
    summary = dptop.SpaceSaving(30, partitions=3)
    summary.extend(list(range(10)), weights=list(range(1, 11)))
    return summary


def nothing() -> dptop.Summary:
    return dptop.SpaceSaving(5, max_label_bytes=100)


def breaking() -> Iterator[bytes]:
    yield b"lost"
    raise RuntimeError


def shortened_and_cut_short() -> dptop.Summary:
    summary = dptop.SpaceSaving(3, max_label_bytes=64)
    summary.extend([b"\xff", b"x" * 70, b"\xff"])
    try:
        summary.extend(breaking())
    except RuntimeError:
        return summary
    raise AssertionError("the stream breaks off")


def shortened_text() -> dptop.Summary:
    summary = dptop.SpaceSaving(3, max_label_bytes=64)
    summary.extend(["x" * 31 + "é" * 20])
    return summary


def zeros() -> dptop.Summary:
    summary = dptop.MisraGries(3)
    summary.extend([2**64 - 1, -5, 3, 3, 9, -5, 3, 3])
    return summary


def misra_gries_text() -> dptop.Summary:
    summary = dptop.MisraGries(5)
    summary.extend(TEXT)
    dptop.release(summary, epsilon=1.0, delta=1e-9, max_contributions=2)
    return summary


def count_min_seeded() -> dptop.Summary:
    summary = dptop.CountMin(16, 5, seed=5)
    summary.extend(INTEGERS)
    summary.update(7, -1)
    return summary


def count_min_text() -> dptop.Summary:
    summary = dptop.CountMin(16, 5, budget=dptop.Budget(1.0, 1e-9))
    summary.extend(TEXT)
    return summary


def count_min_handed_over() -> dptop.Summary:
    summary = dptop.CountMin(4, 3).with_noise(epsilon=1.0)
    dptop.Tracked(summary, 2)
    return summary


def count_sketch_bytes() -> dptop.Summary:
    summary = dptop.CountSketch(32, 3)
    summary.extend(BYTES)
    return summary


def count_sketch_gaussian() -> dptop.Summary:
    summary = dptop.CountSketch(4, 1).with_noise(epsilon=1.0, delta=0.006, noise="gaussian", seed=1)
    summary.extend(BYTES)
    return summary


def tracked_by_space_saving() -> dptop.Summary:
    summary = dptop.Tracked(dptop.CountMin(16, 5), 2)
    summary.extend(TEXT)
    return summary


def tracked_by_estimates() -> dptop.Summary:
    summary = dptop.Tracked(dptop.CountSketch(32, 3), 3, "estimates")
    summary.extend(INTEGERS)
    return summary


def tracked_by_count_min() -> dptop.Summary:
    summary = dptop.Tracked(dptop.CountMin(16, 5), 3, "estimates")
    summary.extend(INTEGERS)
    return summary


def tracked_with_noise() -> dptop.Summary:
    summary = dptop.Tracked(dptop.CountMin(4, 3).with_noise(epsilon=0.5), 5, "estimates", tie="most-recent")
    summary.extend(TEXT)
    return summary


MAKERS: list[Callable[[], dptop.Summary]] = [
    *(integers, evicted_and_released, partitions, nothing, shortened_and_cut_short, shortened_text),
    *(zeros, misra_gries_text, count_min_seeded, count_min_text, count_min_handed_over),
    *(count_sketch_bytes, count_sketch_gaussian),
    *(tracked_by_space_saving, tracked_by_estimates, tracked_by_count_min, tracked_with_noise),
]


def main() -> None:
    """Write what is missing."""
    for make in MAKERS:
        path = FOLDER / f"{make.__name__}.dptop"
        if not path.exists():
            path.write_bytes(make().to_bytes())


if __name__ == "__main__":
    main()
