"""The native linear sketches against their twins, and what they refuse."""

from __future__ import annotations

import itertools
import random
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from dptop import _native
from dptop._native import LabelBatch, Reading, SignedBatchWeights, Sketch
from dptop.errors import DptopError, IncompatibleSummaries, InvalidParameter, UnsupportedLabel
from dptop.noise import seed_bytes
from dptop.reference.discrete_laplace import discrete_laplace, seeded_words
from sketching import RULES, Label, batches_of, estimates, extend, sketch_of, twin_of

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "Wilhelmina"
MOST = 2**63 - 1

SPREAD = 6000
"""Distinct labels of a stream, more than the native side adds up at a time."""

KINDS: dict[str, Callable[[int], Label]] = {
    "integers": lambda rank: rank,
    "negative": lambda rank: -rank,
    "multiples": lambda rank: rank << 32,
    "wide": lambda rank: 2**63 + rank if rank % 2 else -rank,
    "strings": lambda rank: f"/page/{rank}" * (1 + rank % 3),
    "bytes": lambda rank: bytes(rank % 7) + rank.to_bytes(3, "big"),
}


def stream_of(kind: str, items: int, seed: int) -> tuple[list[Label], list[int]]:
    """Return labels of very different frequencies, and weights of both signs, 0 among them."""
    generator = random.Random(seed)
    ranks = [int(SPREAD ** generator.random()) for _ in range(items)]
    return [KINDS[kind](rank) for rank in ranks], [generator.randrange(-9, 30) for _ in ranks]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("width", "depth"), [(1, 1), (64, 7), (1000, 3)])
def test_native_sketches_are_their_twins(rule: str, kind: str, width: int, depth: int) -> None:
    """Cells, length and estimates, over batches of every size, with weights of both signs and without."""
    sketch = sketch_of(rule, width, depth, seed=width)
    labels, weights = stream_of(kind, 12_000, seed=1)
    unseen = [KINDS[kind](rank) for rank in range(SPREAD, SPREAD + 100)]
    twin = twin_of(sketch, [*labels, *unseen])
    for start, end, weighted in [(0, 1, True), (1, 9000, True), (9000, 9100, False), (9100, 12_000, False)]:
        part = weights[start:end] if weighted else [1] * (end - start)
        extend(sketch, labels[start:end], part if weighted else None)
        for label, weight in zip(labels[start:end], part, strict=True):
            twin.update(label, weight)
    assert sketch.cells() == twin.cells
    assert sketch.length() == twin.length
    asked = [*set(labels), *unseen]
    assert estimates(sketch, asked) == [twin.estimate(label) for label in asked]


@pytest.mark.parametrize("rule", RULES)
def test_every_way_in_counts_the_same(rule: str) -> None:
    """Lists, NumPy, Arrow arrays with nulls, chunks, dictionaries and single items."""
    labels, weights = stream_of("integers", 3000, seed=2)
    numbers = [None if i % 5 == 0 else label for i, label in enumerate(labels)]
    text = [None if label is None else str(label) for label in numbers]
    inputs: list[tuple[list[Any], list[Any]]] = [
        (text, [pa.array(text), pa.array(text).dictionary_encode(), pa.array(text, pa.string_view())]),
        (numbers, [pa.array(numbers), pa.chunked_array([numbers[:7], numbers[7:]])]),
    ]
    for items, forms in inputs:
        expected = sketch_of(rule, 50, 5, seed=3)
        for item, weight in zip(items, weights, strict=True):
            expected.update(item, weight)
        twin = twin_of(expected, [item for item in items if item is not None])
        for item, weight in zip(items, weights, strict=True):
            if item is not None:
                twin.update(item, weight)
        estimated = [0 if item is None else twin.estimate(item) for item in items]
        for form in [items, *forms]:
            sketch = sketch_of(rule, 50, 5, seed=3)
            extend(sketch, form, weights)
            assert sketch.cells() == expected.cells() == twin.cells
            assert (sketch.length(), sketch.kind) == (expected.length(), expected.kind)
            assert estimates(sketch, form) == estimated
    narrow = sketch_of(rule, 50, 5, seed=3)
    extend(narrow, np.array(labels, dtype=np.uint16), weights)
    wide = sketch_of(rule, 50, 5, seed=3)
    extend(wide, labels, weights)
    assert narrow.cells() == wide.cells()
    nulls = LabelBatch.from_sequence([None, None])
    assert sketch_of(rule, 50, 5).estimate(nulls) == [0, 0]
    assert wide.estimate(nulls) == [0, 0]


@pytest.mark.parametrize("rule", RULES)
def test_several_batches_in_one_call_are_one_stream(rule: str) -> None:
    """Also where the weights come in batches of other sizes."""
    labels, weights = stream_of("strings", 5000, seed=4)
    whole = sketch_of(rule, 90, 3, seed=5)
    extend(whole, labels, weights)
    parts = sketch_of(rule, 90, 3, seed=5)
    batches = [LabelBatch.from_sequence(labels[a:b]) for a, b in itertools.pairwise([0, 0, 1, 2500, 5000])]
    reading = Reading()
    signed = SignedBatchWeights([LabelBatch.from_sequence(part) for part in (weights[:17], weights[17:])])
    parts.extend(batches, signed, reading)
    assert reading.counted
    assert parts.cells() == whole.cells()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", ["integers", "strings"])
def test_merging_counts_both_streams(rule: str, kind: str) -> None:
    """A merged sketch is the sketch of both streams: cells, length, kind and estimates."""
    labels, weights = stream_of(kind, 6000, seed=6)
    one = sketch_of(rule, 128, 5)
    other, whole = one.empty_copy(), one.empty_copy()
    extend(one, labels[:2000], weights[:2000])
    extend(other, labels[2000:], weights[2000:])
    extend(whole, labels, weights)
    identity, before = one.identity, other.cells()
    one.merge(other)
    assert one.cells() == whole.cells()
    assert (one.length(), one.kind, one.identity) == (whole.length(), whole.kind, identity)
    assert estimates(one, labels) == estimates(whole, labels)
    assert other.cells() == before
    twin = twin_of(one, labels)
    second = twin_of(one, labels)
    for sketch, start, end in ((twin, 0, 2000), (second, 2000, 6000)):
        for label, weight in zip(labels[start:end], weights[start:end], strict=True):
            sketch.update(label, weight)
    twin.merge(second)  # type: ignore[arg-type]  # both are of the rule's kind
    assert (twin.cells, twin.length) == (one.cells(), one.length())


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", KINDS)
def test_deletion_brings_cells_back(rule: str, kind: str) -> None:
    """Items taken back in another order and other batches leave nothing but the length."""
    labels, weights = stream_of(kind, 4000, seed=7)
    sketch = sketch_of(rule, 100, 5)
    extend(sketch, labels, weights)
    assert any(any(row) for row in sketch.cells())
    back = list(zip(labels, weights, strict=True))
    random.Random(8).shuffle(back)
    extend(sketch, [label for label, _ in back[:3000]], [-weight for _, weight in back[:3000]])
    for label, weight in back[3000:]:
        sketch.update(label, -weight)
    assert sketch.cells() == [[0] * 100] * 5
    assert estimates(sketch, labels) == [0] * len(labels)
    assert sketch.length() == 2 * sum(map(abs, weights))


@pytest.mark.parametrize("rule", RULES)
def test_copies_go_their_own_ways(rule: str) -> None:
    """A copy shares identity and keys, an empty one the keys alone; neither shares cells."""
    sketch = sketch_of(rule, 10, 3)
    extend(sketch, [1, 2, 3])
    copy, empty = sketch.copy(), sketch.empty_copy()
    assert (copy.identity, copy.cells(), copy.length()) == (sketch.identity, sketch.cells(), 3)
    assert empty.identity != sketch.identity
    assert (empty.cells(), empty.length(), empty.kind) == ([[0] * 10] * 3, 0, None)
    assert copy.keys() == empty.keys() == sketch.keys()
    before = sketch.cells()
    copy.update(4, 1)
    empty.update("a", 1)
    assert sketch.cells() == before
    sketch.merge(sketch)
    assert sketch.cells() == [[2 * cell for cell in row] for row in before]


def test_keys_and_identities_are_drawn_for_each_sketch() -> None:
    """No key is shared, by chance one in 2^50; a seed repeats keys but not identities, and is told by every copy."""
    drawn = [sketch_of("count-min", 1, 9).keys() for _ in range(20)]
    words = [word for key, rows in drawn for word in (key, *itertools.chain(*rows))]
    assert len(set(words)) == len(words) == 20 * 28
    one, other = (sketch_of("count-min", 1, 9, seed=1) for _ in range(2))
    assert one.keys() == other.keys()
    assert one.identity != other.identity
    key, *rows = itertools.islice(seeded_words(seed_bytes(1)), 28)
    assert one.keys() == (key, list(zip(rows[::3], rows[1::3], rows[2::3], strict=True)))
    assert one.seeded
    assert one.copy().seeded
    assert one.empty_copy().seeded
    assert not sketch_of("count-min", 1, 9).seeded


@pytest.mark.parametrize("rule", RULES)
def test_noise_is_drawn_for_each_cell_of_a_copy(rule: str) -> None:
    """From a seed it is the noise of the sampler's twin, each part of a row from a seed of its own."""
    width, numerator, seed = 70_000, 2**33, bytes(range(32))
    sketch = sketch_of(rule, width, 1)
    extend(sketch, list(range(1000)), [7] * 1000)
    before = sketch.cells()
    noisy = sketch.noisy(numerator, seed=seed)
    words = seeded_words(seed)
    noise: list[int] = []
    for part in (2**16, width - 2**16):
        own = b"".join(next(words).to_bytes(8, "little") for _ in range(4))
        noise += discrete_laplace(numerator, part, own)
    assert noisy.cells() == [[cell + z for cell, z in zip(before[0], noise, strict=True)]]
    assert sketch.cells() == before
    assert (noisy.seeded, noisy.copy().seeded, sketch.seeded) == (True, True, False)
    assert (noisy.identity, noisy.length(), noisy.kind) == (sketch.identity, sketch.length(), "integers")


def test_noise_is_fresh() -> None:
    """Two noisy copies, and two rows of one, differ: 100 draws at epsilon 2^-20 repeat by chance once in 2^2000."""
    sketch = sketch_of("count-min", 100, 3)
    rows = [tuple(row) for _ in range(5) for row in sketch.noisy(2**12).cells()]
    assert len(set(rows)) == 15
    assert not sketch.noisy(2**12).seeded


@pytest.mark.parametrize("arguments", [(), (0,), (1, 1), (-1,), (2**64,), (1, None, b"short"), (None, None, bytes(32))])
def test_bad_noise_is_refused(arguments: tuple[Any, ...]) -> None:
    """One law, in its range, or no noise at all."""
    with pytest.raises((InvalidParameter, OverflowError)):
        sketch_of("count-min", 2, 1).noisy(*arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ("misra-gries", 1, 1, 64),
        ("count-min", 0, 1, 64),
        ("count-min", 1, 0, 64),
        ("count-min", -1, 1, 64),
        ("count-min", 2**31 + 1, 1, 64),
        ("count-min", 1, 2**16 + 1, 64),
        ("count-sketch", 1, 2, 64),
        ("count-min", 1, 1, 63),
        ("count-min", 1, 1, 2**30 + 1),
        ("count-min", 1, 1, 64, b"short"),
    ],
)
def test_parameters_out_of_range_are_refused(arguments: tuple[Any, ...]) -> None:
    """Nothing is allocated for them."""
    with pytest.raises((InvalidParameter, OverflowError)):
        Sketch(*arguments)


def test_a_table_above_the_memory_is_refused() -> None:
    """The machine's memory is known on Linux; what no machine has is refused anywhere."""
    with pytest.raises(InvalidParameter, match="memory; got width 2147483648 and depth 65536"):
        Sketch("count-min", 2**31, 2**16, 64)
    assert Sketch.bytes_needed(2**31, 2**16) == 2**16 * (8 * 2**31 + 24)
    assert sketch_of("count-sketch", 1000, 7).heap_bytes() == Sketch.bytes_needed(1000, 7)
    available = _native.memory_bytes()
    if available is not None:
        rows = available // (8 * 2**24) + 1
        with pytest.raises(InvalidParameter, match="memory"):
            Sketch("count-min", 2**24, rows, 64)


def test_sketches_that_differ_are_not_merged() -> None:
    """The error says in what; it quotes no item, and neither sketch has changed."""
    held = sketch_of("count-min", 10, 3, seed=1)
    held.update(SECRET, 5)
    before = held.cells()
    others = {
        "rule; got count-min and count-sketch": sketch_of("count-sketch", 10, 3, seed=1),
        "width; got 10 and 11": sketch_of("count-min", 11, 3, seed=1),
        "depth; got 3 and 4": sketch_of("count-min", 10, 4, seed=1),
        "max_label_bytes; got 4096 and 64": sketch_of("count-min", 10, 3, seed=1, max_label_bytes=64),
        "hash keys": sketch_of("count-min", 10, 3, seed=2),
        "it holds strings, these are bytes": held.empty_copy(),
        r"sum to at most 2\*\*63 - 1": held.empty_copy(),
    }
    others["it holds strings, these are bytes"].update(SECRET.encode(), 1)
    others[r"sum to at most 2\*\*63 - 1"].update(SECRET, -MOST)
    for words, other in others.items():
        with pytest.raises(IncompatibleSummaries, match=words) as raised:
            held.merge(other)
        assert SECRET not in str(raised.value)
        assert (held.cells(), held.length(), held.kind) == (before, 5, "strings")


@pytest.mark.parametrize("rule", RULES)
def test_a_batch_is_refused_whole(rule: str) -> None:
    """Another kind, too much weight, or too few weights: nothing of the call has been counted, and it is told so."""
    sketch = sketch_of(rule, 10, 3)
    extend(sketch, [1, 2], [MOST - 5, -2])
    before = sketch.cells()
    refused: list[tuple[list[Label], list[int], type[DptopError], str]] = [
        ([3, 4], [1, -3], InvalidParameter, "signs left out"),
        ([3], [1, 1], InvalidParameter, "one weight per item"),
        ([SECRET], [1], UnsupportedLabel, "it holds integers, these are strings"),
    ]
    for items, weights, error, words in refused:
        reading = Reading()
        batches = [LabelBatch.from_sequence([9]), LabelBatch.from_sequence(items)]
        signed = SignedBatchWeights([LabelBatch.from_sequence([1, *weights])])
        with pytest.raises(error, match=words) as raised:
            sketch.extend(batches, signed, reading)
        assert SECRET not in str(raised.value)
        assert not reading.counted
        assert (sketch.cells(), sketch.length()) == (before, MOST - 3)
    with pytest.raises(UnsupportedLabel):
        sketch.estimate(LabelBatch.from_sequence([SECRET]))
    with pytest.raises(UnsupportedLabel):
        sketch.update(SECRET, 1)
    with pytest.raises(InvalidParameter, match="signs left out"):
        sketch.update(1, -4)
    sketch.update(1, -3)
    assert sketch.length() == MOST


@pytest.mark.parametrize("weight", [2**63, -(2**63), 1.5, "1", None, True])
def test_weights_that_have_no_opposite_are_refused(weight: Any) -> None:
    """One by one and in a batch; unsigned weights stay as they were."""
    sketch = sketch_of("count-min", 10, 3)
    rule = r"whole numbers? from -\(2\*\*63 - 1\) to 2\*\*63 - 1"
    with pytest.raises(InvalidParameter, match=rule):
        sketch.update(1, weight)
    if not isinstance(weight, (float, bool)):
        with pytest.raises(InvalidParameter, match=rule):
            SignedBatchWeights(batches_of([1, weight] if weight is None or isinstance(weight, int) else [weight]))
    assert sketch.length() == 0
    with pytest.raises(InvalidParameter, match="from 0 to"):
        _native.BatchWeights(batches_of([1, -1]))


@pytest.mark.parametrize("rule", RULES)
def test_labels_of_the_same_bits_are_told_apart(rule: str) -> None:
    """-1 and 2^64 - 1, and long labels that differ at the end, have cells of their own."""
    sketch = sketch_of(rule, 2**16, 5, seed=9, max_label_bytes=64)
    extend(sketch, [-1, -1, 2**64 - 1, 2**63, -(2**63)])
    assert estimates(sketch, [-1, 2**64 - 1, 2**63, -(2**63), 2**63 - 1]) == [2, 1, 1, 1, 0]
    sketch = sketch_of(rule, 2**16, 5, seed=9, max_label_bytes=64)
    long = "x" * 10_000
    extend(sketch, [long + "a", long + "b", long + "b"])
    assert estimates(sketch, [long + "a", long + "b", long]) == [1, 2, 0]


def test_merging_both_ways_at_once_ends() -> None:
    """Two threads that merge two sketches into each other never wait for each other for ever."""
    one = sketch_of("count-min", 1000, 5)
    other = one.empty_copy()

    def merge(into: Sketch, source: Sketch) -> None:
        for _ in range(300):
            into.merge(source)

    threads = [threading.Thread(target=merge, args=pair, daemon=True) for pair in ((one, other), (other, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
