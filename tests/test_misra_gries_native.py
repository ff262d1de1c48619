"""The native Misra-Gries against its reference, and its saved form. Neighbours: tests/test_misra_gries.py."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import random
import struct
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dptop
from dptop._native import MAX_LENGTH, BatchWeights, Counters, LabelBatch, Reading
from dptop.reference.misra_gries import MisraGries
from dptop.tie import Tie
from native_misra_gries import extend, misra_gries, state
from saved import Saved
from saved_frame import MISRA_GRIES, encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Weighted = list[tuple[Any, int]]

INTEGERS = st.one_of(st.integers(0, 12), st.sampled_from([-(2**63), -1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]))
TEXTS = st.one_of(st.sampled_from("abcdefgh"), st.sampled_from(["", "é", "z", "\U0001f600", "\uffff", "a\0", "ab"]))
WEIGHTS = st.one_of(st.just(1), st.integers(0, 6))
STREAMS = st.one_of(
    *(
        st.lists(st.tuples(labels, WEIGHTS), max_size=80)
        for labels in (INTEGERS, TEXTS, TEXTS.map(lambda text: text.encode()))
    )
)
CAPACITIES = st.integers(1, 8)


def reference(stream: Iterable[tuple[Any, int]], capacity: int) -> MisraGries[Any]:
    summary = MisraGries[Any](capacity)
    for label, weight in stream:
        summary.update(label, weight)
    return summary


def assert_same(summary: Counters, twin: MisraGries[Any]) -> None:
    """Compare counters, the order they come in, and the length."""
    assert list(state(summary).items()) == sorted(twin.counters().items())
    assert summary.length() == twin.length


@given(stream=STREAMS, capacity=CAPACITIES)
@settings(deadline=None, derandomize=True, max_examples=500)
def test_every_step_is_the_references(stream: Weighted, capacity: int) -> None:
    """Integers, text and bytes, with weights: after every item the counters are the same, in the same order."""
    summary, twin = misra_gries(capacity), MisraGries[Any](capacity)
    for label, weight in stream:
        summary.update(label, weight)
        twin.update(label, weight)
        assert_same(summary, twin)


def random_labels(generator: random.Random, capacity: int) -> Weighted:
    return [(generator.randrange(2 * capacity), 1) for _ in range(60 * capacity)]


def skewed_labels(generator: random.Random, capacity: int) -> Weighted:
    return [(int(generator.paretovariate(0.7)) % 2**62, generator.randrange(4)) for _ in range(1000)]


def new_labels(generator: random.Random, capacity: int) -> Weighted:
    """Each is new: all counters go down to zero together, again and again."""
    return [(-label, 1) for label in generator.sample(range(10 * capacity), 8 * capacity)]


def few_zeros(generator: random.Random, capacity: int) -> Weighted:
    """Counters far apart: newcomers of any weight bring them down to zero one by one."""
    heavy = [(label, 5 * label + 5) for label in range(capacity)]
    generator.shuffle(heavy)
    return heavy + [(1000 + label, generator.randrange(1, 12)) for label in range(6 * capacity)]


def returning_zeros(generator: random.Random, capacity: int) -> Weighted:
    """Labels whose counter has just become zero occur again, so that other zeros are the smallest."""
    level = [(label, 2) for label in range(capacity)]
    returning = [
        (label, 1)
        for step in range(6)
        for label in (1000 + step, 2000 + step, *generator.sample(range(capacity), capacity // 2), 3000 + step)
    ]
    return level + returning * 2


@pytest.mark.parametrize("make", [random_labels, skewed_labels, new_labels, few_zeros, returning_zeros])
@pytest.mark.parametrize("capacity", [1, 2, 9, 70])
@pytest.mark.parametrize("kind", [int, str])
def test_longer_streams_are_the_references(
    make: Callable[[random.Random, int], Weighted], capacity: int, kind: type
) -> None:
    """Random and hostile streams, in batches: the same counters, whatever the batches."""
    generator = random.Random(f"{make.__name__} {capacity}")
    stream = [(kind(label), weight) for label, weight in make(generator, capacity)]
    summary, twin = misra_gries(capacity), MisraGries[Any](capacity)
    at = 0
    while at < len(stream):
        block = stream[at : at + generator.randrange(1, 200)]
        weights = BatchWeights([LabelBatch.from_sequence([weight for _, weight in block])])
        summary.extend([LabelBatch.from_sequence([label for label, _ in block])], weights, 1, Reading())
        for label, weight in block:
            twin.update(label, weight)
        assert_same(summary, twin)
        at += len(block)


def test_streams_do_replace_drop_and_return() -> None:
    """The hostile streams above are what they say: without zeros, drops or replacements they would test little."""
    for make in (new_labels, few_zeros, returning_zeros):
        twin = MisraGries[Any](9)
        seen, zeros, dropped = set(), 0, 0
        for label, weight in make(random.Random(1), 9):
            twin.update(label, weight)
            zeros += sum(count == 0 for count in twin.counters().values())
            dropped += weight > 0 and label not in twin.counters()
            seen.add(label)
        assert zeros > 10, make
        assert dropped > 3, make
        assert len(seen) > 2 * 9, make


@given(stream=STREAMS, capacity=CAPACITIES)
@settings(deadline=None, derandomize=True)
def test_a_weight_is_as_many_units(stream: Weighted, capacity: int) -> None:
    """Weight w is w items in a row; 0 is none, and fixes no kind of label."""
    weighted, units = misra_gries(capacity), misra_gries(capacity)
    for label, weight in stream:
        weighted.update(label, weight)
        extend(units, [label] * weight)
    assert list(state(weighted).items()) == list(state(units).items())
    assert weighted.length() == units.length()
    assert weighted.kind == units.kind


def test_huge_weights_are_no_loop() -> None:
    """What units would take years for, worked out by hand."""
    summary = misra_gries(2)
    summary.update("a", 2**61)
    summary.update("b", 2**61 + 5)
    summary.update("c", 2**61 - 7)  # takes from both
    assert state(summary) == {"a": 7, "b": 12}
    summary.update("c", 2**40)  # takes 7 from both, and the rest is its own
    assert state(summary) == {"b": 5, "c": 2**40 - 7}
    assert summary.length() == 3 * 2**61 - 2 + 2**40
    with pytest.raises(dptop.InvalidParameter, match=r"2\*\*63 - 1"):
        summary.update("d", MAX_LENGTH - summary.length() + 1)
    summary.update("d", MAX_LENGTH - summary.length())
    assert state(summary)["d"] == MAX_LENGTH - (3 * 2**61 - 2 + 2**40) - 5


@given(stream=STREAMS, capacity=st.integers(1, 6), tie=st.sampled_from(Tie))
@settings(deadline=None, derandomize=True)
def test_it_is_the_native_space_saving_less_its_minimum(stream: Weighted, capacity: int, tie: Tie) -> None:
    """With one counter more: C - m of SpaceSaving, its zeros left out, are the counters of Misra-Gries."""
    one, other = misra_gries(capacity), Counters(f"space-saving-{tie.value}", capacity + 1, 1, 4096)
    for label, weight in stream:
        one.update(label, weight)
        other.update(label, weight)
    _, [(minimum, counts)] = other.snapshot()
    labels = other.labels(0, list(range(len(counts))))
    above = {x: count - minimum for x, count in zip(labels, counts, strict=True) if count > minimum}
    assert {x: count for x, count in state(one).items() if count > 0} == above


def test_long_labels_are_kept_short_and_in_order() -> None:
    """A label above the limit is prefix and digest: also where labels are compared, and never taken for a short one."""
    summary = misra_gries(2, max_label_bytes=64)
    long, lookalike = b"m" * 65, b"m" * 32 + hashlib.sha256(b"m" * 65).digest()
    summary.update(long, 1)
    summary.update(lookalike, 1)
    assert state(summary) == {lookalike: 1, (b"m" * 32, hashlib.sha256(long).digest()): 1}
    summary.update(b"x", 2)  # both become zero; the lookalike is the smaller one, as it is not shortened
    assert state(summary) == {(b"m" * 32, hashlib.sha256(long).digest()): 0, b"x": 1}


def test_memory_is_bounded() -> None:
    """However many labels there are: at most 48 bytes a counter, and nothing before the first item."""
    summary = misra_gries(2**31)
    assert summary.heap_bytes() == 0
    summary.update(1, 1)
    assert summary.heap_bytes() < 10_000
    summary = misra_gries(10_000)
    for start in range(0, 200_000, 20_000):
        extend(summary, range(start, start + 20_000))
        assert summary.heap_bytes() <= 48 * 10_000


def test_algorithms_and_partitions_that_there_are_not_are_refused() -> None:
    """Misra-Gries has one table; and an algorithm has a name."""
    assert misra_gries(5).algorithm == "misra-gries"
    for arguments in [("misra-gries", 5, 2, 4096), ("misra-gries", 0, 1, 4096), ("misra", 5, 1, 4096)]:
        with pytest.raises(dptop.InvalidParameter):
            Counters(*arguments)


@given(stream=STREAMS, capacity=CAPACITIES, cut=st.integers(0, 80))
@settings(deadline=None, derandomize=True)
def test_a_saved_summary_goes_on_as_if_it_had_never_been_saved(stream: Weighted, capacity: int, cut: int) -> None:
    """The counters read back, in the same bytes, with the record; and later items do the same to them."""
    summary = misra_gries(capacity)
    for label, weight in stream[:cut]:
        summary.update(label, weight)
    data = summary.to_bytes(b"record")
    read, record = Counters.from_bytes(data)
    assert record == b"record"
    assert read.to_bytes(b"record") == data
    assert (read.capacity, read.identity, read.kind) == (capacity, summary.identity, summary.kind)
    assert read.algorithm == "misra-gries"
    for label, weight in stream[cut:]:
        read.update(label, weight)
    assert_same(read, reference(stream, capacity))


def small() -> Counters:
    """Return what "b", "a", "b", "c", "d" leave at two counters: b 1, d 1 after c took one from a and b."""
    summary = misra_gries(2, max_label_bytes=100)
    extend(summary, ["b", "a", "b", "c", "d"])
    return summary


def test_the_form_is_as_described() -> None:
    """The bytes are those of the description in docs/saved-form.md, written down here one by one."""
    summary = small()
    assert state(summary) == {"b": 1, "d": 1}
    parameters = bytes.fromhex("0200000000000000 0100000000000000 00 02 64000000") + summary.identity
    counters = bytes.fromhex("0500000000000000 0200000000000000")
    counters += bytes.fromhex("0100000000000000 01000000 62 0100000000000000 01000000 64")
    expected = b"dptop\0\r\n" + bytes.fromhex("0100 0200 03000000")
    for tag, section in enumerate((parameters, counters, b"record"), 1):
        expected += struct.pack("<IQ", tag, len(section)) + section
    assert summary.to_bytes(b"record") == expected + struct.pack("<I", zlib.crc32(expected))


def zeros() -> Counters:
    """Return a summary with a zero: integers, at 3 counters, after 8 items."""
    summary = misra_gries(3)
    extend(summary, [2**64 - 1, -5, 3, 3, 9, -5, 3, 3])
    assert state(summary) == {-5: 1, 3: 3, 2**64 - 1: 0}
    return summary


@pytest.mark.parametrize("make", [small, zeros, lambda: misra_gries(7)])
def test_every_flipped_bit_and_every_cut_is_seen(make: Callable[[], Counters]) -> None:
    """A form with any one bit changed, cut short, or with something behind it, is refused."""
    data = make().to_bytes(b"record")
    forms = [data[:length] for length in range(len(data))] + [data + b"\0", data + data]
    for position in range(8 * len(data)):
        changed = bytearray(data)
        changed[position // 8] ^= 1 << position % 8
        forms.append(bytes(changed))
    for form in forms:
        with pytest.raises(dptop.CorruptSummary):
            Counters.from_bytes(form)


def changed(of: Callable[[], Counters] = zeros, /, **fields: Any) -> bytes:
    return dataclasses.replace(Saved.parse(of().to_bytes(bytes(5))), **fields).to_bytes()


LOW, THREE, HIGH = encoded(-5), encoded(3), encoded(2**64 - 1)

CONTRADICTIONS = {
    "two partitions": changed(partitions=2, counters=[[(1, LOW), (3, THREE)], []]),
    "a tie rule": changed(tie=1),
    "a type that there is not": changed(type=3),
    "the form of SpaceSaving, with a zero": changed(type=1),
    "more labels than the capacity": changed(capacity=2),
    "a label twice": changed(counters=[[(1, LOW), (3, THREE), (0, THREE)]]),
    "labels in another order": changed(counters=[[(1, LOW), (0, HIGH), (3, THREE)]]),
    "integers in the order of their bits": changed(counters=[[(3, THREE), (1, LOW), (0, HIGH)]]),
    "a length below the counters": changed(length=3),
    "a length one off": changed(length=9),
    "a length that dropped nothing, with a zero": changed(length=4),
    "a free slot, and items dropped": changed(counters=[[(1, LOW), (3, THREE)]]),
    "a free slot, and a zero": changed(counters=[[(4, LOW), (0, THREE)]], length=4),
    "a length above the range": changed(length=2**63 + 4),
    "a length that wraps": changed(length=2**64 - 4),
    "counts that sum past the range": changed(counters=[[(2**62, LOW), (2**62, THREE), (0, HIGH)]], length=2**63),
    "counts that wrap": changed(counters=[[(2**64 - 1, LOW), (1, THREE), (0, HIGH)]], length=4),
    "a kind without labels": changed(counters=[[]], length=0),
    "a length without labels": changed(counters=[[]], kind=0, length=8),
    "labels of no kind": changed(kind=0),
    "text read as integers": changed(small, kind=1),
    "text in another order": changed(small, counters=[[(1, encoded("d")), (1, encoded("b"))]]),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_under_a_right_checksum_are_seen(name: str) -> None:
    """A form that no summary writes is refused, whatever its checksum says."""
    with pytest.raises(dptop.CorruptSummary, match="Save the summary again"):
        Counters.from_bytes(CONTRADICTIONS[name])


def test_the_maker_of_contradictions_makes_sound_forms_too() -> None:
    """What the tests above change is the only thing that is wrong with their bytes."""
    assert state(Counters.from_bytes(changed())[0]) == state(zeros())
    read, _ = Counters.from_bytes(changed(length=12))
    assert read.length() == 12
    read, _ = Counters.from_bytes(changed(counters=[[(4, LOW), (4, THREE)]]))
    assert state(read) == {-5: 4, 3: 4}
    read, _ = Counters.from_bytes(changed(counters=[[(2**62, LOW), (2**62 - 5, THREE), (0, HIGH)]], length=2**63 - 1))
    assert read.length() == 2**63 - 1
    read, _ = Counters.from_bytes(changed(counters=[[]], kind=0, length=0))
    assert state(read) == {}


def every_form(capacity: int, labels: int, length: int) -> set[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """Return (labels, counters, n) of all streams of up to `length` items."""
    found = set()
    streams: list[tuple[int, ...]] = [()]
    while streams:
        stream = streams.pop()
        counters = dict(sorted(reference([(x, 1) for x in stream], capacity).counters().items()))
        found.add((tuple(counters), tuple(counters.values()), len(stream)))
        if len(stream) < length:
            streams += [(*stream, label) for label in range(labels)]
    return found


def test_what_reads_back_is_what_some_stream_leaves() -> None:
    """Two counters, four labels, up to six items: every form of a stream is read, and every other one is refused.

    The label of dropped items may be any; four are enough for that.
    """
    expected = every_form(capacity=2, labels=4, length=6)
    tables = [labels for size in range(3) for labels in itertools.combinations(range(4), size)]
    empty = Saved.parse(misra_gries(2).to_bytes(bytes(5)))
    read = set()
    for labels in tables:
        for counts in itertools.product(range(8), repeat=len(labels)):
            for length in range(7):
                counters = [[(count, encoded(label)) for count, label in zip(counts, labels, strict=True)]]
                form = dataclasses.replace(empty, kind=int(bool(labels)), counters=counters, length=length)
                with contextlib.suppress(dptop.CorruptSummary):
                    Counters.from_bytes(form.to_bytes())
                    read.add((labels, counts, length))
    assert read == expected


def test_the_public_space_saving_does_not_take_it() -> None:
    """A saved Misra-Gries summary is no SpaceSaving: their releases have different proofs."""
    assert Saved.parse(changed()).type == MISRA_GRIES
    with pytest.raises(dptop.CorruptSummary, match="is not a SpaceSaving"):
        dptop.SpaceSaving.from_bytes(changed())
