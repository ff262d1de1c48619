"""Saved sketches, and labels tracked beside them, that contradict themselves are refused, in little memory."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import struct
import sys
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

import dptop
from dptop import _native
from dptop.gaussian import smallest_variance
from dptop.record import Record
from saved import refused_in_little_memory
from saved_frame import COUNT_MIN, COUNT_SKETCH, EMPTY_RECORD, SHORTENED, encoded, sealed
from saved_sketches import SavedSketch, SavedTop, SavedTracked
from sketch_makers import ALL, ITEMS, TRACKED_NAMES, counted

if TYPE_CHECKING:
    from collections.abc import Iterator


def sketch_with(name: str = "CountMin plain", of: str = "integers", /, **fields: Any) -> bytes:
    return dataclasses.replace(SavedSketch.parse(counted(name, of).to_bytes()), **fields).to_bytes()


def cells_with(*changes: tuple[int, int]) -> bytes:
    """Return a form of Count-Min, of 8 integers, with something added to some of its 12 cells."""
    saved = SavedSketch.parse(counted("CountMin plain", "integers").to_bytes())
    for cell, more in changes:
        saved.cells[cell] += more
    return saved.to_bytes()


def noise_of(kind: int, steps: int, size: int, delta: bytes, depth: int = 3, *, more: bytes = b"") -> bytes:
    """Return a form of a noisy sketch with other noise."""
    noise = struct.pack("<BQQH", kind, steps, size, len(delta)) + delta + more
    cells, keys = [0] * (4 * depth), [0] * (1 + 3 * depth)
    return sketch_with("CountMin laplace", "none", noise=noise, depth=depth, cells=cells, keys=keys)


ONE = 2**32
TWO_RELEASES = Record(dptop.Budget(1.0, 1e-6)).to_bytes()
ENOUGH = smallest_variance(Fraction(1), Decimal("1E-9"), depth=25)
SKETCH_CONTRADICTIONS = {
    "no width": sketch_with(width=0, cells=[]),
    "a width above the range": sketch_with(width=2**31 + 1),
    "a width that wraps": sketch_with(width=2**61 + 4),
    "no depth": sketch_with(depth=0, cells=[], keys=[0]),
    "a depth above the range": sketch_with(width=1, depth=2**16 + 1, cells=[0], keys=[0]),
    "a depth that wraps": sketch_with(depth=2**62 + 3),
    "an even depth of CountSketch": sketch_with("CountSketch plain", "none", depth=2, cells=[0] * 8, keys=[0] * 7),
    "a wider one with the same cells": sketch_with(width=6, depth=2, keys=[0] * 7),
    "a cell too few": sketch_with("CountMin plain", "none", cells=[0] * 11),
    "a cell too many": sketch_with("CountMin plain", "none", cells=[0] * 13),
    "a key too few": sketch_with(keys=[0] * 9),
    "a key too many": sketch_with(keys=[0] * 11),
    "a kind that there is not": sketch_with(kind=4),
    "a limit of labels too small": sketch_with(max_label_bytes=63),
    "a limit of labels too large": sketch_with(max_label_bytes=2**30 + 1),
    "seeds that there are not": sketch_with("CountMin laplace", seeded=3),
    "a seed of noise without noise": sketch_with(seeded=1),
    "a length without a kind": sketch_with("CountMin laplace", "none", length=5),
    "a kind without a length": sketch_with("CountMin laplace", length=0),
    "a length above the range": sketch_with("CountMin laplace", length=2**63),
    "a length that wraps": sketch_with("CountMin laplace", length=2**64 - 1),
    "cells of no items": sketch_with("CountMin plain", "none", cells=[1, -1] * 6),
    "a row that sums to more": cells_with((0, 2)),
    "a row that sums to less": cells_with((5, -2)),
    "rows that sum to more than the length": cells_with((0, 2), (4, 2), (8, 2)),
    "cells of an odd number of items too few": cells_with((0, -1), (4, -1), (8, -1)),
    "a row of another sum": sketch_with(cells=[7, -1, 0, 0, 3, 3, 0, 0, 3, -1, 0, 2]),
    "cells larger than the length": sketch_with("CountSketch plain", cells=[9, 0, 0, 0] * 3),
    "cells that wrap": sketch_with("CountSketch plain", cells=[2**62, 2**62, 2**62, 2**62] * 3),
    "a row of CountSketch of another parity": sketch_with("CountSketch plain", cells=[8, 0, 0, 0] * 2 + [7, 0, 0, 0]),
    "no record": sketch_with(record=b""),
    "a record cut short": sketch_with(record=bytes(4)),
    "another version": sealed(sketch_with()[:8] + b"\2" + sketch_with()[9:-4]),
    "noise and a budget for two releases": sketch_with("CountMin laplace", record=TWO_RELEASES),
    "noise cut short": sketch_with("CountMin laplace", noise=b"\0"),
    "noise that there is not": noise_of(2, ONE, ONE // 3, b"0"),
    "noise of no epsilon": noise_of(0, 0, 0, b"0"),
    "noise of an epsilon below the range": noise_of(0, 2**12 - 1, (2**12 - 1) // 3, b"0"),
    "noise of an epsilon above the range": noise_of(0, 64 * ONE + 3, (64 * ONE + 3) // 3, b"0"),
    "Laplace noise that is too small": noise_of(0, ONE, ONE // 3 + 1, b"0"),
    "Laplace noise that is larger than it says": noise_of(0, ONE, ONE // 3 - 1, b"0"),
    "Laplace noise of another depth": noise_of(0, ONE, ONE // 3, b"0", depth=5),
    "Laplace noise of none for so many rows": noise_of(0, 2**12, 0, b"0", depth=5000),
    "Laplace noise with a delta": noise_of(0, ONE, ONE // 3, b"1E-9"),
    "Gaussian noise without a delta": noise_of(1, ONE, ENOUGH, b"0"),
    "Gaussian noise that is too small": noise_of(1, ONE, ENOUGH - 1, b"1E-9", depth=25),
    "Gaussian noise of no variance": noise_of(1, ONE, 0, b"0.99"),
    "Gaussian noise above the range": noise_of(1, ONE, 2**40 + 1, b"1E-9"),
    "noise of a delta of one": noise_of(1, ONE, ENOUGH, b"1"),
    "noise of a delta that is none": noise_of(1, ONE, ENOUGH, b"NaN"),
    "Laplace noise of a delta below zero": noise_of(0, ONE, ONE // 3, b"-0"),
    "noise of a delta that is infinite": noise_of(1, ONE, ENOUGH, b"-Infinity"),
    "noise of an insane delta": noise_of(1, ONE, ENOUGH, b"1E-999999999"),
    "Gaussian noise of a larger depth": noise_of(1, ONE, ENOUGH, b"1E-9", depth=26),
    "noise of a delta written otherwise": noise_of(1, ONE, ENOUGH, b"1e-9", depth=25),
    "noise of a delta with room around it": noise_of(1, ONE, ENOUGH, b" 1E-9", depth=25),
    "noise with more behind it": noise_of(0, ONE, ONE // 3, b"0", more=b"\0"),
}


def tracked_with(of: str, kind: str = "integers", /, **fields: Any) -> bytes:
    return dataclasses.replace(SavedTracked.parse(counted(TRACKED_NAMES[of], kind).to_bytes()), **fields).to_bytes()


def labels_of(of: str, kind: str = "integers") -> bytes:
    return SavedTracked.parse(counted(TRACKED_NAMES[of], kind).to_bytes()).labels


def sketch_of(of: str, kind: str = "integers", /, **fields: Any) -> bytes:
    saved = SavedTracked.parse(counted(TRACKED_NAMES[of], kind).to_bytes())
    return dataclasses.replace(SavedSketch.parse(saved.sketch), **fields).to_bytes()


def top_with(of: str = "top", kind: str = "integers", /, **fields: Any) -> bytes:
    """Return a form of labels tracked by estimates with another part for the labels, which had 8 items."""
    labels = dataclasses.replace(SavedTop.parse(labels_of(of, kind)), **fields).to_bytes()
    return tracked_with(of, kind, labels=labels)


def other_tracker(of: str, **arguments: Any) -> bytes:
    """Return a form with the labels of another summary of the same items."""
    shape = {"candidates": "estimates" if of == "signs" else "space-saving", "tie": "most-recent", "capacity": 3}
    sketch = dptop.CountMin(4, 3, max_label_bytes=arguments.pop("max_label_bytes", 64))
    other = dptop.Tracked(sketch, **{**shape, **arguments})
    other.extend(ITEMS["integers"])
    return tracked_with(of, labels=SavedTracked.parse(other.to_bytes()).labels)


def whole(items: list[Any], native: _native.Counters) -> bytes:
    native.extend([_native.LabelBatch.from_sequence(items)], None, 1, _native.Reading())
    return native.to_bytes(b"")


ITEM_A, ITEM_B, ITEM_C, ITEM_D = (encoded(item) for item in (1, 2, 3, 4))
TRACKED_CONTRADICTIONS = {
    "candidates that there are not": tracked_with("tables", candidates=2),
    "a tie rule that there is not": tracked_with("top", tie=2),
    "candidates of the other way": tracked_with("tables", candidates=1),
    "candidates of the other way too": tracked_with("top", candidates=0),
    "another tie rule than the tables'": tracked_with("tables", tie=0),
    "another capacity than the tables'": tracked_with("tables", capacity=4),
    "another capacity than that of the estimates": tracked_with("top", capacity=4),
    "a capacity of zero": top_with(capacity=0),
    "a capacity above the range": top_with(capacity=2**31 + 1),
    "tables of another capacity": other_tracker("tables", capacity=4),
    "estimates of another capacity": other_tracker("signs", capacity=4),
    "tables of another tie rule": other_tracker("tables", tie="least-recent"),
    "tables of another limit": other_tracker("tables", max_label_bytes=65),
    "estimates of another limit": other_tracker("signs", max_label_bytes=65),
    "two partitions": tracked_with(
        "tables", labels=whole(ITEMS["integers"], _native.Counters("space-saving-most-recent", 3, 2, 64))
    ),
    "labels of Misra-Gries": tracked_with(
        "tables", labels=whole(ITEMS["integers"], _native.Counters("misra-gries", 3, 1, 64))
    ),
    "labels of another length": tracked_with(
        "tables", labels=whole([1, 2], _native.Counters("space-saving-most-recent", 3, 1, 64))
    ),
    "labels of another kind": tracked_with("tables", labels=labels_of("tables", "text")),
    "labels of no kind": tracked_with("tables", labels=labels_of("tables", "none")),
    "a sketch of another kind": tracked_with("top", sketch=sketch_of("top", "bytes")),
    "a sketch of no items": tracked_with("top", sketch=sketch_of("top", "none")),
    "a sketch with one item more": tracked_with("noisy", sketch=sketch_of("noisy", length=9)),
    "a sketch in place of the labels": tracked_with("top", labels=sketch_of("top")),
    "labels in place of the sketch": tracked_with("top", sketch=labels_of("top")),
    "a form of itself as the sketch": tracked_with("top", sketch=tracked_with("top")),
    "noise and a budget for two releases beside it": tracked_with("noisy", record=TWO_RELEASES),
    "no sketch": tracked_with("top", sketch=b""),
    "no labels": tracked_with("top", labels=b""),
    "a record within the labels": top_with(record=EMPTY_RECORD),
    "no record": tracked_with("top", record=b""),
    "estimates above the length": top_with("signs", labels=[(9, ITEM_A)]),
    "estimates far below": top_with("signs", labels=[(-9, ITEM_A)]),
    "an estimate of Count-Min above what it says now": top_with(labels=[(9, ITEM_A)]),
    "an estimate of Count-Min on arrival of nothing": top_with(labels=[(0, ITEM_A)]),
    "a sketch that was cut short": tracked_with("top", sketch=sketch_of("top", record=b"\2" + bytes(4))),
    "a sketch that is closed": tracked_with("top", sketch=sketch_of("top", record=b"\4" + bytes(4))),
    "a noisy sketch that is open": tracked_with("noisy", sketch=sketch_of("noisy", record=EMPTY_RECORD)),
    "a label twice": top_with(labels=[(1, ITEM_A), (1, ITEM_B), (1, ITEM_A)]),
    "a label twice, at the end": top_with(labels=[(1, ITEM_A), (1, ITEM_A)]),
    "more labels than the capacity": top_with(labels=[(1, ITEM_A), (1, ITEM_B), (1, ITEM_C), (1, ITEM_D)]),
    "more labels than items": top_with("noisy", "none", length=1, kind=1, labels=[(1, ITEM_A), (1, ITEM_B)]),
    "a length without labels": top_with(labels=[]),
    "labels without a length": top_with(length=0, kind=0),
    "a kind without labels": top_with("top", "none", kind=1),
    "a kind that there is not": top_with(kind=4),
    "a length above the range": top_with("noisy", length=2**63),
    "text read as integers": top_with("top", "text", kind=1),
    "integers read as text": top_with(kind=2),
    "labels above the limit": top_with("top", "text", labels=[(1, struct.pack("<I", 65) + b"x" * 65)]),
    "text that is not UTF-8": top_with("top", "text", labels=[(1, struct.pack("<I", 1) + b"\xff")]),
    "a shortened label without a digest": top_with(
        "top", "text", labels=[(1, struct.pack("<I", 31 | SHORTENED) + bytes(31))]
    ),
    "an integer of another range": top_with(labels=[(1, struct.pack("<BQ", 2, 5))]),
}
NOT_THERE = {
    "cells": [
        sketch_with("CountMin laplace", width=width, depth=depth) for width, depth in [(2**31, 3), (2**31, 2**16)]
    ],
    "keys": [sketch_with("CountMin laplace", width=1, depth=2**16, cells=[0] * 2**16)],
    "labels": [top_with("noisy", capacity=2**31, length=2**62, claimed=claimed) for claimed in (5, 10**9, 2**62)],
    "more labels": [top_with("noisy", capacity=2**31, claimed=claimed) for claimed in (2**63, 2**64 - 1)],
}
CONTRADICTIONS = {**SKETCH_CONTRADICTIONS, **TRACKED_CONTRADICTIONS}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_under_a_right_checksum_are_seen(name: str) -> None:
    """A form that no summary writes is refused, whatever its checksum says."""
    with pytest.raises(dptop.CorruptSummary, match=r"Save the (summary|sketch) again|another type") as caught:
        dptop.Summary.from_bytes(CONTRADICTIONS[name])
    assert "checksum" not in str(caught.value)


def test_things_that_are_not_there_are_seen() -> None:
    """No number reaches past the end, or wraps around it."""
    for form_of_less in itertools.chain(*NOT_THERE.values()):
        with pytest.raises(dptop.CorruptSummary):
            dptop.Summary.from_bytes(form_of_less)


def test_the_maker_of_contradictions_makes_sound_forms_too() -> None:
    """What the tests above change is the only thing that is wrong with their bytes."""
    sound = [
        sketch_with(),
        sketch_with(length=10),  # two more that cancelled
        sketch_with(seeded=2),
        sketch_with(record=TWO_RELEASES),
        tracked_with("top", record=TWO_RELEASES),
        sketch_with("CountMin laplace", seeded=1),
        sketch_with("CountMin laplace", cells=[-(2**63), 2**63 - 1] * 6),
        sketch_with("CountSketch plain", cells=[8, 0, 0, 0, -4, 4, 0, 0, 1, -1, 1, -1]),
        sketch_with(cells=[7, -1, 0, 0, 3, 3, 0, 0, 0, -1, 0, 7]),
        noise_of(0, ONE, ONE // 3, b"0"),
        noise_of(0, ONE, ONE // 5, b"0", depth=5),
        noise_of(0, 2**12, 2**12 // 3, b"0"),
        noise_of(0, 64 * ONE, 64 * ONE // 3, b"0"),
        noise_of(1, ONE, ENOUGH, b"1E-9", depth=25),
        noise_of(1, ONE, ENOUGH + 1, b"1E-9", depth=25),
        other_tracker("tables"),
        other_tracker("signs"),
        tracked_with("top", tie=0),
        tracked_with("tables", labels=labels_of("tables")),
        top_with("signs", labels=[(8, ITEM_A), (-8, ITEM_B)]),
        top_with("noisy", labels=[(2**63 - 1, ITEM_A), (-(2**63), ITEM_B), (0, ITEM_C)]),
        top_with("signs", "text", labels=[(1, struct.pack("<I", 64 | SHORTENED) + b"x" * 32 + bytes(32))]),
    ]
    for data in sound:
        assert dptop.Summary.from_bytes(data).to_bytes() == data


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc tells the size of the process")
def test_contradictions_are_seen_in_bounded_memory() -> None:
    """No form makes room for what it only claims to hold: 64 MiB are enough to refuse them all."""
    forms = [*CONTRADICTIONS.values(), *itertools.chain(*NOT_THERE.values())]
    assert refused_in_little_memory(forms, "Summary") == len(forms)


def every_state(number: int, width: int, depth: int, items: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield (cells, length) of all streams of up to `items` items or items taken back, under all hashes."""
    signs = (1, -1)
    states = {((0,) * (width * depth), 0)}
    for _ in range(items + 1):
        yield from states
        following = set()
        for cells, length in states:
            for weight, places in itertools.product(signs, itertools.product(range(width), repeat=depth)):
                for row_signs in itertools.product(signs if number == COUNT_SKETCH else (1,), repeat=depth):
                    after = list(cells)
                    for row, (place, sign) in enumerate(zip(places, row_signs, strict=True)):
                        after[row * width + place] += sign * weight
                    following.add((tuple(after), length + 1))
        states = following


@pytest.mark.parametrize(
    ("number", "width", "depth", "items"), [(COUNT_MIN, 2, 2, 3), (COUNT_MIN, 3, 1, 4), (COUNT_SKETCH, 2, 1, 4)]
)
def test_what_reads_back_is_what_some_stream_leaves(number: int, width: int, depth: int, items: int) -> None:
    """The cells of every stream are read, under some keys, and no others are; with weights of both signs."""
    name = "CountMin plain" if number == COUNT_MIN else "CountSketch plain"
    empty = SavedSketch.parse(ALL[name]().to_bytes())
    shape = dataclasses.replace(empty, width=width, depth=depth, keys=[0] * (1 + 3 * depth))
    read = set()
    for cells in itertools.product(range(-items - 1, items + 2), repeat=width * depth):
        for length in range(items + 1):
            form_of_cells = dataclasses.replace(shape, kind=int(length > 0), length=length, cells=list(cells))
            with contextlib.suppress(dptop.CorruptSummary):
                _native.Sketch.from_bytes(form_of_cells.to_bytes())
                read.add((cells, length))
    assert read == set(every_state(number, width, depth, items))
