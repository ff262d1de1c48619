"""The saved form of Count-Min, CountSketch and of labels tracked beside them: it reads back, whole or not at all."""

from __future__ import annotations

import dataclasses
import itertools
import random
import struct
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

import dptop
from dptop import _native
from dptop.gaussian import smallest_variance
from dptop.ledger import Ledger
from dptop.oracle import LinearSketch
from dptop.record import Record
from saved import released_elsewhere
from saved_frame import (
    CELLS,
    COUNT_SKETCH,
    EMPTY_RECORD,
    KEYS,
    LABELS,
    NOISE,
    PARAMETERS,
    RECORD,
    TRACKED,
    encoded,
    form,
)
from saved_sketches import SavedSketch, SavedTop, SavedTracked
from sketch_makers import (
    ALL,
    ITEMS,
    SKETCHES,
    SMALL,
    TRACKED_NAMES,
    TRACKERS,
    WAYS,
    counted,
    laplace,
    plain,
    through_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def private_state(summary: Any) -> Any:
    """Return all that a sketch, or labels tracked beside one, hold."""
    if isinstance(summary, LinearSketch):
        cells = summary._sketch
        shape = (summary.width, summary.depth, summary.max_label_bytes, summary.noise, summary.budget)
        return (repr(summary), shape, cells.cells(), cells.keys(), cells.length(), cells.kind, cells.seeded)
    assert isinstance(summary, dptop.Tracked)
    length, [(minimum, counts)] = summary._snapshot()
    stored = summary._top.stored() if summary._top else None
    cells = summary._cells
    assert isinstance(summary.oracle, LinearSketch)
    return (
        (repr(summary), summary.tie, summary.budget, summary.oracle.noise),
        (length, minimum, counts, summary._labels(0, range(len(counts))), stored),
        (cells.cells(), cells.keys(), cells.length(), cells.kind, cells.seeded),
    )


@pytest.mark.parametrize("kind", ITEMS)
@pytest.mark.parametrize("name", ALL)
def test_everything_reads_back(name: str, kind: str, tmp_path: Path) -> None:
    """Cells, keys, noise, seeds, labels and budget read back from bytes, from a file, from a pickle and by copying."""
    summary = counted(name, kind)
    summary.save(tmp_path / "part.dptop")
    assert (tmp_path / "part.dptop").read_bytes() == summary.to_bytes()
    for read in (dptop.load(tmp_path / "part.dptop"), *(way(summary) for way in WAYS)):
        assert type(read) is type(summary)
        assert private_state(read) == private_state(summary)
        assert read._ledger is summary._ledger
        assert read.to_bytes() == summary.to_bytes()


@pytest.mark.parametrize("name", SKETCHES)
def test_estimates_read_back(name: str) -> None:
    """Labels lead to the same cells as before, long ones and unseen ones too."""
    summary = counted(name)
    assert isinstance(summary, LinearSketch)
    asked = [*ITEMS["text"], "unseen", "y" * 100]
    assert through_bytes(summary).estimate(asked) == summary.estimate(asked)


def stream_of(kind: str, seed: int) -> tuple[list[Any], list[int]]:
    generator = random.Random(seed)
    ranks = [int(40 ** generator.random()) for _ in range(400)]
    items: list[Any] = [rank - 20 if kind == "integers" else f"/{rank}" * (1 + rank % 30) for rank in ranks]
    return items, [generator.randrange(4) for _ in ranks]


@pytest.mark.parametrize("kind", ["integers", "text"])
@pytest.mark.parametrize("name", ALL)
def test_going_on_is_the_same_as_never_having_saved(name: str, kind: str) -> None:
    """Saved and loaded twelve times within a stream: the end is what it is without, byte by byte."""
    items, weights = stream_of(kind, seed=1)
    summary = ALL[name]()
    read = through_bytes(summary)
    for start in range(0, 400, 33):
        part = slice(start, start + 33)
        for each in (summary, read):
            each.extend(items[part], weights[part])
        read = through_bytes(read)
    assert read.to_bytes() == summary.to_bytes()


@pytest.mark.parametrize("capacity", [1, 2, 7, 16, 39, 60])
@pytest.mark.parametrize("kind", [dptop.CountMin, dptop.CountSketch])
def test_the_estimates_that_were_stored_make_way_in_the_same_order(kind: type[LinearSketch], capacity: int) -> None:
    """The next label to go is the same after loading as before, many estimates being equal, after every few items."""
    items, weights = stream_of("integers", seed=capacity)
    tracked = dptop.Tracked(kind(width=20, depth=3), capacity, "estimates")
    read = through_bytes(tracked)
    for start in range(0, 400, 7):
        part = slice(start, start + 7)
        tracked.extend(items[part], weights[part])
        read.extend(items[part], weights[part])
        assert read.to_bytes() == tracked.to_bytes()
        read = through_bytes(read)


@pytest.mark.parametrize("kind", [dptop.CountMin, dptop.CountSketch])
def test_loaded_sketches_merge_with_empty_copies(kind: type[LinearSketch]) -> None:
    """The keys travel: parts that were counted apart, saved and loaded add up, also with a copy made before."""
    whole = plain(kind, seed=3)
    part = whole.empty_copy()
    items, weights = stream_of("integers", seed=2)
    signed = [weight - 1 for weight in weights]
    expected = plain(kind, seed=3)
    expected.extend(items, weights=signed)
    whole.extend(items[:100], weights=signed[:100])
    part.extend(items[100:], weights=signed[100:])
    read = through_bytes(whole)
    read.merge(part)
    assert read._sketch.cells() == expected._sketch.cells()
    whole.merge(through_bytes(part.empty_copy()))
    with pytest.raises(dptop.IncompatibleSummaries, match="keys"):
        read.merge(through_bytes(plain(kind)))
    with pytest.raises(dptop.IncompatibleSummaries, match="noise"):
        through_bytes(laplace(kind)).merge(plain(kind))


def test_the_form_of_a_sketch_is_as_described() -> None:
    """The bytes are those of the description in docs/saved-form.md, written down here one by one."""
    sketch = dptop.CountSketch(width=2, depth=1, max_label_bytes=100).with_noise(epsilon=0.5)
    sketch.extend(["b", "a", "b"])
    native = sketch._sketch
    fingerprint, [(a, b, c)] = native.keys()
    parameters = bytes.fromhex("0200000000000000 0100000000000000 00 02 64000000") + native.identity
    sections = {
        PARAMETERS: parameters + bytes.fromhex("0300000000000000"),
        RECORD: EMPTY_RECORD,
        KEYS: struct.pack("<4Q", fingerprint, a, b, c),
        CELLS: struct.pack("<2q", *native.cells()[0]),
        NOISE: bytes.fromhex("00 0000008000000000 0000008000000000 0100") + b"0",
    }
    assert sketch.to_bytes() == form(COUNT_SKETCH, sections)


def test_the_noise_is_written_as_described() -> None:
    """Of Gaussian noise the variance travels, of Laplace noise the epsilon of a cell, and delta as it was written."""
    sketch = dptop.CountMin(width=2, depth=25).with_noise(epsilon=1.0, delta=1e-9, noise="gaussian")
    variance = smallest_variance(Fraction(1), Decimal("1E-9"), depth=25)
    saved = SavedSketch.parse(sketch.to_bytes())
    assert saved.noise == struct.pack("<BQQH", 1, 2**32, variance, 4) + b"1E-9"
    saved = SavedSketch.parse(dptop.CountMin(width=2, depth=3).with_noise(epsilon=1.0).to_bytes())
    assert saved.noise == struct.pack("<BQQH", 0, 2**32, 2**32 // 3, 1) + b"0"


@pytest.mark.parametrize(("candidates", "number"), [("space-saving", 0), ("estimates", 1)])
def test_the_form_of_tracked_labels_is_as_described(candidates: str, number: int) -> None:
    """It holds the forms of its two parts, each as by itself."""
    tracked = dptop.Tracked(dptop.CountMin(width=1, depth=2), 5, candidates, tie="most-recent")
    tracked.extend(["b", "a", "b"])
    saved = SavedTracked.parse(tracked.to_bytes())
    assert (saved.capacity, saved.candidates, saved.tie, saved.record) == (5, number, 1, EMPTY_RECORD)
    assert saved.sketch == tracked._cells.to_bytes(EMPTY_RECORD, b"")
    assert saved.labels == tracked._labelled.to_bytes(b"")
    assert saved.to_bytes() == tracked.to_bytes()
    if candidates == "estimates":
        top = SavedTop.parse(saved.labels)
        assert (top.capacity, top.kind, top.max_label_bytes, top.length) == (5, 2, 4096, 3)
        assert top.labels == [(2, encoded("a")), (3, encoded("b"))]  # all share the one cell of a row
        assert top.identity == tracked._labelled.identity
        assert top.to_bytes() == saved.labels


@pytest.mark.parametrize("kind", ["none", "integers", "text"])
@pytest.mark.parametrize("name", SMALL)
def test_every_cut_and_every_flipped_bit_is_seen(name: str, kind: str) -> None:
    """A form with any one bit changed, that was cut short, or is followed by anything, is refused."""
    data = counted(name, kind).to_bytes()
    forms = [data[:length] for length in range(len(data))] + [data + b"\0", data + data]
    for position in range(8 * len(data)):
        changed = bytearray(data)
        changed[position // 8] ^= 1 << position % 8
        forms.append(bytes(changed))
    for changed_form in forms:
        with pytest.raises(dptop.CorruptSummary):
            dptop.Summary.from_bytes(changed_form)


@pytest.mark.parametrize("name", SMALL)
def test_every_cut_within_a_part_is_seen(name: str) -> None:
    """Also under right checksums: no part of a form is read where its bytes are missing."""
    data = counted(name).to_bytes()
    number = int.from_bytes(data[10:12], "little")
    saved = SavedTracked.parse(data) if number == TRACKED else SavedSketch.parse(data)
    sections = saved.sections() if isinstance(saved, SavedSketch) else None
    if isinstance(saved, SavedTracked):
        parameters = struct.pack("<QBB", saved.capacity, saved.candidates, saved.tie)
        sections = {PARAMETERS: parameters, RECORD: saved.record, 8: saved.sketch, LABELS: saved.labels}
    assert sections is not None
    assert form(number, sections) == data
    for tag, section in sections.items():
        for length in range(len(section)):
            if tag == NOISE and not length:
                continue  # that would be a sketch without noise, whose cells are another matter
            cut = {**sections, tag: section[:length]}
            with pytest.raises(dptop.CorruptSummary):
                dptop.Summary.from_bytes(form(number, cut))
        with pytest.raises(dptop.CorruptSummary):
            dptop.Summary.from_bytes(form(number, {**sections, tag: section + b"\0"}))
        missing = {other: body for other, body in sections.items() if other != tag}
        with pytest.raises(dptop.CorruptSummary):
            dptop.Summary.from_bytes(form(number, missing))


@pytest.mark.parametrize("kind", [dptop.CountMin, dptop.CountSketch, dptop.Tracked, LinearSketch, dptop.SpaceSaving])
@pytest.mark.parametrize(
    "data", [b"", b"\0", b"PAR1" * 100, b"dptop", b"dptop\0\r\n", bytes(10_000), bytes(10) + b"\3"]
)
def test_foreign_bytes_are_told_to_be_foreign(kind: type[dptop.Summary], data: bytes) -> None:
    """Whatever stands where a type would: what is no summary is told so, or that it is cut short."""
    with pytest.raises(dptop.CorruptSummary, match=r"not a saved dptop summary|cut short"):
        kind.from_bytes(data)


def test_another_type_is_told() -> None:
    """A summary of one type is not read as one of another: their releases have different proofs."""
    types: list[type[dptop.Summary]] = [dptop.SpaceSaving, dptop.MisraGries, dptop.CountMin, dptop.CountSketch]
    summaries: list[dptop.Summary] = [dptop.SpaceSaving(3), dptop.MisraGries(3), dptop.CountMin(2, 1)]
    summaries += [dptop.CountSketch(2, 1), dptop.Tracked(dptop.CountMin(2, 1), 3)]
    types.append(dptop.Tracked)
    for summary, kind in itertools.product(summaries, types):
        if type(summary) is kind:
            assert type(dptop.Summary.from_bytes(summary.to_bytes())) is kind
        else:
            told = rf"another type: a {type(summary).__name__}, which is not a {kind.__name__}\. Use dptop.load"
            with pytest.raises(dptop.CorruptSummary, match=told):
                kind.from_bytes(summary.to_bytes())
    top = _native.TopEstimates(3, 64).to_bytes(EMPTY_RECORD)
    for data in (top, form(7, {})):
        with pytest.raises(dptop.CorruptSummary, match="another type"):
            dptop.Summary.from_bytes(data)
    reads: list[Callable[[bytes], Any]] = [_native.Counters.from_bytes, _native.TopEstimates.from_bytes]
    reads += [_native.Sketch.from_bytes]
    for read in reads:
        with pytest.raises(dptop.CorruptSummary, match="another type"):
            read(summaries[-1].to_bytes())
    with pytest.raises(dptop.CorruptSummary, match="another type"):
        _native.tracked_from_bytes(top)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("candidates", ["space-saving", "estimates"])
def test_a_second_release_of_tracked_labels_is_refused(way: Callable[[Any], Any], candidates: str) -> None:
    """A twin made before the release and one made after it share the ledger with the original."""
    original = dptop.Tracked(dptop.CountMin(64, 3), 10, candidates)
    original.extend(["a"] * 500)
    before = way(original)
    dptop.release(before, epsilon=1.0, delta=1e-6)
    for summary in (original, before, way(original), way(before)):
        with pytest.raises(dptop.BudgetExhausted):
            dptop.release(summary, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_a_second_release_of_a_sketch_is_refused(way: Callable[[Any], Any]) -> None:
    """Sketches too."""
    original = dptop.CountSketch(64, 3)
    original.extend(["a"] * 500)
    before = way(original)
    dptop.release(original, epsilon=1.0, delta=1e-6, labels=["a"])
    for summary in (original, before, way(original), way(before)):
        with pytest.raises(dptop.BudgetExhausted):
            dptop.release(summary, epsilon=1.0, delta=1e-6, labels=["a"])


def test_what_another_process_spent_is_known() -> None:
    """A release in another process comes back with the saved summary."""
    tracked = dptop.Tracked(dptop.CountMin(64, 3).with_noise(epsilon=0.25), 10)
    tracked.extend([1] * 500)
    done = released_elsewhere(tracked.to_bytes())
    assert done.returncode == 0, done.stderr
    assert len(Record.from_bytes(SavedTracked.parse(done.stdout).record).ledger.entries) == 1
    dptop.Tracked.from_bytes(done.stdout)
    with pytest.raises(dptop.BudgetExhausted):
        dptop.release(tracked, epsilon=1.0, delta=1e-6)


def breaking() -> Iterator[int]:
    yield 1
    raise RuntimeError


@pytest.mark.parametrize("name", ["CountSketch plain", *TRACKED_NAMES.values()])
def test_the_record_travels(name: str) -> None:
    """An incomplete stream stays incomplete, and a budget is kept."""
    summary = ALL[name]()
    with pytest.raises(RuntimeError):
        summary.extend(breaking())
    read = through_bytes(summary)
    assert read.budget == summary.budget
    with pytest.raises(dptop.SourceError, match="was cut short"):
        dptop.release(read, epsilon=1.0, delta=1e-6, labels=[1] if isinstance(read, LinearSketch) else None)


@pytest.mark.parametrize("name", ALL)
def test_a_loaded_summary_is_released_as_the_original(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under one seed: the same rows in the same words; whether noise came first, or a seed was used, is known."""
    summary = ALL[name]()
    summary.extend(["a"] * 4000 + ["b"])
    labels = ["a", "b"] if name in SKETCHES else None
    data = summary.to_bytes()
    one = dptop.release(summary, epsilon=1.0, delta=1e-6, labels=labels, seed=3)
    monkeypatch.setattr(Ledger, "_known", {})  # as in another process, which does not know of that
    read = dptop.Summary.from_bytes(data)
    other = dptop.release(read, epsilon=1.0, delta=1e-6, labels=labels, seed=3)
    assert [(row.item, row.count, row.low, row.high) for row in one] == [
        (row.item, row.count, row.low, row.high) for row in other
    ]
    assert (one.explain(), one.parameters, one.private) == (other.explain(), other.parameters, other.private)
    assert labels is None or len(one) == 2


def test_parts_of_two_moments_are_read_where_they_are_never_released() -> None:
    """A summary saved while an input is read may have counted more on one side; its record says so."""
    for of in ("tables", "top", "noisy"):
        earlier = SavedTracked.parse(counted(TRACKED_NAMES[of], "none").to_bytes())
        tracked = dptop.Tracked.from_bytes(earlier.to_bytes())
        tracked.extend(ITEMS["integers"])
        later = SavedTracked.parse(tracked.to_bytes())
        for mixed in (
            dataclasses.replace(later, sketch=earlier.sketch),
            dataclasses.replace(later, labels=earlier.labels),
        ):
            with pytest.raises(dptop.CorruptSummary, match="contradict"):
                dptop.Tracked.from_bytes(mixed.to_bytes())
            record = dataclasses.replace(Record.from_bytes(mixed.record), incomplete=True)
            mixed.record = record.to_bytes()
            read = dptop.Tracked.from_bytes(mixed.to_bytes())
            assert read.to_bytes() == mixed.to_bytes()
            with pytest.raises(dptop.SourceError):
                dptop.release(read, epsilon=1.0, delta=1e-6)
        other = SavedTracked.parse(counted(TRACKED_NAMES[of], "text").to_bytes()).labels
        later.record, later.labels = mixed.record, other
        with pytest.raises(dptop.CorruptSummary, match="contradict"):
            dptop.Tracked.from_bytes(later.to_bytes())


def test_the_oracle_of_loaded_labels_is_an_empty_one() -> None:
    """Of the same shape, keys and kind; a summary over it counts as one over the original would."""
    for name, make in TRACKERS.items():
        tracked = make()
        tracked.extend(ITEMS["text"])
        read = through_bytes(tracked)
        before, after = tracked.oracle, read.oracle
        assert isinstance(before, LinearSketch)
        assert type(after) is type(before)
        assert (repr(after), after.noise, after.max_label_bytes) == (repr(before), before.noise, 64), name
        assert after._length() == 0
        assert after._sketch.keys() == before._sketch.keys()
        assert read._cells.seeded == tracked._cells.seeded
        assert not after._ledger.closed
        if before.noise is None:
            assert after._sketch.cells() == before._sketch.cells()
        assert read._cells.cells() == tracked._cells.cells()


def test_noise_is_drawn_anew_for_the_oracle_of_loaded_labels() -> None:
    """It is there, as its law is stated and a summary over the oracle rests on it; and it is not the same again."""
    oracle = dptop.CountMin(width=100, depth=3).with_noise(epsilon=0.5)
    tracked = dptop.Tracked(oracle, 10)
    again = [through_bytes(tracked).oracle for _ in range(2)]
    cells = [list(itertools.chain(*sketch._sketch.cells())) for sketch in (oracle, *again)]
    for one, other in itertools.combinations(cells, 2):
        assert one != other  # by chance the same with a chance below 2^-300
    # P[Z = 0] = (1 - a)/(1 + a) < 1/11 with a = exp(-1/6): of 300 cells 100 are 0 with a chance below 1e-30
    assert all(one.count(0) < 100 for one in cells)


def test_a_noisy_sketch_that_was_handed_over_stays_so_where_the_labels_beside_it_are_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In another process too: the sketch is not released beside them, nor handed over again, with the same noise."""
    oracle = dptop.CountMin(width=100, depth=3).with_noise(epsilon=0.5)
    early = oracle.to_bytes()
    saved = dptop.Tracked(oracle, 10).to_bytes()
    monkeypatch.setattr(Ledger, "_known", {})
    sketch = dptop.CountMin.from_bytes(early)
    dptop.Tracked.from_bytes(saved)
    with pytest.raises(dptop.BudgetExhausted):
        dptop.release(sketch, epsilon=1.0, delta=1e-6, labels=["a"])
    with pytest.raises(dptop.InvalidParameter, match="handed over before"):
        dptop.Tracked(sketch, 10)


class Foreign:
    """An exact oracle of another library."""

    def __init__(self) -> None:
        self.counts: dict[Any, int] = {}

    def update(self, item: Any, weight: int = 1) -> None:
        self.counts[item] = self.counts.get(item, 0) + weight

    def estimate(self, item: Any) -> int:
        return self.counts.get(item, 0)

    def envelope(self, length: int) -> dptop.Envelope:
        raise NotImplementedError


@pytest.mark.parametrize("candidates", ["space-saving", "estimates"])
def test_labels_beside_an_oracle_of_another_library_are_not_saved(candidates: str, tmp_path: Path) -> None:
    """How to save the oracle is not known: the rule, the value and the remedy are told, and no file is left."""
    tracked = dptop.Tracked(Foreign(), 10, candidates)
    tracked.extend(["Wilhelmina"])
    ways: list[Callable[[Any], Any]] = [*WAYS, lambda summary: summary.save(tmp_path / "part")]
    for way in ways:
        with pytest.raises(dptop.InvalidParameter, match=r"a sketch of dptop.* got Foreign\. Release it") as caught:
            way(tracked)
        assert "Wilhelmina" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    tracked.extend(["Wilhelmina"])
    assert tracked._length() == 2


def test_a_file_is_about_as_large_as_the_cells() -> None:
    """8 bytes a cell, and little besides."""
    assert len(dptop.CountMin(1000, 5).to_bytes()) < 8 * 5000 + 500
