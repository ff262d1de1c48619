"""Every way in gives the counters of the plain list; what is no label is refused without being quoted."""

from __future__ import annotations

import array
import copy
import datetime
import decimal
import fractions
import math
import os
import pickle
import pty
import signal
import subprocess
import sys
import threading
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dptop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

INTEGERS = [3, 1, 2, 3, 3, 1, 100, 0]
TEXT = ["b", "a", "", "é", "b", "b", "a", "\U0001f600"]
BYTES = [b"b", b"a", b"", b"\xff", b"b", b"b", b"a", b"\xc3\xa9"]

Counters = list[tuple[Any, int]]


def counters(items: Any, **arguments: Any) -> Counters:
    summary = dptop.SpaceSaving(20)
    summary.extend(items, **arguments)
    assert summary._releasable
    return summary.private_counters()


def plain(items: list[Any]) -> Counters:
    """Return the counters by one update for each item that is no null."""
    summary = dptop.SpaceSaving(20)
    for item in items:
        if item is not None:
            summary.update(item)
    return summary.private_counters()


def with_nulls(items: list[Any]) -> list[Any]:
    return [None, *items[:3], None, *items[3:], None, None]


KINDS: dict[str, list[Any]] = {"integers": INTEGERS, "text": TEXT, "bytes": BYTES}


class Reiterable:
    """Neither a sequence nor an iterator."""

    def __init__(self, items: list[Any]) -> None:
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "form",
    [list, tuple, iter, lambda items: (i for i in items), lambda items: map(copy.copy, items), Reiterable, pd.Index],
)
def test_sequences_and_iterables(kind: str, form: Callable[[list[Any]], Any]) -> None:
    """Lists, tuples and iterables of any sort; None is skipped."""
    assert counters(form(KINDS[kind])) == plain(KINDS[kind])
    if form is not pd.Index:
        assert counters(form(with_nulls(KINDS[kind]))) == plain(KINDS[kind])


@pytest.mark.parametrize("items", [{1, 2}, frozenset([1]), Counter([1, 1]), {"a": 5}, Counter([1, 1]).keys()])
def test_what_has_lost_the_order_of_the_stream_is_refused(items: Any) -> None:
    """One item more moves others in a set, and in counts a label past others: neighbours would be none any more."""
    summary = dptop.SpaceSaving(10)
    for weights in (None, [1] * len(items)):
        with pytest.raises(dptop.InvalidParameter, match="order of the stream"):
            summary.extend(items, weights=weights)
    assert summary._releasable


@pytest.mark.parametrize("base", [list, tuple])
def test_a_sequence_with_an_order_of_its_own_is_read_as_it_iterates(base: type[Any]) -> None:
    """What a subclass stores need not be what it yields; and what it yielded may be gone."""

    class Lazy(base):  # type: ignore[misc]  # the base is a parameter
        def __iter__(self) -> Any:
            return iter(["a", "b", "a"])

    assert counters(Lazy()) == [("a", 2), ("b", 1)]
    summary = dptop.SpaceSaving(10)
    summary.update(1)
    with pytest.raises(dptop.UnsupportedLabel):
        summary.extend(Lazy())
    assert not summary._releasable


def test_virtual_iterables() -> None:
    """A range, a long generator, and nothing at all."""
    assert counters(range(5)) == plain([0, 1, 2, 3, 4])
    assert counters(i % 7 for i in range(200_000)) == counters([i % 7 for i in range(200_000)])
    nothing: list[Any] = [[], (), iter([]), range(0), [None], iter([None, None])]
    for empty in nothing:
        assert counters(empty) == []


def test_an_iterable_is_the_same_as_its_list_where_the_table_is_full() -> None:
    """Pieces of an iterable are counted in order: evictions are those of one long list."""
    items = [int(i) for i in np.random.default_rng(3).zipf(1.3, 150_000) % 1000]
    assert counters(iter(items)) == counters(items)


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("order", ["<", ">", "="])
def test_numpy_integers(name: str, order: str) -> None:
    """All widths, byte orders, strides and flags, and arrays that are empty."""
    kind: Any = np.dtype(name).newbyteorder(order)  # type: ignore[arg-type]  # its stub wants a literal
    values = np.array(INTEGERS, kind)
    edges = [int(np.iinfo(name).min), int(np.iinfo(name).max)]
    strided = np.repeat(values, 3)[::3]
    reverse = values[::-1]
    frozen = values.copy()
    frozen.flags.writeable = False
    column = np.array([INTEGERS, INTEGERS], kind).T[:, 0]
    unaligned = np.frombuffer(b"x" + values.tobytes(), kind, offset=1)
    field = np.zeros(len(values), [("pad", "u1"), ("x", kind)])
    field["x"] = values
    for form in (values, strided, frozen, column, unaligned, field["x"]):
        assert counters(form) == plain(INTEGERS)
    assert counters(reverse) == plain(INTEGERS[::-1])
    assert counters(np.array(edges, kind)) == plain(edges)
    assert counters(values[:0]) == []
    assert counters(list(values)) == plain(INTEGERS)


@pytest.mark.parametrize(
    ("items", "kind"),
    [
        (TEXT, "U"),
        (TEXT, "<U5"),
        (TEXT, ">U5"),
        (TEXT, object),
        (TEXT, np.dtypes.StringDType()),
        (BYTES, "S"),
        (BYTES, "S7"),
        (BYTES, object),
        (INTEGERS, object),
    ],
)
def test_numpy_text_bytes_and_objects(items: list[Any], kind: Any) -> None:
    """Fixed-width cells without their padding, objects, and text of variable width, in any stride."""
    values = np.array(items, kind)
    assert counters(values) == plain(items)
    assert counters(np.repeat(values, 2)[::2]) == plain(items)
    assert counters(values[:0]) == []
    assert counters(list(values)) == plain(items)


def test_numpy_nulls_and_cells_of_no_width() -> None:
    """None among objects and among text of variable width is skipped; cells without width are empty labels."""
    assert counters(np.array(with_nulls(TEXT), object)) == plain(TEXT)
    assert counters(np.array(with_nulls(TEXT), np.dtypes.StringDType(na_object=None))) == plain(TEXT)
    assert counters(np.array(["", ""])) == [("", 2)]
    assert counters(np.zeros(3, "S0")) == [(b"", 3)]


def test_buffers() -> None:
    """What speaks the buffer protocol: array.array of all integer codes, and memoryview, sliced or not."""
    for code in "bBhHiIlLqQ":
        values = array.array(code, INTEGERS)
        assert counters(values) == plain(INTEGERS)
        assert counters(memoryview(values)) == plain(INTEGERS)
        assert counters(memoryview(values)[::2]) == plain(INTEGERS[::2])
        assert counters(memoryview(values)[1:1]) == []
    assert counters(memoryview(b"abca")) == [(97, 2), (98, 1), (99, 1)]
    assert counters(memoryview(array.array("H", INTEGERS)[:])) == plain(INTEGERS)


INTEGER_TYPES = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
TEXT_TYPES = [pa.string(), pa.large_string(), pa.string_view()]
BYTES_TYPES = [pa.binary(), pa.large_binary(), pa.binary_view()]
FIXED = [b"ab", b"cd", b"ab", b"\0\0", b"ab", b"\xff\xff"]

ARROW = [
    *[(INTEGERS, kind) for kind in INTEGER_TYPES],
    *[(TEXT, kind) for kind in TEXT_TYPES],
    *[(BYTES, kind) for kind in BYTES_TYPES],
    (FIXED, pa.binary(2)),
    ([item * 9 for item in TEXT], pa.string_view()),  # too long to be held in the view itself
]


def arrow_forms(values: Any) -> Iterator[Any]:
    """Yield an Arrow array in every packing that Arrow objects come in."""
    yield values
    yield pa.concat_arrays([values[:2], values, values[:1]])[2 : 2 + len(values)]
    yield pa.chunked_array([values[:3], values[3:3], values[3:]])
    yield pa.table({"column": values})
    yield pa.table({"column": pa.chunked_array([values[:1], values[1:]])})
    yield pa.record_batch({"column": values})
    yield pa.record_batch({"column": values})[0 : len(values)]
    batches = [pa.record_batch({"column": part}) for part in (values[:4], values[4:])]
    yield pa.RecordBatchReader.from_batches(batches[0].schema, batches)


@pytest.mark.parametrize(
    ("items", "kind"), ARROW, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
def test_arrow(items: list[Any], kind: Any) -> None:
    """Every type in every packing, with and without nulls, with offsets, and as a dictionary."""
    for some in (items, with_nulls(items)):
        for form in arrow_forms(pa.array(some, kind)):
            assert counters(form) == plain(items)
        middle = pa.array([*some, *some], kind)[2 : 2 + len(some)]
        assert counters(middle) == plain([*some, *some][2 : 2 + len(some)])
    assert counters(pa.array([], kind)) == []
    assert counters(pa.chunked_array([], kind)) == []
    assert counters(pa.nulls(3, kind)) == []


@pytest.mark.parametrize("index", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()])
@pytest.mark.parametrize(
    ("items", "kind"), ARROW, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
def test_arrow_dictionaries(items: list[Any], kind: Any, index: Any) -> None:
    """Values are counted, not codes: equal values under two codes are one label; nulls in codes and values are none."""
    values = pa.array([*dict.fromkeys(items), None, *dict.fromkeys(items)], kind)
    half = len(dict.fromkeys(items))
    codes = [list(dict.fromkeys(items)).index(item) + (half + 1) * (i % 2) for i, item in enumerate(items)]
    with_gaps = [half, *codes[:2], None, *codes[2:], half, None]
    for some in (codes, with_gaps):
        encoded = pa.DictionaryArray.from_arrays(pa.array(some, index), values)
        for form in arrow_forms(encoded):
            assert counters(form) == plain(items)
    encoded = pa.DictionaryArray.from_arrays(pa.array(codes, index), values)
    assert counters(encoded[1:-1]) == plain(items[1:-1])


def test_arrow_chunks_with_dictionaries_of_their_own() -> None:
    """The same code may stand for another value in the next chunk."""
    chunks = pa.chunked_array([pa.array(["a", "b", "a"]).dictionary_encode(), pa.array(["b", "b"]).dictionary_encode()])
    assert counters(chunks) == [("b", 3), ("a", 2)]


def test_arrow_nulls() -> None:
    """A column of the null type holds nothing and does not fix the kind."""
    summary = dptop.SpaceSaving(10)
    for form in arrow_forms(pa.nulls(8)):
        summary.extend(form)
    summary.extend(pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), pa.nulls(1)))
    assert "labels=None" in repr(summary)
    summary.update(1)
    assert summary.private_counters() == [(1, 1)]


@pytest.mark.parametrize(
    ("items", "kind"),
    [
        *[
            (INTEGERS, kind)
            for kind in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
        ],
        (TEXT, pl.String),
        (TEXT, pl.Categorical),
        (TEXT, pl.Enum(sorted(set(TEXT)))),
        (BYTES, pl.Binary),
        (TEXT, pl.Object),
    ],
)
def test_polars(items: list[Any], kind: Any) -> None:
    """Series and frames with one column."""
    for some in (items, with_nulls(items)):
        series = pl.Series("column", some, kind)
        assert counters(series) == counters(series.to_frame()) == plain(items)
        assert counters(pl.concat([series[:3], series[3:]], rechunk=False)) == plain(items)
    assert counters(pl.Series("column", [], kind)) == []


@pytest.mark.parametrize(
    ("items", "kind"),
    [
        *[(INTEGERS, kind) for kind in ("int8", "int64", "uint64", "Int64", "UInt8", object, "category")],
        *[(TEXT, kind) for kind in ("str", "string", object, "category", pd.ArrowDtype(pa.large_string()))],
        *[(BYTES, kind) for kind in (object, "category", pd.ArrowDtype(pa.binary()))],
        ([-1, 2**64 - 1, -1], object),
    ],
)
def test_pandas(items: list[Any], kind: Any) -> None:
    """Series and frames with one column, whatever their index; missing values are skipped."""
    series = pd.Series(items, dtype=kind)
    assert counters(series) == counters(series.to_frame("column")) == plain(items)
    moved = series.set_axis([f"row {i}" for i in range(len(series))])
    assert counters(moved) == counters(moved.to_frame("column")) == plain(items)
    assert counters(series[::2]) == plain(items[::2])
    assert counters(series[:0]) == []
    if not str(kind).lower().startswith(("int", "uint")) or str(kind)[0].isupper():
        gaps = pd.Series(with_nulls(items), dtype=kind)
        assert counters(gaps) == counters(gaps.to_frame("column")) == plain(items)
    if kind is object:
        missing: list[Any] = [None, math.nan, pd.NA, pd.NaT, *items]
        assert counters(pd.Series(missing, dtype=object)) == plain(items)


def test_duckdb() -> None:
    """A relation with one column, larger than one chunk of its stream."""
    relation = duckdb.sql("select case when i % 5 = 0 then null else 'x' || (i % 4) end as c from range(100000) r(i)")
    expected = [f"x{i % 4}" for i in range(100_000) if i % 5]
    assert sorted(counters(relation)) == sorted(plain(expected))
    assert counters(duckdb.sql("select i::smallint from range(3) r(i)")) == [(0, 1), (1, 1), (2, 1)]


def test_files(tmp_path: Path) -> None:
    """What `read_labels` reads is an input like the others."""
    path = tmp_path / "lines"
    path.write_bytes(b"\n".join(BYTES[:2]) + b"\n")
    assert counters(dptop.read_labels(path)) == [(b"a", 1), (b"b", 1)]


PEAKS = """
import pyarrow as pa
import dptop

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))

def now():
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")  # the peak starts again from what is there now: what came and went before would hide growth
    return peak()

values = pa.array(["x" * 4000] * 32_000, pa.large_string())
views = values.cast(pa.string_view())
summary = dptop.SpaceSaving(10)
summary.extend(values[:10])
before = now()
for form in (values, views, pa.chunked_array([values, values]), pa.table({"x": values}), values.dictionary_encode()):
    summary.extend(form)
print(peak() - before)
before = now()
copied = values.to_pylist()
print(peak() - before)
assert summary.private_counters() == [("x" * 4000, 192_010)]
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc tells how far a process grew")
def test_text_is_not_copied_on_the_way_in() -> None:
    """While 128 MB of text are counted from Arrow arrays, the process grows by little; a copy shows as growth."""
    done = subprocess.run([sys.executable, "-c", PEAKS], capture_output=True, text=True, check=True)
    counting, copying = map(int, done.stdout.split())
    assert counting < 32_000_000
    assert copying > 100_000_000


SECRET = "SECRET-8731"
NUMBER = 8731_8731
DAY = datetime.date(1987, 3, 1)

NO_LABELS: dict[str, Any] = {
    "float": [1.5],
    "NaN": [math.nan],
    "bool": [True],
    "NumPy bool": [np.True_],
    "NumPy float": [np.float64(87318731.0)],
    "date": [DAY],
    "time": [datetime.datetime(1987, 3, 1)],
    "Decimal": [decimal.Decimal(NUMBER)],
    "Fraction": [fractions.Fraction(NUMBER)],
    "UUID": [uuid.UUID(int=NUMBER)],
    "list": [[SECRET]],
    "tuple": [(SECRET,)],
    "dict": [{SECRET: 1}],
    "bytearray": [bytearray(SECRET.encode())],
    "complex": [complex(NUMBER, 1)],
    "object": [object()],
    "an integer above the range": [2**64 + NUMBER],
    "an integer below the range": [-(2**63) - NUMBER],
    "text with a lone surrogate": [SECRET + "\ud800"],
    "text after bytes": [b"a", SECRET],
    "bytes after text": ["a", SECRET.encode()],
    "text after integers": [1, SECRET],
    "an integer after text": [SECRET, NUMBER],
    "a float after integers": [NUMBER, 0.5],
    "a zero-dimensional array": [np.array(NUMBER)],
    "NumPy floats": np.array([87318731.0]),
    "NumPy bools": np.array([True]),
    "NumPy dates": np.array([DAY], "M8[D]"),
    "NumPy durations": np.array([NUMBER], "m8[s]"),
    "NumPy records": np.array([(NUMBER,)], [("x", "i8")]),
    "NumPy complex": np.array([1j]),
    "NumPy objects of two kinds": np.array([SECRET, NUMBER], object),
    "NumPy text with a lone surrogate": np.array([SECRET + "\ud800"]),
    "masked NumPy": np.ma.array([NUMBER, 2], mask=[False, True]),
    "a memoryview of floats": memoryview(array.array("d", [87318731.0])),
    "an array of floats": array.array("d", [87318731.0]),
    "Arrow floats": pa.array([87318731.0]),
    "Arrow half floats": pa.array([np.float16(1)]),
    "Arrow bools": pa.array([True]),
    "Arrow dates": pa.array([DAY]),
    "Arrow times": pa.array([0], pa.timestamp("s", tz="Europe/Berlin")),
    "Arrow decimals": pa.array([decimal.Decimal(NUMBER)]),
    "Arrow lists": pa.array([[SECRET]]),
    "Arrow structures": pa.table({"x": pa.array([{SECRET: SECRET, "b": 1}])}),
    "a structure in a structure": pa.table({"x": pa.array([{SECRET: SECRET}])}),
    "Arrow runs": pa.RunEndEncodedArray.from_arrays([1], [SECRET]),
    "an empty Arrow column of floats": pa.chunked_array([], pa.float64()),
    "a dictionary of floats": pa.array([87318731.0]).dictionary_encode(),
    "a dictionary of dates": pa.array([DAY]).dictionary_encode(),
    "Polars floats": pl.Series([87318731.0]),
    "Polars bools": pl.Series([True]),
    "Polars dates": pl.Series([DAY]),
    "Polars lists": pl.Series([[SECRET]]),
    "Polars objects": pl.Series([object()], dtype=pl.Object),
    "Polars objects of two kinds": pl.Series([SECRET, NUMBER], dtype=pl.Object),
    "pandas floats": pd.Series([87318731.0]),
    "pandas integers with NaN": pd.Series([NUMBER, None]),
    "pandas bools": pd.Series([True]),
    "pandas dates": pd.Series(pd.to_datetime([DAY])),
    "pandas text and integers": pd.Series([SECRET, NUMBER], dtype=object),
    "pandas integers and text": pd.Series([NUMBER, SECRET], dtype=object),
    "pandas text and bytes": pd.Series(["a", SECRET.encode()], dtype=object),
    "pandas objects": pd.Series([object(), SECRET], dtype=object),
    "pandas lone surrogates": pd.Series([SECRET + "\ud800"], dtype=object),
    "pandas integers out of range": pd.Series([2**64 + NUMBER], dtype=object),
    "pandas categories of two kinds": pd.Series([SECRET, SECRET.encode()], dtype="category"),
    "Arrow booleans in bytes": pa.array([1, 0, 1], pa.bool8()),
    "a table of Arrow booleans in bytes": pa.table({"x": pa.array([1, 0, 1], pa.bool8())}),
    "pandas periods": pd.Series(pd.period_range("1987-03", periods=2, freq="M")),
    "DuckDB doubles": "select 87318731.0::double",
}


@pytest.mark.parametrize("name", NO_LABELS)
def test_what_is_no_label_is_refused(name: str) -> None:
    """The error tells to cast and quotes no item, be it through the text of another library; nothing changes."""
    items = NO_LABELS[name]
    if name.startswith("DuckDB"):
        items = duckdb.sql(items)
    for before in ([], [7, 7, 8]):
        summary = dptop.SpaceSaving(10)
        summary.extend(before)
        state = summary.to_bytes()
        with pytest.raises(dptop.UnsupportedLabel) as caught:
            summary.extend(items)
        quotes_nothing(caught.value)
        assert any(word in str(caught.value).lower() for word in ("cast", "encode", "pass")), "no remedy"
        assert summary.private_counters() == counters(before)
        if not name.startswith("DuckDB"):  # a relation may stand for what can be read once
            assert summary.to_bytes() == state


def quotes_nothing(error: BaseException | None) -> None:
    """Check the text of an error and of those that led to it."""
    while error is not None:
        text = str(error)
        for secret in (SECRET, "8731", "1987", "\ud800", "DAY"):
            assert secret not in text
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


@pytest.mark.parametrize(
    "item", [NO_LABELS[name][0] for name in NO_LABELS if type(NO_LABELS[name]) is list and len(NO_LABELS[name]) == 1]
)
def test_update_refuses_what_extend_refuses(item: Any) -> None:
    """One item at a time, the same rules."""
    summary = dptop.SpaceSaving(10)
    state = summary.to_bytes()
    with pytest.raises(dptop.UnsupportedLabel) as caught:
        summary.update(item)
    quotes_nothing(caught.value)
    assert summary.to_bytes() == state


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_a_second_kind_in_a_later_batch_is_refused(first: str, second: str) -> None:
    """Whatever it comes in; the summary stays as it was and goes on with its own kind."""
    if first == second:
        return
    summary = dptop.SpaceSaving(10)
    summary.extend(KINDS[first])
    state = summary.to_bytes()
    other = KINDS[second]
    for form in (other, tuple(other), np.array(other), pa.array(other), pl.Series(other), pd.Series(other)):
        with pytest.raises(dptop.UnsupportedLabel, match="one kind"):
            summary.extend(form)
        assert summary.to_bytes() == state
    summary.extend(KINDS[first])


NOT_ITEMS: dict[str, Any] = {
    "text": SECRET,
    "bytes": SECRET.encode(),
    "a bytearray": bytearray(SECRET.encode()),
    "a number": NUMBER,
    "None": None,
    "a type": int,
    "a table of two columns": pa.table({"a": [SECRET], "b": [SECRET]}),
    "a table of no columns": pa.table({}),
    "a batch of two columns": pa.record_batch({"a": [SECRET], "b": [SECRET]}),
    "a pandas frame of two columns": pd.DataFrame({"a": [SECRET], "b": [SECRET]}),
    "a pandas frame of no columns": pd.DataFrame(index=[1, 2]),
    "a Polars frame of two columns": pl.DataFrame({"a": [SECRET], "b": [SECRET]}),
    "a NumPy matrix": np.array([[NUMBER]]),
    "a NumPy number": np.array(NUMBER),
    "a memoryview of two dimensions": memoryview(array.array("q", [NUMBER])).cast("B").cast("q", (1, 1)),
    "a DuckDB relation of two columns": "select 1, 2",
}


@pytest.mark.parametrize("name", NOT_ITEMS)
def test_what_is_no_sequence_of_items_is_refused(name: str) -> None:
    """A text is not its letters, a table is not its first column; the message says what to pass."""
    items = duckdb.sql(NOT_ITEMS[name]) if name.startswith("a DuckDB") else NOT_ITEMS[name]
    summary = dptop.SpaceSaving(10)
    state = summary.to_bytes()
    with pytest.raises(dptop.InvalidParameter) as caught:
        summary.extend(items)
    quotes_nothing(caught.value)
    assert summary.to_bytes() == state or name.startswith("a DuckDB")  # which may stand for what can be read once


def test_text_that_is_not_utf_8_is_refused() -> None:
    """Arrow text with other bytes breaks the format; it would be bytes that pass for text."""
    ends = pa.py_buffer(np.array([0, 1, 2], np.int32).tobytes())
    broken = pa.Array.from_buffers(pa.string(), 2, [None, ends, pa.py_buffer(b"a\xff")])
    views = [pa.array([b"a", b"\xff", b"\xff" * 20], pa.binary_view()).view(pa.string_view())]
    for form in (broken, pa.DictionaryArray.from_arrays([0, 0], broken), pa.table({"x": broken}), *views):
        summary = dptop.SpaceSaving(10)
        state = summary.to_bytes()
        with pytest.raises(dptop.SourceError, match="UTF-8"):
            summary.extend(form)
        assert summary.to_bytes() == state
    assert counters(broken[:1]) == [("a", 1)]
    split = pa.Array.from_buffers(pa.string(), 2, [None, ends, pa.py_buffer("é".encode())])  # one letter in two cells
    with pytest.raises(dptop.SourceError, match="UTF-8"):
        counters(split)


@pytest.mark.parametrize(
    "weights",
    [
        [1, -1],
        [1, math.nan],
        [1, 1.5],
        [1.0, 2.0],
        [1, None],
        [1, True],
        [True, True],
        ["1", "2"],
        [1],
        [1, 2, 3],
        [],
        [1, 2**63],
        [1, 2**64],
        [1, 2**70],
        [2**63 - 1, 1],
        [2**62, 2**62],
        [2**63 - 1, 2**63 - 1],
        np.array([1, -1]),
        np.array([1.0, 2.0]),
        np.array([True, True]),
        np.array([2**63, 0], np.uint64),
        np.array([[1, 1]]),
        pa.array([1, None]),
        pa.array([1.0, 1.0]),
        pd.Series([1, None]),
        pl.Series([1, -3]),
        3,
        "11",
    ],
)
@pytest.mark.parametrize("form", [list, iter, np.array, pa.array])
def test_wrong_weights_are_refused(weights: Any, form: Callable[[list[str]], Any]) -> None:
    """Not whole, not positive, not as many as items, or past the range: an error, never a wrap, and nothing counted."""
    summary = dptop.SpaceSaving(10)
    summary.update("a", 3)
    state = summary.to_bytes()
    with pytest.raises(dptop.InvalidParameter) as caught:
        summary.extend(form(["b", "c"]), weights=weights)
    assert "weight" in str(caught.value) or "items" in str(caught.value) or "dimension" in str(caught.value)
    assert summary.private_counters() == [("a", 3)]
    if form is not iter:  # what was taken from an iterator is lost
        assert summary.to_bytes() == state


@pytest.mark.parametrize(
    "weight", [-NUMBER, -1, 1.5, 2.0, math.nan, None, True, "1", 2**63, 2**64, 2**70, [1], SECRET, (1, SECRET)]
)
def test_a_wrong_weight_of_one_item_is_refused(weight: Any) -> None:
    """The same rules for `update`, whose arguments may have been swapped."""
    summary = dptop.SpaceSaving(10)
    state = summary.to_bytes()
    with pytest.raises(dptop.InvalidParameter, match="weight") as caught:
        summary.update("a", weight)
    assert "whole number" in str(caught.value) or "2**63" in str(caught.value)
    quotes_nothing(caught.value)
    assert summary.to_bytes() == state


def test_an_interruption_inside_a_weight_passes_through() -> None:
    """It is no wrong weight."""

    class Interrupted:
        def __index__(self) -> int:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dptop.SpaceSaving(10).update("a", Interrupted())  # type: ignore[arg-type]


def test_the_range_of_a_stream_is_used_to_its_end() -> None:
    """Weights may sum to 2^63 - 1 and not to one more, over several calls too."""
    summary = dptop.SpaceSaving(2)
    summary.update("a", 2**63 - 2)
    with pytest.raises(dptop.InvalidParameter, match=r"2\*\*63"):
        summary.update("b", 2)
    for items, weights in ((["b", "c"], None), (["b", "c"], [1, 1]), (iter(["b"]), [2])):
        with pytest.raises(dptop.InvalidParameter, match=r"2\*\*63"):
            summary.extend(items, weights=weights)
    summary.update("b")
    assert summary.private_counters() == [("a", 2**63 - 2), ("b", 1)]
    summary.extend(["c"], weights=[0])
    with pytest.raises(dptop.InvalidParameter):
        summary.update("a")


@pytest.mark.parametrize(
    "form", [list, tuple, iter, np.array, pa.array, pl.Series, pd.Series, lambda w: pa.chunked_array([w[:2], w[2:]])]
)
def test_weights_come_in_any_form(form: Callable[[list[int]], Any]) -> None:
    """And need not come in the form of the items; a null has a weight too, which does not matter."""
    weights = [2, 0, 5, 1]
    for items in (["a", "b", None, "c"], iter(["a", "b", None, "c"]), pa.array(["a", "b", None, "c"])):
        assert counters(items, weights=form(weights)) == [("a", 2), ("c", 1)]


def test_the_weight_of_a_null_counts_for_nothing() -> None:
    """Not towards the range of a stream either, as with `update`."""
    assert counters([None, "a"], weights=[2**63 - 1, 1]) == [("a", 1)]
    assert counters(pa.array([None, "a"]), weights=[2**63 - 1, 1]) == [("a", 1)]


def test_weighed_items_are_checked_whole() -> None:
    """Pieces of one input are looked at together: where a later one is refused, no earlier one is counted."""
    pieces = pa.chunked_array([["a"], ["b"]])
    summary = dptop.SpaceSaving(10)
    with pytest.raises(dptop.InvalidParameter, match=r"2\*\*63"):
        summary.extend(pieces, weights=[2**62, 2**62])
    assert summary.private_counters() == []
    summary.extend(pieces, weights=[2**62, 2**62 - 1])
    assert summary.private_counters() == [("a", 2**62), ("b", 2**62 - 1)]
    with pytest.raises(dptop.UnsupportedLabel):
        (mixed := dptop.SpaceSaving(10)).extend(iter([1] * 65_536 + ["a"]), weights=np.ones(65_537, int))
    assert mixed.private_counters() == []


def test_a_batch_that_another_summary_counted_is_like_any_other(tmp_path: Path) -> None:
    """A refused batch closes the summary that refuses it no more than a list would."""
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\n")
    (batch,) = dptop.read_labels(path)
    first, second, integers = (dptop.SpaceSaving(10) for _ in range(3))
    first.extend(batch)
    second.extend(batch)
    assert first.private_counters() == second.private_counters() == [(b"a", 1), (b"b", 1)]
    integers.update(1)
    with pytest.raises(dptop.UnsupportedLabel):
        integers.extend(batch)
    assert integers._releasable


def test_weights_of_many_pieces_are_matched() -> None:
    """Weights and items may be cut at different places."""
    items = [i % 10 for i in range(150_000)]
    weights = [i % 3 for i in range(150_000)]
    chunks = pa.chunked_array([weights[:1000], weights[1000:99_000], weights[99_000:]])
    cut = pa.chunked_array([items[:77], items[77:]])
    expected = counters(items, weights=weights)
    assert counters(iter(items), weights=chunks) == counters(cut, weights=iter(weights)) == expected
    assert sum(count for _, count in expected) == sum(weights)


def test_weight_zero_is_no_occurrence() -> None:
    """It does not refresh a label, take a slot, evict, or fix the kind."""
    summary = dptop.SpaceSaving(2)
    summary.update(5, 0)
    summary.extend([5, 6], weights=[0, 0])
    summary.extend(pa.array([b"x"]), weights=[0])
    assert "labels=None" in repr(summary)
    summary.extend(["a", "b"])
    state = summary.to_bytes()
    summary.update("a", 0)
    summary.update("c", 0)
    summary.extend(["a", "c", "a"], weights=[0, 0, 0])
    assert summary.to_bytes() == state
    summary.update("c")
    assert summary.private_counters() == [("c", 2), ("b", 1)]  # "a" was still the least recent


def test_none_is_no_occurrence() -> None:
    """A null counts nothing, alone or in a batch."""
    summary = dptop.SpaceSaving(2)
    state = summary.to_bytes()
    summary.update(None)
    summary.update(None, 5)
    summary.extend([None, None])
    summary.extend([None], weights=[7])
    assert summary.to_bytes() == state


def breaking(good: int) -> Iterator[Any]:
    yield from range(good)
    yield SECRET


def raising(good: int) -> Iterator[int]:
    yield from range(good)
    raise RuntimeError("the source broke")


class Breaking:
    """An Arrow stream whose producer fails after some batches."""

    def __init__(self, good: int) -> None:
        self._good = good

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        batch = pa.record_batch({"x": [1, 2, 3]})

        def batches() -> Iterator[Any]:
            for _ in range(self._good):
                yield batch
            raise ValueError(SECRET)

        return pa.RecordBatchReader.from_batches(batch.schema, batches()).__arrow_c_stream__(requested_schema)


TWINS: list[Callable[[dptop.SpaceSaving], dptop.SpaceSaving]] = [
    lambda summary: summary,
    copy.copy,
    copy.deepcopy,
    lambda summary: dptop.SpaceSaving.from_bytes(summary.to_bytes()),
    lambda summary: pickle.loads(pickle.dumps(summary)),
]


@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize(
    ("items", "error"),
    [
        (lambda: breaking(1), dptop.UnsupportedLabel),
        (lambda: breaking(65_535), dptop.UnsupportedLabel),
        (lambda: breaking(65_536), dptop.UnsupportedLabel),
        (lambda: breaking(200_000), dptop.UnsupportedLabel),
        (lambda: iter([SECRET]), dptop.UnsupportedLabel),
        (lambda: raising(0), RuntimeError),
        (lambda: raising(1), RuntimeError),
        (lambda: raising(100_000), RuntimeError),
        (lambda: Breaking(0), dptop.SourceError),
        (lambda: Breaking(1), dptop.SourceError),
        (lambda: Breaking(5), dptop.SourceError),
    ],
)
def test_a_stream_that_breaks_off_is_never_released(
    items: Callable[[], Any], error: type[Exception], twin: Callable[[dptop.SpaceSaving], dptop.SpaceSaving]
) -> None:
    """What was taken from an iterable or a stream cannot be put back: the summary refuses release, for good."""
    summary = dptop.SpaceSaving(10, budget=dptop.Budget(10.0, 1e-3))
    summary.update(1)
    with pytest.raises(error) as caught:
        summary.extend(items())
    if error is not RuntimeError:
        quotes_nothing(caught.value)
    for broken in (twin(summary), summary):
        with pytest.raises(dptop.SourceError, match="was cut short"):
            dptop.release(broken, epsilon=1.0, delta=1e-6)
        broken.extend([1, 2])
        with pytest.raises(dptop.SourceError, match="new summary"):
            dptop.release(broken, epsilon=1.0, delta=1e-6)
    assert not summary._ledger.entries


@pytest.mark.parametrize(
    ("items", "length", "error"),
    [
        (lambda: breaking(1), 2, dptop.UnsupportedLabel),
        (lambda: breaking(65_536), 65_537, dptop.UnsupportedLabel),
        (lambda: raising(1), 1, RuntimeError),
    ],
)
def test_a_weighed_stream_that_breaks_off_is_never_released(
    items: Callable[[], Any], length: int, error: type[Exception]
) -> None:
    """The same where weights come along and all items are looked at before the first is counted."""
    summary = dptop.SpaceSaving(10)
    summary.update(1)
    with pytest.raises(error):
        summary.extend(items(), weights=np.ones(length, int))
    with pytest.raises(dptop.SourceError, match="was cut short"):
        dptop.release(summary, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize(
    "items",
    [
        lambda: [1, SECRET],
        lambda: ("a",),
        lambda: np.array([1.5]),
        lambda: pa.array(["a"]),
        lambda: pa.chunked_array([["a"], ["b"]]),
        lambda: pl.Series(["a"]),
        lambda: pd.Series([1, "a"], dtype=object),
        lambda: "text",
        lambda: 5,
    ],
)
def test_a_batch_refused_whole_leaves_the_stream_whole(items: Callable[[], Any]) -> None:
    """An error before anything was counted or taken from an iterable changes nothing; the release is still there."""
    summary = dptop.SpaceSaving(10)
    summary.extend([1] * 100)
    state = summary.to_bytes()
    with pytest.raises((dptop.DptopError, RuntimeError)):
        summary.extend(items())
    with pytest.raises(dptop.DptopError):
        summary.update("a")
    with pytest.raises(dptop.DptopError):
        summary.update(1, -1)
    assert summary.to_bytes() == state
    assert [row.item for row in dptop.release(summary, epsilon=1.0, delta=1e-3)] == [1]


def test_errors_of_other_libraries_are_not_passed_on() -> None:
    """DuckDB quotes the value that it cannot cast, at the start or in the middle of a query; dptop does not."""
    duckdb.sql(f"create or replace table t as select if(i = 90000, '{SECRET}', '7') as c from range(100000) r(i)")
    for query in ("select c::int from t", f"select '{SECRET}'::int"):
        with pytest.raises(dptop.SourceError) as caught:
            dptop.SpaceSaving(10).extend(duckdb.sql(query))
        quotes_nothing(caught.value)


def test_an_interrupt_passes_through() -> None:
    """What is no error of the data, such as Ctrl-C inside a producer, is not turned into one."""

    class Interrupted:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dptop.SpaceSaving(10).extend(Interrupted())


def test_an_interruption_after_a_batch_was_counted_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C that is noticed when the counting returns: counted again, the items would count twice."""
    summary = dptop.SpaceSaving(10)
    native = summary._tables

    class Interrupted:
        def __getattr__(self, name: str) -> Any:
            return getattr(native, name)

        def extend(self, *arguments: Any) -> None:
            native.extend(*arguments)
            raise KeyboardInterrupt

    monkeypatch.setattr(summary, "_tables", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        summary.extend([1, 2])
    monkeypatch.undo()
    with pytest.raises(dptop.SourceError, match="was cut short"):
        dptop.release(summary, epsilon=1.0, delta=1e-6)


def test_a_summary_is_not_released_while_an_input_is_read() -> None:
    """A release in the middle would be one of a stream that was cut by position; the stream's own comes after."""
    summary = dptop.SpaceSaving(10)
    copies = []

    def items() -> Iterator[int]:
        yield from [1] * 70_000
        with pytest.raises(dptop.SourceError, match="being read"):
            dptop.release(summary, epsilon=1.0, delta=1e-6)
        copies.append(copy.copy(summary))
        yield from [1] * 70_000

    summary.extend(items())
    with pytest.raises(dptop.SourceError, match="cut short"):
        dptop.release(copies[0], epsilon=1.0, delta=1e-6)
    assert abs(dptop.release(summary, epsilon=1.0, delta=1e-6)[0].count - 140_000) < 100


@pytest.mark.parametrize(
    "array",
    [
        pa.Array.from_buffers(pa.binary(), 2, [None, pa.py_buffer(np.array([0, 5, 2], np.int32)), pa.py_buffer(b"ab")]),
        pa.Array.from_buffers(pa.utf8(), 2, [None, pa.py_buffer(np.array([0, 5, 2], np.int32)), pa.py_buffer(b"ab")]),
        pa.Array.from_buffers(
            pa.binary(), 2, [None, pa.py_buffer(np.array([0, 4000, 4], np.int32)), pa.py_buffer(b"abcd")]
        ),
        pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int32()), pa.array(["x", SECRET]), safe=False),
        pa.DictionaryArray.from_arrays(pa.array([0, -1], pa.int32()), pa.array([1, 2]), safe=False),
    ],
)
def test_arrow_data_that_points_outside_itself_is_refused(array: Any) -> None:
    """Offsets and codes are checked before they are followed, in an array and in a stream."""
    summary = dptop.SpaceSaving(10)
    for items in (array, pa.chunked_array([array])):
        with pytest.raises(dptop.SourceError) as caught:
            summary.extend(items)
        quotes_nothing(caught.value)
    assert not summary.private_counters()


def test_an_iterable_with_one_cursor_is_lost_by_an_error() -> None:
    """Whether an iterable starts again is not known: after an error it counts as lost."""

    class Once:
        rest = iter(["a", 1.5, "b"])

        def __iter__(self) -> Iterator[Any]:
            return self.rest

    summary = dptop.SpaceSaving(10)
    with pytest.raises(dptop.UnsupportedLabel):
        summary.extend(Once())
    with pytest.raises(dptop.SourceError, match="cut short"):
        dptop.release(summary, epsilon=1.0, delta=1e-6)


def test_what_was_taken_from_a_reader_of_arrow_batches_is_lost() -> None:
    """A reader whose first batch is refused has moved on: the summary is not released."""
    bad = pa.Array.from_buffers(pa.utf8(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")])
    batches = [pa.record_batch([column], ["x"]) for column in (bad, pa.array(["b"]))]
    summary = dptop.SpaceSaving(10)
    with pytest.raises(dptop.SourceError):
        summary.extend(pa.RecordBatchReader.from_batches(batches[0].schema, batches))
    with pytest.raises(dptop.SourceError, match="cut short"):
        dptop.release(summary, epsilon=1.0, delta=1e-6)


class Delegating:
    """An Arrow producer that hands over what a reader has left, as single-use streams do; it is no iterator."""

    def __init__(self, batches: list[Any]) -> None:
        self.reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.reader.__arrow_c_stream__(requested_schema)


def test_a_producer_of_one_stream_is_lost_by_an_error() -> None:
    """What has no length may be gone once it was handed over: too few weights, another kind of label."""
    batches = [pa.record_batch([pa.array([1, 2])], ["x"])]
    for weights in ([1], None):
        summary = dptop.SpaceSaving(10)
        summary.update("text")
        with pytest.raises(dptop.DptopError):
            summary.extend(Delegating(batches), weights=weights)
        with pytest.raises(dptop.SourceError, match="cut short"):
            dptop.release(summary, epsilon=1.0, delta=1e-6)


def test_a_terminal_that_was_read_is_lost_by_an_error() -> None:
    """A character device does not start again, though it is no pipe either."""
    controller, terminal = pty.openpty()
    try:
        os.write(controller, b"x,y\nlost,1\nragged\n\x04")
        summary = dptop.SpaceSaving(10)
        with pytest.raises(dptop.SourceError):
            summary.extend(dptop.read_labels(os.ttyname(terminal), column="x", format="csv"))
        assert not summary._releasable
    finally:
        os.close(controller)
        os.close(terminal)


def test_a_refused_list_closes_nothing_while_another_thread_counts() -> None:
    """What one input counted is told from what others count meanwhile."""
    summary = dptop.SpaceSaving(10)
    summary.update("a")
    stop = threading.Event()

    def count() -> None:
        while not stop.is_set():
            summary.update("a")

    thread = threading.Thread(target=count)
    thread.start()
    try:
        for _ in range(300):
            with pytest.raises(dptop.UnsupportedLabel):
                summary.extend(MANY)
    finally:
        stop.set()
        thread.join()
    assert summary._releasable


MANY = list(range(2000))


@pytest.mark.parametrize(
    "items",
    [
        pl.Series([None, None]),
        pl.DataFrame({"a": [None, None]}),
        pl.Series([], dtype=pl.Null),
        pa.nulls(2),
        pa.table({"a": pa.nulls(2)}),
        pa.chunked_array([pa.nulls(1), pa.nulls(1)]),
    ],
)
def test_a_column_of_nulls_counts_nothing(items: Any) -> None:
    """Polars gives a column of nulls another layout than pyarrow does."""
    summary = dptop.SpaceSaving(10)
    summary.extend(items)
    summary.extend(["a"])
    assert summary.private_counters() == [("a", 1)]


@pytest.mark.parametrize(
    "items",
    [
        pl.Series([{"a": "x"}]),
        pl.Series([1], dtype=pl.Int128),
        pa.StructArray.from_arrays([pa.array(["x"])], ["a"]),
        pa.chunked_array([pa.StructArray.from_arrays([pa.array(["x"])], ["a"])]),
        pa.table({"a": pa.StructArray.from_arrays([pa.array(["x"])], ["b"])}),
        pd.Series(pd.interval_range(0, 3)),
        pa.DictionaryArray.from_arrays(
            pa.array([0]), pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8()))
        ),
    ],
    ids=["struct", "Int128", "StructArray", "chunked struct", "struct in a table", "intervals", "dictionary of bool8"],
)
def test_a_nested_or_strange_column_is_told_to_be_cast(items: Any) -> None:
    """A table of one column stands for its column; a column of records is nested."""
    with pytest.raises(dptop.UnsupportedLabel, match="Cast"):
        dptop.SpaceSaving(10).extend(items)


def test_an_index_that_fails_says_nothing_of_its_own() -> None:
    """The words of an object's own error may quote it."""

    class Failing:
        def __index__(self) -> int:
            raise ValueError(SECRET)

    summary = dptop.SpaceSaving(10)
    failing: Any = Failing()
    with pytest.raises(dptop.UnsupportedLabel) as caught:
        summary.update(failing)
    quotes_nothing(caught.value)
    with pytest.raises(dptop.UnsupportedLabel) as caught:
        summary.extend([failing])
    quotes_nothing(caught.value)
    with pytest.raises(dptop.InvalidParameter) as refused:
        summary.update("a", weight=failing)
    quotes_nothing(refused.value)


def test_a_lone_surrogate_is_told_to_be_encoded() -> None:
    """Casting text to text is no remedy; lists and NumPy arrays say the same."""
    for items in (["\ud800"], np.array(["\ud800"])):
        with pytest.raises(dptop.UnsupportedLabel, match="surrogatepass"):
            dptop.SpaceSaving(10).extend(items)


@pytest.mark.parametrize("weights", [None, np.ones(4_000_000, int)], ids=["alone", "weighed"])
def test_an_error_just_after_counting_closes_the_summary(weights: Any) -> None:
    """A timeout that raises an ordinary error while the native side counts: what is counted again would count twice."""

    def expired(*_: object) -> None:
        raise TimeoutError

    items = np.random.default_rng(1).integers(0, 10**9, 4_000_000)
    summary = dptop.SpaceSaving(1000)
    before = signal.signal(signal.SIGALRM, expired)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(TimeoutError):
            summary.extend(items, weights=weights)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert summary._releasable == (summary._tables.length() == 0)


class HandsOverOnce:
    """A producer with a length that hands over once: a length says nothing about it."""

    def __init__(self, items: Any) -> None:
        self.array = items

    def __len__(self) -> int:
        return 3

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        array, self.array = self.array, pa.array([], pa.string())
        return array.__arrow_c_array__(requested_schema)


@pytest.mark.parametrize("weights", [None, [1], [1.5, 1.5, 1.5]])
def test_an_array_that_was_handed_over_and_refused_is_lost(weights: Any) -> None:
    """Of whatever makes the error: another kind, too few weights, weights that are none."""
    summary = dptop.SpaceSaving(10)
    summary.update(1)
    with pytest.raises(dptop.DptopError):
        summary.extend(HandsOverOnce(pa.array(["a", "b", "c"])), weights=weights)
    assert not summary._releasable


def test_weights_that_were_taken_from_an_iterator_are_lost_by_an_error() -> None:
    """The items can be read again, the weights are gone: the same call again would count something else."""
    summary = dptop.SpaceSaving(10)
    summary.update("a")
    with pytest.raises(dptop.InvalidParameter):
        summary.extend(["a", "b"], weights=iter([1, 2, 3]))
    assert not summary._releasable


def test_a_relation_over_a_reader_is_lost_by_an_error() -> None:
    """A DuckDB relation has a length, and may stand for what can be read once."""
    batches = [pa.record_batch({"x": ["a", "b"]})] * 3
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    summary = dptop.SpaceSaving(10)
    summary.update(1)
    with pytest.raises(dptop.UnsupportedLabel):
        summary.extend(duckdb.connect().from_arrow(reader))
    assert not summary._releasable


def test_standard_input_is_read_once() -> None:
    """What one summary has taken of it is missing to the next one."""
    script = (
        "import dptop; a, b = dptop.SpaceSaving(9), dptop.SpaceSaving(9)\n"
        "for s in (a, b):\n"
        " try: s.extend(dptop.read_labels('-')); print('read')\n"
        " except dptop.SourceError as error: print(error)\n"
        "print(a._releasable, b._releasable)"
    )
    done = subprocess.run([sys.executable, "-c", script], input=b"a\n" * 10, capture_output=True, check=True)
    assert done.stdout.splitlines()[0] == b"read"
    assert b"read once" in done.stdout
    assert done.stdout.endswith(b"True False\n")


def test_an_extension_over_a_dictionary_of_integers_is_refused() -> None:
    """Its name stands at the column, not at the dictionary's values."""
    storage = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array([5]))
    field = pa.field("x", storage.type, metadata={"ARROW:extension:name": "some.period"})
    table = pa.table([storage], pa.schema([field]))
    with pytest.raises(dptop.UnsupportedLabel, match=r"some\.period"):
        dptop.SpaceSaving(10).extend(table)


@pytest.mark.parametrize("path", ["missing", "", "a" * 5000, "a\0b", ".", "/dev/null/x"])
def test_a_file_that_is_not_there_loses_nothing(path: str) -> None:
    """A misspelt path can be spelt again."""
    summary = dptop.SpaceSaving(10)
    with pytest.raises(dptop.SourceError):
        summary.extend(dptop.read_labels(path))
    assert summary._releasable


@pytest.mark.parametrize("path", [123, None, b"x", ["a"], "\ud800"])
def test_what_is_no_path_is_refused(path: Any) -> None:
    """Nothing is opened."""
    with pytest.raises(dptop.InvalidParameter, match="path must be"):
        dptop.read_labels(path)
