"""The native SpaceSaving equals the slow twin: any stream, any batching, any weights, any point of save and load."""

from __future__ import annotations

import copy
import hashlib
import math
import pickle
import random
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dptop
from dptop.parameters import shown
from dptop.reference import space_saving as reference
from dptop.tie import Tie
from saved import Saved, routing, with_key
from saved_frame import Label, encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_LABEL_BYTES = 64

POOLS: dict[str, list[Label]] = {
    "integers": [0, 1, -1, 2**64 - 1, 2**63, 2**63 - 1, -(2**63), 256, 2**32, 7, 8, 9],
    "text": ["", "a", "b", "é", "\0", "1", "x" * 64, "x" * 65, "x" * 66, "é" * 40, "x" * 65 + "y", "\U0001f600"],
    "bytes": [b"", b"a", b"\xff", b"\0", b"\0\0", b"1", b"x" * 64, b"x" * 65, b"x" * 66, b"y", b"\x80" * 80, b"z"],
}


class Weighted(reference.SpaceSaving[bytes]):
    """The reference with the weight of a label added at once: equal to it on small weights, and quick on large ones."""

    def update(self, label: bytes, weight: int = 1) -> None:
        """Add the weight without a loop over it."""
        if weight:
            self._occurrence(label)
            self._count[label] += weight - 1
            self.length += weight - 1


class Twin:
    """The reference for a native summary: one for each partition, fed with the labels that are routed to it."""

    def __init__(self, summary: dptop.SpaceSaving, pool: list[Label], kind: type[reference.SpaceSaving[bytes]]) -> None:
        capacity, partitions = summary.capacity, summary.partitions
        self._max_label_bytes = summary.max_label_bytes
        self._route = routing(summary, pool)
        self._tables = [
            kind(capacity // partitions + (number < capacity % partitions), summary.tie) for number in range(partitions)
        ]

    def update(self, label: Label, weight: int = 1) -> None:
        """Read one item in its partition."""
        key = encoded(label, self._max_label_bytes)
        self._tables[self._route[key]].update(key, weight)

    def check(self, summary: dptop.SpaceSaving) -> None:
        """Compare counters, order of last occurrence, minimum and length."""
        expected = [[(count, label) for label, count in table.counters().items()] for table in self._tables]
        assert Saved.of(summary).counters == expected
        for number, table in enumerate(self._tables):
            assert summary._tables.snapshot()[1][number][0] == table.minimum
        assert summary._tables.length() == sum(table.length for table in self._tables)


def by_file(summary: dptop.SpaceSaving) -> dptop.SpaceSaving:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "summary"
        summary.save(path)
        loaded = dptop.load(path)
        assert isinstance(loaded, dptop.SpaceSaving)
        return loaded


def by_pickle(summary: dptop.SpaceSaving) -> dptop.SpaceSaving:
    twin = pickle.loads(pickle.dumps(summary))
    assert isinstance(twin, dptop.SpaceSaving)
    return twin


def by_bytes(summary: dptop.SpaceSaving) -> dptop.SpaceSaving:
    return dptop.SpaceSaving.from_bytes(summary.to_bytes())


WAYS: list[Callable[[dptop.SpaceSaving], dptop.SpaceSaving]] = [copy.copy, copy.deepcopy, by_pickle, by_bytes, by_file]


def chunked(items: list[Label]) -> Any:
    """Return an Arrow array in chunks of odd sizes, an empty one and a slice with an offset among them."""
    array = pa.array(items, _arrow_type(items))
    cut = len(items) // 3
    return pa.chunked_array([array[:cut], array[cut:cut], array[cut:]])


def _arrow_type(items: list[Label]) -> Any:
    if isinstance(items[0], int):
        return pa.int64() if min(i for i in items if isinstance(i, int)) < 0 else pa.uint64()
    return pa.large_string() if isinstance(items[0], str) else pa.binary()


def fits_arrow(items: list[Label]) -> bool:
    numbers = [item for item in items if isinstance(item, int)]
    return bool(items) and (not numbers or min(numbers) >= 0 or max(numbers) < 2**63)


FORMS: list[Callable[[list[Label]], Any]] = [
    list,
    tuple,
    iter,
    lambda items: (item for item in items),
    lambda items: np.array([*items, None], dtype=object)[:-1],
    lambda items: chunked(items) if fits_arrow(items) else items,
]

weights = st.one_of(st.sampled_from([0, 1, 1, 1, 2]), st.integers(0, 40))


@st.composite
def steps(draw: st.DrawFn, pool: list[Label], weight: st.SearchStrategy[int]) -> list[tuple[Any, ...]]:
    label = st.sampled_from(pool)
    items = st.lists(label, max_size=25)
    return draw(
        st.lists(
            st.one_of(
                st.tuples(st.just("update"), label, weight),
                st.tuples(st.just("extend"), st.sampled_from(FORMS), items, st.integers(1, 3)),
                st.lists(st.tuples(label, weight), max_size=25).map(lambda pairs: ("weigh", pairs)),
                st.tuples(st.just("way"), st.sampled_from(WAYS)),
            ),
            max_size=12,
        )
    )


def run(summary: dptop.SpaceSaving, twin: Twin, taken: list[tuple[Any, ...]]) -> None:
    for name, *arguments in taken:
        if name == "update":
            label, weight = arguments
            summary.update(label, weight)
            twin.update(label, weight)
        elif name == "extend":
            form, items, threads = arguments
            summary.extend(form(items), threads=threads)
            for label in items:
                twin.update(label)
        elif name == "weigh":
            (pairs,) = arguments
            summary.extend([label for label, _ in pairs], weights=[weight for _, weight in pairs])
            for label, weight in pairs:
                twin.update(label, weight)
        else:
            (way,) = arguments
            summary = way(summary)
        twin.check(summary)


@given(
    capacity=st.integers(1, 9),
    partitions=st.sampled_from([1, 1, 2, 3]),
    tie=st.sampled_from(Tie),
    kind=st.sampled_from(list(POOLS)),
    key=st.binary(min_size=8, max_size=8),
    data=st.data(),
)
@settings(deadline=None, derandomize=True, max_examples=300)
def test_native_equals_reference(
    capacity: int, partitions: int, tie: Tie, kind: str, key: bytes, data: st.DataObject
) -> None:
    """After every step both hold the same counters in the same order of last occurrence, in every partition."""
    summary = dptop.SpaceSaving(
        capacity, tie=tie, partitions=min(partitions, capacity), max_label_bytes=MAX_LABEL_BYTES
    )
    summary = with_key(summary, key)
    twin = Twin(summary, POOLS[kind], reference.SpaceSaving)
    run(summary, twin, data.draw(steps(POOLS[kind], weights)))


@given(capacity=st.integers(1, 6), tie=st.sampled_from(Tie), data=st.data())
@settings(deadline=None, derandomize=True, max_examples=150)
def test_native_equals_reference_on_any_weight(capacity: int, tie: Tie, data: st.DataObject) -> None:
    """Weights up to 2^50 next to weights of 1 leave the same state as the reference."""
    large = st.one_of(weights, st.integers(0, 2**50), st.integers(0, 50).map(lambda i: 2**i))
    summary = dptop.SpaceSaving(capacity, tie=tie, max_label_bytes=MAX_LABEL_BYTES)
    run(summary, Twin(summary, POOLS["integers"], Weighted), data.draw(steps(POOLS["integers"], large)))


@given(
    st.integers(1, 5),
    st.sampled_from(Tie),
    st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c", b"d", b"e"]), weights)),
)
@settings(deadline=None, derandomize=True)
def test_a_weight_at_once_is_a_weight_in_units(capacity: int, tie: Tie, pairs: list[tuple[bytes, int]]) -> None:
    """The quick reference of these tests equals the one that loops over the weight."""
    quick, slow = Weighted(capacity, tie), reference.SpaceSaving[bytes](capacity, tie)
    for label, weight in pairs:
        quick.update(label, weight)
        slow.update(label, weight)
    assert list(quick.counters().items()) == list(slow.counters().items())
    assert quick.length == slow.length


def all_new(_: random.Random) -> Iterator[tuple[int, int]]:
    for label in range(4000):
        yield label, 1


def one_light_slot(_: random.Random) -> Iterator[tuple[int, int]]:
    for label in range(31):
        yield label, 1000
    for label in range(100, 3000):
        yield label, 1


def counts_far_apart(generator: random.Random) -> Iterator[tuple[int, int]]:
    for bit in generator.sample(range(32), 32):
        yield bit, 1 << bit
    for label in range(100, 1500):
        yield label, 1
        yield generator.randrange(32), 1 << generator.randrange(20)


def large_weights(generator: random.Random) -> Iterator[tuple[int, int]]:
    for _ in range(3000):
        yield generator.randrange(80), generator.randrange(1, 1 << generator.randrange(1, 45))


def sawtooth(generator: random.Random) -> Iterator[tuple[int, int]]:
    fresh = 1000
    for height in (*range(1, 40), *range(40, 1, -1)):
        for label in generator.sample(range(32), 32):  # level all counters, then bring new labels one by one
            yield label, height
        for _ in range(height):
            fresh += 1
            yield fresh, 1


def staircase(_: random.Random) -> Iterator[tuple[int, int]]:
    for step in range(32):
        for label in [step] * (step + 1):
            yield label, 1
    for label in range(100, 2600):
        yield label, 1
        yield label, 1


def returning_victims(generator: random.Random) -> Iterator[tuple[int, int]]:
    for turn in range(5000):
        yield turn % 33, 1 + (generator.random() < 0.05)


def few_labels(generator: random.Random) -> Iterator[tuple[int, int]]:
    for _ in range(3000):
        yield int(generator.paretovariate(0.6)) % 50, 1


MAKERS = [all_new, one_light_slot, counts_far_apart, large_weights, sawtooth, staircase, returning_victims, few_labels]


@pytest.mark.parametrize("tie", Tie)
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("capacity", [1, 2, 32])
def test_adversarial_streams(
    make: Callable[[random.Random], Iterator[tuple[int, int]]], tie: Tie, capacity: int
) -> None:
    """Streams made to confuse the queue of victims end in the state of the reference, however they are cut."""
    source = random.Random(f"{make.__name__} {tie.value} {capacity}")
    pairs = list(make(source))
    whole, cut = dptop.SpaceSaving(capacity, tie=tie), dptop.SpaceSaving(capacity, tie=tie)
    twin = Twin(whole, [label for label, _ in pairs], Weighted)
    whole.extend([label for label, _ in pairs], weights=[weight for _, weight in pairs])
    at = 0
    while at < len(pairs):
        part = pairs[at : at + source.randrange(1, 700)]
        at += len(part)
        cut.extend([label for label, _ in part], weights=np.array([weight for _, weight in part]))
        cut = by_bytes(cut)
    for label, weight in pairs:
        twin.update(label, weight)
    twin.check(whole)
    twin.check(cut)


def test_a_wrong_tie_rule_is_seen() -> None:
    """The comparison fails where the tables break ties in another way than the twin: it can fail."""
    summary = dptop.SpaceSaving(4, tie=Tie.LEAST_RECENT)
    twin = Twin(dptop.SpaceSaving(4, tie=Tie.MOST_RECENT), list(range(42)), reference.SpaceSaving)
    for label in range(42):
        summary.update(label)
        twin.update(label)
    with pytest.raises(AssertionError):
        twin.check(summary)


@pytest.mark.parametrize("kind", POOLS)
def test_threads_do_not_change_the_result(kind: str) -> None:
    """One, two and three workers leave the same saved bytes; every partition equals the reference on its labels."""
    generator = random.Random(f"threads {kind}")
    pool = POOLS[kind]
    if kind == "text":
        pool = pool + [f"label {i}" for i in range(200)]
    elif kind == "bytes":
        pool = pool + [b"%d" % i for i in range(200)]
    else:
        pool = [*pool, *range(1000, 1200)]
    items = generator.choices(pool, k=5000)
    weighing = [generator.randrange(3) for _ in items]
    nulls = [None if generator.random() < 0.1 else item for item in items]
    empty = dptop.SpaceSaving(50, partitions=5, max_label_bytes=MAX_LABEL_BYTES)
    twin = Twin(empty, pool, reference.SpaceSaving)
    assert len(set(routing(empty, pool).values())) == 5
    start, found = empty.to_bytes(), []
    for threads in (1, 2, 3, 64):
        summary = dptop.SpaceSaving.from_bytes(start)
        summary.extend(nulls, threads=threads)
        summary.extend(items, weights=weighing, threads=threads)
        found.append(summary.to_bytes())
    assert len(set(found)) == 1
    for item in nulls:
        if item is not None:
            twin.update(item)
    for item, weight in zip(items, weighing, strict=True):
        twin.update(item, weight)
    twin.check(dptop.SpaceSaving.from_bytes(found[0]))


@pytest.mark.parametrize("capacity", [300, 120])
def test_blocks_of_threads_keep_the_order(capacity: int) -> None:
    """A batch longer than the block that workers look at together is counted in the order of the stream."""
    items = np.random.default_rng(5).zipf(1.2, 600_000) % 5000
    empty = dptop.SpaceSaving(capacity, partitions=4).to_bytes()  # large tables, and small ones
    one, two = dptop.SpaceSaving.from_bytes(empty), dptop.SpaceSaving.from_bytes(empty)
    weights = np.random.default_rng(6).integers(0, 3, len(items))
    for summary, threads in ((one, 1), (two, 2)):
        summary.extend(items, threads=threads)
        summary.extend(items, weights=weights, threads=threads)
    assert one.to_bytes() == two.to_bytes()


def test_two_threads_lose_nothing() -> None:
    """Items that two Python threads bring at once are all counted."""
    summary = dptop.SpaceSaving(1000, partitions=2)
    block = np.arange(500).repeat(100)

    def work() -> None:
        for _ in range(20):
            summary.extend(block)
            summary.update(3)

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    counters = dict(summary.private_counters())
    assert counters == {label: 4000 + 40 * (label == 3) for label in range(500)}


@pytest.mark.parametrize("partitions", [1, 4])
def test_bounds_on_a_long_stream(partitions: int) -> None:
    """In every partition f <= C <= f + m for tracked labels, f <= m for others, and m <= n / capacity."""
    items = (np.random.default_rng(7).zipf(1.1, 100_000) % 20_000).tolist()
    summary = dptop.SpaceSaving(400, partitions=partitions)
    route = routing(summary, items)
    summary.extend(items)
    true, counters = Counter(items), dict[Any, int](summary.private_counters())
    minima = [minimum for minimum, _ in summary._tables.snapshot()[1]]
    for label, f in true.items():
        m = minima[route[encoded(label)]]
        assert f <= counters[label] <= f + m if label in counters else f <= m
    assert sum(counters.values()) == len(items)
    assert all(m * (400 // partitions) <= len(items) for m in minima)


def test_private_counters_are_ordered() -> None:
    """By count downwards, then by item: integers by value, text and bytes by their bytes."""
    summary = dptop.SpaceSaving(10)
    summary.extend([5, -1, 2**64 - 1, 5, 3, -1, 0])
    assert summary.private_counters() == [(-1, 2), (5, 2), (0, 1), (3, 1), (2**64 - 1, 1)]
    text = dptop.SpaceSaving(30, partitions=3)
    text.extend(["b", "é", "B", "a", "b"])
    assert text.private_counters() == [("b", 2), ("B", 1), ("a", 1), ("é", 1)]


def test_memory_stops_at_the_capacity() -> None:
    """A million distinct labels take no more memory than those that first filled the table."""
    integers, text = dptop.SpaceSaving(10_000), dptop.SpaceSaving(10_000, max_label_bytes=64)
    assert integers._tables.heap_bytes() == 0
    sizes = []
    for block in range(20):
        numbers = np.arange(block * 50_000, (block + 1) * 50_000)
        integers.extend(numbers)
        text.extend(pa.array(np.char.add("label", numbers.astype(str))))
        sizes.append((integers._tables.heap_bytes(), text._tables.heap_bytes()))
    assert len(integers.private_counters()) == 10_000
    assert max(size for size, _ in sizes) <= 10_000 * 40
    assert max(size for _, size in sizes) <= 10_000 * (60 + len("label999999") * 2) + 2**16
    assert sizes[-1] == sizes[-3]
    long = dptop.SpaceSaving(100, max_label_bytes=64)
    for i in range(2000):
        long.update(str(i) * (1 + 997 * i % 3000))
    assert long._tables.heap_bytes() <= 100 * (64 * 3 + 100) + 8192


def test_memory_grows_with_the_labels_seen() -> None:
    """A large capacity costs nothing before it is used, and is exact until it fills."""
    summary = dptop.SpaceSaving(2**31)
    summary.extend(range(1000))
    assert 0 < summary._tables.heap_bytes() < 1_000_000
    assert summary.private_counters() == [(i, 1) for i in range(1000)]
    assert len(summary.to_bytes()) < 30_000


@pytest.mark.parametrize("labels", [(1, "1", b"1"), ("1", b"1", 1), (b"1", 1, "1")])
def test_kinds_do_not_meet(labels: tuple[Label, ...]) -> None:
    """A summary holds the kind of its first item and refuses the others, in whatever way they come."""
    first, *others = labels
    summary = dptop.SpaceSaving(10)
    summary.update(first)
    before = summary.to_bytes()
    for other in others:
        with pytest.raises(dptop.UnsupportedLabel, match="one kind"):
            summary.update(other)
        for items in ([other], (other,) * 3, np.array([other])):
            with pytest.raises(dptop.UnsupportedLabel, match="one kind"):
                summary.extend(items)
    assert summary.to_bytes() == before
    assert summary.private_counters() == [(first, 1)]


def test_equal_integers_are_one_label_and_others_are_not() -> None:
    """The width of an integer is not part of it; its sign is: -1 and 2^64 - 1 have the same bits and stay apart."""
    summary = dptop.SpaceSaving(10)
    for kind in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
        summary.extend(np.array([5, 6], kind))
        summary.update(kind(5))  # type: ignore[arg-type]  # NumPy's integers are integers
        summary.extend([kind(5)])
    summary.extend(np.array([-1], np.int8))
    summary.extend(np.array([2**64 - 1], np.uint64))
    summary.extend([-1, 2**64 - 1, 255, 2**32 - 1])
    assert summary.private_counters() == [(5, 24), (6, 8), (-1, 2), (2**64 - 1, 2), (255, 1), (2**32 - 1, 1)]


def test_text_with_zeros_and_normal_forms_stays_apart() -> None:
    """Labels are their bytes: a NUL counts, and a composed letter is not a letter with an accent."""
    labels = ["a", "a\0", "a\0\0", "\u00e9", "e\u0301", "", "\0", "\ufeffa", "a\r", "a\n"]
    summary = dptop.SpaceSaving(20)
    summary.extend(labels)
    assert sorted(str(label) for label, _ in summary.private_counters()) == sorted(labels)


def test_long_labels_are_counted_apart() -> None:
    """A label above the limit is a prefix and the digest of the whole; labels that differ at the end stay apart."""
    summary = dptop.SpaceSaving(10, max_label_bytes=100)
    long = [b"x" * 1000 + bytes([i]) for i in range(3)]
    summary.extend([long[0], long[1], long[1], long[2], long[2], long[2], b"x" * 100])
    expected = [(dptop.ShortenedLabel(b"x" * 68, hashlib.sha256(long[i]).digest()), i + 1) for i in (2, 1, 0)]
    found = summary.private_counters()
    assert [pair for pair in found if isinstance(pair[0], dptop.ShortenedLabel)] == expected
    assert (b"x" * 100, 1) in found


@pytest.mark.parametrize("kind", ["text", "bytes"])
def test_a_shortened_label_equals_no_real_one(kind: str) -> None:
    """A real label with the very bytes under which a long one is kept, or with its text, is another label."""
    raw = b"y" * 200
    summary = dptop.SpaceSaving(10, max_label_bytes=64)
    summary.update(raw.decode() if kind == "text" else raw, 5)
    ((shortened, _),) = summary.private_counters()
    assert isinstance(shortened, dptop.ShortenedLabel)
    summary.update(shortened.plain(), 4)
    if kind == "bytes":
        summary.update(raw[:32] + hashlib.sha256(raw).digest(), 3)
        summary.update(raw[:32], 2)
    else:
        summary.update("y" * 32, 2)
    counts = [count for _, count in summary.private_counters()]
    assert counts == ([5, 4, 3, 2] if kind == "bytes" else [5, 4, 2])
    assert by_bytes(summary).private_counters() == summary.private_counters()


@pytest.mark.parametrize("letter", ["é", "€", "\U0001f600"])
@pytest.mark.parametrize("limit", [64, 65, 66, 67, 68])
def test_text_is_cut_between_characters(letter: str, limit: int) -> None:
    """The prefix of a long text is text: no character is cut in two."""
    text = letter * 50
    summary = dptop.SpaceSaving(3, max_label_bytes=limit)
    summary.update(text)
    ((label, _),) = summary.private_counters()
    room = (limit - 32) // len(letter.encode())
    assert label == dptop.ShortenedLabel(letter * room, hashlib.sha256(text.encode()).digest())


def test_a_label_of_three_megabytes() -> None:
    """It is counted, told from one that differs in a byte, and takes no more room than the limit."""
    text = "z" * 3_000_000
    summary = dptop.SpaceSaving(100)
    summary.extend([text, text[:-1] + "y", text])
    summary.extend(pa.array([text, "short"]))
    assert [count for _, count in summary.private_counters()] == [3, 1, 1]
    assert summary._tables.heap_bytes() < 100_000
    (label, _), *_ = summary.private_counters()
    assert label == dptop.ShortenedLabel("z" * 4064, hashlib.sha256(text.encode()).digest())


class Pages(dptop.SpaceSaving):
    """A summary of somebody's own."""


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, by_pickle, lambda pages: Pages.from_bytes(pages.to_bytes())])
def test_a_summary_of_a_type_of_somebodys_own_is_copied(way: Callable[[dptop.SpaceSaving], object]) -> None:
    """A copy is of that type and of the same stream; what was saved is read as it, or as what it is a kind of."""
    pages = Pages(10)
    pages.extend(["a"] * 500)
    twin = way(pages)
    assert type(twin) is Pages
    assert twin.to_bytes() == pages.to_bytes()
    plain = dptop.Summary.from_bytes(pages.to_bytes())
    assert type(plain) is dptop.SpaceSaving
    dptop.release(twin, epsilon=1.0, delta=1e-9)
    for other in (pages, plain):
        with pytest.raises(dptop.BudgetExhausted):
            dptop.release(other, epsilon=1.0, delta=1e-9)
    with pytest.raises(dptop.CorruptSummary, match="a MisraGries, which is not a Pages"):
        Pages.from_bytes(dptop.MisraGries(10).to_bytes())


def test_repr_tells_parameters_only() -> None:
    """The text of a summary shows type, capacity, rule and kind of label, and nothing that the stream decides."""
    summary = dptop.SpaceSaving(77, tie="most-recent", partitions=2)
    assert repr(summary) == "SpaceSaving(capacity=77, tie='most-recent', partitions=2, labels=None)"
    summary.extend(["secret"] * 12345)
    assert repr(summary) == "SpaceSaving(capacity=77, tie='most-recent', partitions=2, labels='strings')"


BAD = [0, -1, 10**12, 2.5, 2.0, True, "3", None, math.nan, math.inf, [1]]


@pytest.mark.parametrize("value", BAD)
def test_a_capacity_out_of_range_is_refused(value: Any) -> None:
    """The message says rule, value and remedy; nothing is allocated."""
    with pytest.raises(dptop.InvalidParameter, match=r"capacity must be .* 1 to 2\*\*31; got") as caught:
        dptop.SpaceSaving(value)
    assert shown(value) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("partitions", value) for value in (*BAD[:1], 11, *BAD[3:])]
    + [("max_label_bytes", value) for value in (63, 2**30 + 1, *BAD)]
    + [("tie", value) for value in ("oldest", "", None, 0, "LEAST-RECENT")]
    + [("budget", value) for value in (1.0, (1.0, 1e-9), "1")],
)
def test_other_parameters_out_of_range_are_refused(name: str, value: Any) -> None:
    """Each names itself and shows the value it got."""
    with pytest.raises(dptop.InvalidParameter, match=f"{name} must be"):
        dptop.SpaceSaving(10, **{name: value})


@pytest.mark.parametrize("value", BAD)
def test_a_number_of_threads_out_of_range_is_refused(value: Any) -> None:
    """Nothing is read from the items."""
    items = iter([1, 2])
    summary = dptop.SpaceSaving(10)
    with pytest.raises(dptop.InvalidParameter, match="threads must be"):
        summary.extend(items, threads=value)
    assert list(items) == [1, 2]
    assert summary.private_counters() == []
