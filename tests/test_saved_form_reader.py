"""The page docs/saved-form.md is enough: a reader made from it finds what a summary holds in what is written now."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import dptop
from containers import summary_of
from dptop.oracle import LinearSketch
from dptop.tie import Tie
from saved_form_reader import BYTES, INTEGERS, STRINGS, partition_of, read, signed_cells
from sketch_makers import ALL, ITEMS, counted

KINDS = {None: 0, "integers": INTEGERS, "strings": STRINGS, "bytes": BYTES}


def tracked(native: Any, partition: int, tracks: int) -> list[Any]:
    """Return labels as the border gives them out, where (prefix, digest) stands for a shortened one."""
    return list(native.labels(partition, list(range(tracks))))


@pytest.mark.parametrize("kind", ITEMS)
@pytest.mark.parametrize(("capacity", "partitions"), [(1, 1), (4, 1), (100, 7)])
@pytest.mark.parametrize("tie", ["least-recent", "most-recent"])
def test_space_saving_is_read_from_the_page(kind: str, capacity: int, partitions: int, tie: str) -> None:
    """Labels and counts in their order and their partitions, and the parameters."""
    summary = summary_of(ITEMS[kind], capacity, partitions=partitions, tie=tie, max_label_bytes=64)
    form = read(summary.to_bytes())
    length, tables = summary._tables.snapshot()
    assert (form["type"], form["capacity"], form["partitions"]) == (1, capacity, partitions)
    assert form["tie"] == int(tie == "most-recent")
    assert (form["kind"], form["max_label_bytes"]) == (KINDS[summary._tables.kind], 64)
    assert form["identity"] == summary._identity
    assert sum(count for table in form["counters"] for _, count in table) == length
    for partition, (_, counts) in enumerate(tables):
        expected = list(zip(tracked(summary._tables, partition, len(counts)), counts, strict=True))
        assert form["counters"][partition] == expected
        if kind == "integers":
            key = int.from_bytes(form["identity"][:8], "little")
            assert all(partition_of(label, key, partitions) == partition for label, _ in expected)


@pytest.mark.parametrize("kind", ITEMS)
@pytest.mark.parametrize("capacity", [1, 3, 10])
def test_misra_gries_is_read_from_the_page(kind: str, capacity: int) -> None:
    """Labels in their own order, zeros among them, and the length of the stream."""
    summary = dptop.MisraGries(capacity, max_label_bytes=64)
    summary.extend(ITEMS[kind])
    form = read(summary.to_bytes())
    length, [(_, counts)] = summary._tables.snapshot()
    assert (form["type"], form["capacity"], form["length"]) == (2, capacity, length)
    assert form["counters"] == [list(zip(tracked(summary._tables, 0, len(counts)), counts, strict=True))]


def same_sketch(form: dict[str, Any], sketch: LinearSketch) -> None:
    native = sketch._sketch
    assert form["type"] == (3 if isinstance(sketch, dptop.CountMin) else 4)
    assert (form["width"], form["depth"], form["length"]) == (sketch.width, sketch.depth, native.length())
    assert (form["fingerprint_key"], form["row_keys"]) == native.keys()
    assert form["cells"] == native.cells()
    assert (form["seeded"] > 0) == native.seeded
    assert (form["kind"], form["identity"]) == (KINDS[native.kind], native.identity)
    noise = sketch.noise
    if noise is None:
        assert form["noise"] is None
    else:
        law: dict[str, Any] = {"variance": noise.variance} if noise.variance else {"epsilon_cell": noise.epsilon_cell}
        state = {"kind": noise.kind, "epsilon": noise.state.epsilon, "delta": noise.state.delta}
        assert form["noise"] == {**state, **law}


@pytest.mark.parametrize("kind", ITEMS)
@pytest.mark.parametrize("name", ALL)
def test_sketches_and_what_is_tracked_beside_them_are_read_from_the_page(name: str, kind: str) -> None:
    """Shape, keys, cells, noise, and the labels with what they are tracked by."""
    summary = counted(name, kind)
    form = read(summary.to_bytes())
    if isinstance(summary, LinearSketch):
        same_sketch(form, summary)
        return
    assert isinstance(summary, dptop.Tracked)
    assert isinstance(summary._oracle, LinearSketch)
    assert (form["type"], form["capacity"], form["candidates"]) == (6, 3, int(summary._top is not None))
    assert form["tie"] == int(summary.tie is Tie.MOST_RECENT)
    same_sketch(form["sketch"], summary._oracle)
    assert form["sketch"]["record"]["closed"] == (summary._oracle.noise is not None)
    assert form["labels"]["record"] is None
    if summary._top is not None:
        stored = summary._top.stored()
        assert form["labels"]["estimates"] == list(zip(tracked(summary._top, 0, len(stored)), stored, strict=True))
    else:
        _, [(_, counts)] = summary._snapshot()
        assert form["labels"]["counters"] == [list(zip(tracked(summary._tables, 0, len(counts)), counts, strict=True))]


@pytest.mark.parametrize("kind", [dptop.CountMin, dptop.CountSketch])
def test_estimates_follow_from_the_page(kind: type[LinearSketch]) -> None:
    """Hashes, cells and signs lead a reader to the same estimates of integers."""
    sketch = kind(width=13, depth=5)
    items = [*range(-50, 50), 2**63, 2**64 - 1, -(2**63)]
    sketch.extend(items, weights=[1 + abs(item) % 7 for item in items])
    form = read(sketch.to_bytes())
    for item in items:
        cells = sorted(signed_cells(item, form))
        assert sketch.estimate(item) == (cells[0] if form["type"] == 3 else cells[2])


def test_the_record_is_read_from_the_page() -> None:
    """Budget, declared length, an interrupted stream, and each release that was charged."""
    summary = dptop.SpaceSaving(10, budget=dptop.Budget(0.5, 3e-9))
    summary.extend([1, 2, 3])
    dptop.release(summary, epsilon=0.125, delta=1e-9, length=1000, max_contributions=3)
    record = read(summary.to_bytes())["record"]
    [charged] = record.pop("spent")
    assert record == {"budget": (0.5, 3e-9), "incomplete": False, "closed": False, "length": 1000}
    assert (charged["max_contributions"], charged["epsilon"], str(charged["delta"])) == (3, Fraction(1, 8), "1E-9")
    summary._close()
    assert read(summary.to_bytes())["record"]["closed"]
