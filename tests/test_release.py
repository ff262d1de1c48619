"""The one door from private to public: what passes it, in what order, with what noise, and what it says of itself."""

from __future__ import annotations

import copy
import csv
import gc
import io
import json
import math
import pickle
import random
import re
import types
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binomtest

import dptop
from containers import summary_of
from dptop import _native, noise
from dptop.mechanism import MECHANISMS, PAPER, PUBLIC_LABELS, StableThreshold
from dptop.oracle import LinearSketch
from dptop.parameters import shown
from dptop.privacy import PrivacyParameters, exact_epsilon, per_item
from dptop.reference import stable_threshold as reference
from dptop.release import PLANS
from dptop.search import smallest_by_bisection
from dptop.tie import Tie
from foreign_oracles import Exact
from saved import released_elsewhere, with_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from saved_frame import Label


def weighed(counts: dict[Any, int], capacity: int = 100, **parameters: Any) -> dptop.SpaceSaving:
    summary = dptop.SpaceSaving(capacity, **parameters)
    summary.extend(list(counts), weights=list(counts.values()))
    return summary


class Drawn(list[tuple[Fraction, int]]):
    """What `noise.draw` was asked for, in order."""


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """Make all noise zero, and note what was asked for."""
    drawn = Drawn()

    def zeros(epsilon: Fraction, count: int, seed: int | None = None) -> list[int]:
        drawn.append((epsilon, count))
        return [0] * count

    monkeypatch.setattr(noise, "draw", zeros)
    return drawn


# What is released


@pytest.mark.parametrize("tie", Tie)
@pytest.mark.parametrize(("capacity", "partitions"), [(1, 1), (30, 1), (30, 4), (500, 1), (500, 3)])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 7.0])
def test_a_release_is_that_of_the_twin(tie: Tie, capacity: int, partitions: int, epsilon: float) -> None:
    """From the same counters and the same noise the reference publishes the same minima, rows and intervals."""
    items = (np.random.default_rng(capacity).zipf(1.3, 20_000) % 300).astype(str).tolist()
    summary = with_key(dptop.SpaceSaving(capacity, tie=tie, partitions=partitions), bytes(8))
    summary.extend(items)
    tables = summary._tables
    _, snapshot = tables.snapshot()
    minima = [minimum for minimum, _ in snapshot]
    counts = [counters for _, counters in snapshot]
    labels = [tables.labels(p, list(range(len(counters)))) for p, counters in enumerate(counts)]
    result = dptop.release(summary, epsilon=epsilon, delta=1e-3, seed=17, confidence=0.9)

    offset = reference.smallest_offset(exact_epsilon(epsilon), Decimal("1e-3"), tie)
    draws = iter(noise.draw(exact_epsilon(epsilon), partitions + sum(map(len, counts)), 17))
    expected: list[tuple[Any, ...]] = []
    for p in range(partitions):
        minimum_noise = next(draws)
        u, rows = reference.release(
            dict(zip(labels[p], counts[p], strict=True)),
            minima[p],
            offset=offset,
            minimum_noise=minimum_noise,
            noise={label: next(draws) for label in labels[p]},
        )
        assert result.noisy_minimum[p] == u
        for label, v in rows.items():
            low, high = reference.interval(v, u, epsilon=exact_epsilon(epsilon), offset=offset, beta=Decimal(1 - 0.9))
            # around the noisy count also where the noisy minimum is negative
            expected.append((label, v, max(0, min(low, v)), max(high, 0)))
    assert list(result) == sorted(expected, key=lambda row: (-row[1], row[0].encode()))
    assert len(result.noisy_minimum) == partitions
    assert capacity < 300 or result.rows


def test_order_is_by_count_then_item_and_never_by_slot(silent: Drawn) -> None:
    """Two summaries with equal counters in other slots give equal rows."""
    counts: dict[Label, int] = {"b": 50, "a": 50, "é": 50, "B": 50, "": 70, "z": 40}
    first = dptop.release(weighed(counts), epsilon=1.0, delta=1e-6)
    second = dptop.release(weighed(dict(reversed(counts.items()))), epsilon=1.0, delta=1e-6)
    assert first.rows == second.rows
    assert [row.item for row in first] == ["", "B", "a", "b", "é", "z"]
    parted = dptop.release(weighed(counts, partitions=5), epsilon=1.0, delta=1e-6)
    assert parted.rows == first.rows
    numbers = dptop.release(weighed(dict.fromkeys([5, -7, 2**64 - 1, 0, 10], 60)), epsilon=1.0, delta=1e-6)
    assert [row.item for row in numbers] == [-7, 0, 5, 10, 2**64 - 1]


def test_order_follows_noisy_counts_not_counters() -> None:
    """Rows are sorted by what is published."""
    result = dptop.release(weighed(dict.fromkeys(range(50), 10_000)), epsilon=0.01, delta=1e-6)
    counts = [row.count for row in result]
    assert len(counts) == 50
    assert counts == sorted(counts, reverse=True)
    assert [row.item for row in result] != list(range(50))  # by chance once in 50!


def test_top_keeps_the_largest_noisy_counts() -> None:
    """The first rows of the whole release, be there fewer than asked for or none."""
    counts = {i: 1000 + 10 * i for i in range(30)}
    whole = dptop.release(weighed(counts), epsilon=0.1, delta=1e-6, seed=5)
    for top in (1, 7, 30, 31, 2**31):
        some = dptop.release(weighed(counts), epsilon=0.1, delta=1e-6, seed=5, top=top, simultaneous=False)
        assert some.rows == whole.rows[:top]
        assert some.noisy_minimum == whole.noisy_minimum
    assert len(whole) == 30


def test_the_comparison_of_the_mechanism_decides(silent: Drawn) -> None:
    """A label at the threshold is withheld, one above it is published; the minimum is 0 while a counter is free."""
    offset = StableThreshold.calibrate(epsilon=1.0, delta=1e-6).offset
    free = dptop.release(weighed({"at": offset, "above": offset + 1}), epsilon=1.0, delta=1e-6)
    assert ([row.item for row in free], free.noisy_minimum) == (["above"], (0,))
    full = dptop.release(weighed({"least": 7, "at": 7 + offset, "above": 8 + offset}, 3), epsilon=1.0, delta=1e-6)
    assert ([row.item for row in full], full.noisy_minimum) == (["above"], (7,))


def test_partitions_have_a_minimum_each_and_epsilon_whole(silent: Drawn) -> None:
    """Each partition publishes its own noisy minimum; every draw has all of epsilon; one draw per counter besides."""
    summary = weighed({i: 100 + i for i in range(40)}, 20, partitions=4)
    _, tables = summary._tables.snapshot()
    minima = tuple(minimum for minimum, _ in tables)
    tracked = sum(len(counts) for _, counts in tables)
    result = dptop.release(summary, epsilon=0.5, delta=1e-6)
    assert result.noisy_minimum == minima
    assert silent == [(Fraction(1, 2), 4 + tracked)]
    partly = weighed({1: 100}, 4, partitions=4)  # one is full, the others are empty
    assert sorted(dptop.release(partly, epsilon=0.5, delta=1e-6).noisy_minimum) == [0, 0, 0, 100]


def test_an_empty_stream_has_an_empty_release() -> None:
    """No rows, a noisy minimum, and a guarantee: nothing is an error."""
    for summary in (dptop.SpaceSaving(10), summary_of([None, None]), summary_of(pa.array([], pa.string()))):
        result = dptop.release(summary, epsilon=1.0, delta=1e-6, share=0.1)
        assert (len(result), list(result), result.to_dicts()) == (0, [], [])
        assert len(result.noisy_minimum) == 1
        assert "Guarantee" in result.explain()
        assert result.to_arrow().num_rows == result.to_polars().height == len(result.to_pandas()) == 0


# Share and length


@pytest.mark.parametrize(
    ("share", "length", "least"),
    [
        (0.1, 30, 3),
        (0.1, 31, 4),
        (0.1, 10**6, 10**5),
        (0.07, 100, 7),  # 0.07 * 100 is above 7 in floats
        (0.29, 100, 29),  # and 0.29 * 100 below 29
        (1 / 3, 3_000_000, 10**6),
        (1.0, 40, 40),
        (1, 40, 40),
        (1e-9, 40, 1),
        (np.float64(0.1), np.int64(2**60), -(-(2**60) // 10)),
    ],
)
@pytest.mark.parametrize("declared", [True, False])
def test_a_share_is_compared_in_whole_numbers(
    silent: Drawn, share: float, length: int, least: int, declared: bool
) -> None:
    """A share is the decimal that it is written as: a label with exactly that share passes, one item less does not."""
    offset = StableThreshold.calibrate(epsilon=1.0, delta=0.9).offset
    for count in (least - 1, least, least + 1):
        if offset < count <= length:
            rest = int(length) - count
            summary = weighed({"label": count} | ({"rest": rest} if rest else {}))
            bound = length if declared else None
            result = dptop.release(summary, epsilon=1.0, delta=0.9, share=share, length=bound)
            assert ("label" in [row.item for row in result]) == (count >= least)
            assert result.noisy_length == (None if declared else length)


def test_a_private_length_costs_two_percent(silent: Drawn) -> None:
    """Without a declared length epsilon is split: 2 % to the length, the rest to all else, delta to the labels."""
    epsilon = exact_epsilon(0.7)
    result = dptop.release(weighed({"a": 1000}), epsilon=0.7, delta=1e-6, share=0.01)
    (length, one), (labels, draws) = silent
    assert (one, draws) == (1, 2)
    assert length == math.floor(epsilon / 50 * 2**32) * Fraction(1, 2**32)
    assert length + labels == epsilon
    assert result.parameters["offset"] == StableThreshold.of(PrivacyParameters(labels, Decimal("1e-6"))).offset
    assert result.parameters["length_epsilon"] == float(length)
    assert result.epsilon == float(epsilon)
    silent.clear()
    dptop.release(weighed({"a": 1000}), epsilon=0.7, delta=1e-6, share=0.01, length=10**6)
    assert silent == [(epsilon, 2)]


def test_the_length_has_noise_of_its_own() -> None:
    """The noisy length is the length plus a draw that is not one of the counters' draws, seeded or not."""
    lengths = set()
    for _ in range(30):
        result = dptop.release(weighed({"a": 1000, "b": 1000}), epsilon=1.0, delta=1e-6, share=0.01)
        assert result.noisy_length is not None
        lengths.add(result.noisy_length)
    assert len(lengths) > 3  # scale 50: 30 draws take 3 values with chance below 1e-30
    for seed in range(20):
        seeded = dptop.release(weighed({"a": 10**6}), epsilon=1.0, delta=1e-6, share=0.01, seed=seed)
        z_length = (seeded.noisy_length or 0) - 10**6
        assert z_length == noise.draw(exact_epsilon(0.02), 1, seed + 2**63)[0]
        assert seeded.noisy_minimum[0] == noise.draw(Fraction(1) - exact_epsilon(0.02), 1, seed)[0]


def test_a_stream_longer_than_its_declared_length_is_not_released() -> None:
    """The guarantee would not cover it. The summary is closed: the length is not found by asking again."""
    summary = weighed({"a": 8731})
    with pytest.raises(dptop.InvalidParameter, match="length must bound") as caught:
        dptop.release(summary, epsilon=1.0, delta=1e-6, length=8730)
    assert "8731" not in str(caught.value)
    assert summary._ledger.entries
    for length in (8730, 8731, None):
        with pytest.raises(dptop.BudgetExhausted, match="asking again"):
            dptop.release(summary, epsilon=1.0, delta=1e-6, length=length)
    result = dptop.release(weighed({"a": 8731}), epsilon=1.0, delta=1e-6, length=8731)
    assert "at most 8731 items" in result.explain()


def test_a_copy_does_not_answer_for_the_length_again() -> None:
    """A bound that failed closes the stream's ledger: for copies and saved forms, from before and after."""
    summary = dptop.SpaceSaving(10, budget=dptop.Budget(60.0, 0.5))
    summary.extend(["a"] * 12345)
    before = summary.to_bytes(), copy.copy(summary)
    with pytest.raises(dptop.InvalidParameter, match="length must bound"):
        dptop.release(summary, epsilon=1.0, delta=1e-6, length=12344)
    after = dptop.SpaceSaving.from_bytes(summary.to_bytes())
    for twin in (dptop.SpaceSaving.from_bytes(before[0]), before[1], after, pickle.loads(pickle.dumps(summary))):
        with pytest.raises(dptop.BudgetExhausted, match="asking again"):
            dptop.release(twin, epsilon=1.0, delta=1e-6, length=12345)
    done = released_elsewhere(summary.to_bytes())
    assert b"BudgetExhausted" in done.stderr


# Many items of one unit


@pytest.mark.parametrize("c", [1, 2, 3, 10, 1000, 10**6])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-9), (0.1, 1e-2), (64.0, 0.5), (3.7, 1e-300)])
def test_group_privacy_gives_the_promise_back(epsilon: float, delta: float, c: int) -> None:
    """The item's loss c times over is within the total: c eps0 <= eps, delta0 (1 + ... + e^((c-1) eps0)) <= delta."""
    total = PrivacyParameters.of(epsilon, delta)
    item = per_item(total, c)
    assert item.epsilon * c <= total.epsilon
    assert item.epsilon * c > total.epsilon - c * Fraction(1, 2**32)
    assert (item.epsilon * 2**32).denominator == 1
    with localcontext() as context:
        context.prec = 200
        context.Emin, context.Emax = -(10**9), 10**9
        e0 = (Decimal(item.epsilon.numerator) / Decimal(item.epsilon.denominator)).exp()
        group = item.delta * (e0**c - 1) / (e0 - 1)
        assert group <= total.delta
        assert group > total.delta * (1 - Decimal("1e-20"))  # and no more is given away than rounding takes


def test_contributions_set_the_noise(silent: Drawn) -> None:
    """All that is drawn has the item's epsilon, and the threshold has the item's loss."""
    loss = per_item(PrivacyParameters.of(2.0, 1e-6), 5)
    result = dptop.release(weighed({"a": 10_000}), epsilon=2.0, delta=1e-6, max_contributions=5)
    assert silent == [(loss.epsilon, 2)]
    assert result.parameters["offset"] == StableThreshold.of(loss).offset
    assert result.unit == "all items of one unit, of total weight at most 5, added or removed anywhere"
    assert "dptop did not check it" in result.explain()
    assert (result.epsilon, result.delta) == (2.0, 1e-6)
    silent.clear()
    dptop.release(weighed({"a": 10_000}), epsilon=2.0, delta=1e-6, max_contributions=5, share=0.1)
    assert sum(epsilon for epsilon, _ in silent) == loss.epsilon


# The result


LABELS: dict[str, list[Any]] = {
    "integers": [5, -3, 2**62],
    "large integers": [5, 2**64 - 1],
    "integers on both sides": [-5, 2**64 - 1],
    "text": ["a", "", 'é,"quoted"\n\r\t\0 text', "=1+1", "\ufeffx"],
    "bytes": [b"a", b"", b"\xff\x00", b',"\n'],
}


def result_of(kind: str) -> dptop.Release:
    return dptop.release(
        weighed({label: 1000 + 100 * i for i, label in enumerate(LABELS[kind])}), epsilon=1.0, delta=1e-9
    )


@pytest.mark.parametrize("kind", LABELS)
def test_a_release_is_a_sequence_of_rows(kind: str) -> None:
    """Iteration, length, positions, unpacking, and dicts."""
    result = result_of(kind)
    assert len(result) == len(list(result)) == len(LABELS[kind])
    assert {row.item for row in result} == set(LABELS[kind])
    for row, entry in zip(result, result.to_dicts(), strict=True):
        item, count, low, high = row
        assert entry == {"item": item, "count": count, "low": low, "high": high}
        assert low <= count <= high
        assert type(item) is type(LABELS[kind][0])
    assert result[0] == next(iter(result))


@pytest.mark.parametrize("kind", LABELS)
def test_a_release_reads_back_from_every_frame(kind: str) -> None:
    """Arrow, Polars, pandas, DuckDB and Parquet hold equal rows."""
    result = result_of(kind)
    rows = [tuple(row) for row in result]
    tables = [result.to_arrow(), pa.table(result), pa.RecordBatchReader.from_stream(result).read_all()]
    for table in tables:
        assert table.column_names == ["item", "count", "low", "high"]
        assert [tuple(row.values()) for row in table.to_pylist()] == rows
    for frame in (result.to_polars(), pl.DataFrame(result)):
        assert frame.columns == ["item", "count", "low", "high"]
        assert frame.rows() == rows
    frame = result.to_pandas()
    assert list(frame.columns) == ["item", "count", "low", "high"]
    assert [tuple(row) for row in frame.to_numpy(dtype=object).tolist()] == rows
    kind_of_item: Any = type(rows[0][0])  # integers on both sides of the signed range are decimals to DuckDB
    relation: Any = duckdb.sql("select * from result")  # it finds the release by its name
    assert [(kind_of_item(item), *numbers) for item, *numbers in relation.fetchall()] == rows


def test_counts_of_any_size_fit() -> None:
    """A noisy count above the signed range is a number in every format."""
    summary = weighed({"a": 2**63 - 1})
    result = dptop.release(summary, epsilon=2.0**-10, delta=0.1, seed=2)
    assert result[0].count > 2**63
    assert result.to_arrow()["count"].to_pylist() == [result[0].count]
    assert json.loads(next(iter(result.json_lines())))["count"] == result[0].count


@pytest.mark.parametrize("kind", LABELS)
def test_a_release_reads_back_from_every_file(kind: str, tmp_path: Path) -> None:
    """CSV, JSON, JSON lines and Parquet: labels with quotes, newlines and NUL too."""
    result = result_of(kind)
    rows = [tuple(row) for row in result]
    result.to_csv(tmp_path / "a.csv")
    result.to_json(tmp_path / "a.json")
    result.to_jsonl(tmp_path / "a.jsonl")
    result.to_parquet(tmp_path / "a.parquet")

    codec = "latin-1" if kind == "bytes" else "utf-8"
    with (tmp_path / "a.csv").open(encoding=codec, newline="") as file:
        header, *lines = csv.reader(file)
    assert header == ["item", "count", "low", "high"]
    kinds: dict[type, Callable[[str], Any]] = {int: int, str: str, bytes: lambda cell: cell.encode("latin-1")}
    read = kinds[type(rows[0][0])]
    assert [(read(cell), *map(int, numbers)) for cell, *numbers in lines] == rows

    objects = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert [json.loads(line) for line in (tmp_path / "a.jsonl").read_bytes().splitlines()] == objects
    assert [tuple(entry.values())[1:] for entry in objects] == [row[1:] for row in rows]
    if kind != "bytes":
        assert [entry["item"] for entry in objects] == [row[0] for row in rows]
    assert [tuple(row.values()) for row in pq.read_table(tmp_path / "a.parquet").to_pylist()] == rows


class TakesThree:
    """An object that takes three bytes at a time, as one without a buffer may."""

    taken = b""

    def write(self, content: bytes) -> int:
        self.taken += content[:3]
        return len(content[:3])


class Answers:
    """An object that answers a write with something."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def write(self, content: bytes) -> object:
        return self.answer


def test_a_release_is_written_to_an_open_file(tmp_path: Path) -> None:
    """An object open for bytes gets what a path gets, and stays open; text files and what is no file are refused."""
    result = result_of("text")
    for write in (result.to_csv, result.to_json, result.to_jsonl, result.to_parquet):
        write(tmp_path / "file")
        out = io.BytesIO()
        write(out)
        assert out.getvalue() == (tmp_path / "file").read_bytes()
        part_by_part = TakesThree()
        write(part_by_part)  # type: ignore[arg-type]  # all of it that is used
        assert part_by_part.taken == (tmp_path / "file").read_bytes()
        for refused in (0, -1, 10**6):
            with pytest.raises(dptop.SourceError, match="takes no more"):
                write(Answers(refused))  # type: ignore[arg-type]  # all of it that is used
        for answer in (None, True):
            write(Answers(answer))  # type: ignore[arg-type]  # all of it that is used
        with pytest.raises(dptop.InvalidParameter, match="file must be"):
            write(Answers("a promise"))  # type: ignore[arg-type]  # all of it that is used
        with (tmp_path / "file").open("rb") as reading, (tmp_path / "text").open("w") as text:
            for other in (io.StringIO(), reading, text, 3, None, [b""]):
                with pytest.raises(dptop.InvalidParameter, match=r"file must be a path or .*; got \w+\. Open"):
                    write(other)  # type: ignore[arg-type]


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """By its name."""
    result = result_of("text")
    for write in (result.to_csv, result.to_json, result.to_jsonl, result.to_parquet):
        with pytest.raises(dptop.SourceError, match="cannot be written"):
            write(tmp_path / "missing" / "file")


def test_shortened_labels_leave_in_every_format(tmp_path: Path) -> None:
    """A long label is its prefix and digest in rows and JSON, and one marked text elsewhere."""
    summary = weighed({"x" * 100: 1000, "short": 900}, max_label_bytes=64)
    result = dptop.release(summary, epsilon=1.0, delta=1e-9)
    (label,) = [row.item for row in result if isinstance(row.item, dptop.ShortenedLabel)]
    assert label.prefix == "x" * 32
    assert set(result.to_arrow()["item"].to_pylist()) == {label.plain(), "short"}
    assert set(result.to_polars()["item"]) == set(result.to_pandas()["item"]) == {label.plain(), "short"}
    result.to_csv(tmp_path / "a.csv")
    assert label.sha256.hex() in (tmp_path / "a.csv").read_text("utf-8")
    (entry,) = [entry for entry in map(json.loads, result.json_lines()) if "prefix" in entry]
    assert (entry["prefix"], entry["sha256"]) == (label.prefix, label.sha256.hex())


def test_attributes() -> None:
    """What was asked for and what follows from it, all public."""
    result = dptop.release(weighed({"a": 1000}), epsilon=1, delta=1e-9, top=3, confidence=0.9)
    assert (result.epsilon, result.delta, result.mechanism, result.private) == (1.0, 1e-9, "stable-threshold", True)
    assert result.unit == "one item of the stream, added or removed anywhere"
    assert isinstance(result.noisy_minimum, tuple)
    assert result.noisy_length is None
    assert result.parameters["capacity"] == 100
    assert result.parameters["tie"] == "least-recent"
    assert result.parameters["offset"] == StableThreshold.calibrate(epsilon=1.0, delta=1e-9).offset
    assert result.parameters["scale"] == 1.0


def releases() -> Iterator[dptop.Release]:
    """Yield a release by each mechanism of each summary, of a tracked oracle of another library too."""
    kinds: dict[type[Any], Callable[[], list[Any]]] = {
        dptop.SpaceSaving: lambda: [dptop.SpaceSaving(100)],
        dptop.MisraGries: lambda: [dptop.MisraGries(100)],
        dptop.Tracked: lambda: [dptop.Tracked(oracle, 100) for oracle in (dptop.CountMin(64, 3), Exact())],
        LinearSketch: lambda: [dptop.CountMin(64, 3), dptop.CountSketch(64, 3)],
        dptop.Sharded: lambda: [dptop.Sharded([dptop.SpaceSaving(100), dptop.SpaceSaving(50, "most-recent")])],
    }
    assert set(kinds) == set(PLANS)
    for kind, mechanisms in PLANS.items():
        for mechanism in mechanisms:
            options: dict[str, Any] = {"share": 0.1} if mechanism == PAPER else {}
            options |= {"labels": ["a"]} if mechanism == PUBLIC_LABELS else {}
            for summary in kinds[kind]():
                (summary.shards[1] if isinstance(summary, dptop.Sharded) else summary).extend(["a"], [1000])
                yield dptop.release(summary, epsilon=1, delta=1e-6, mechanism=mechanism, length=5000, **options)


def test_every_parameter_is_documented() -> None:
    """The docstring of `Release` lists the keys of `parameters`, in their order; they cannot be changed."""
    documented = re.findall(r"^ +- `(\w+)`: .*[.;]", dptop.Release.__doc__ or "", re.MULTILINE)
    found, mechanisms = set(), set()
    for result in releases():
        assert list(result.parameters) == [key for key in documented if key in result.parameters], result.mechanism
        found |= set(result.parameters)
        mechanisms.add(result.mechanism)
        with pytest.raises(TypeError):
            result.parameters["capacity"] = 1  # type: ignore[index]
    assert found == set(documented)
    assert mechanisms == set(MECHANISMS)


def test_epsilon_is_reported_as_it_is_kept() -> None:
    """Rounded down to the grid of 2^-32: never more than was asked for."""
    result = dptop.release(weighed({"a": 1000}), epsilon=0.1, delta=1e-9)
    assert result.epsilon == float(exact_epsilon(0.1)) < 0.1


def reachable(start: object) -> list[object]:
    """Return every object that can be reached from `start`, classes, modules and functions left out."""
    seen: dict[int, object] = {}
    rest = [start]
    while rest:
        thing = rest.pop()
        if id(thing) in seen or isinstance(thing, (type, types.ModuleType, types.FunctionType)):
            continue
        seen[id(thing)] = thing
        rest += gc.get_referents(thing)
    return list(seen.values())


def test_a_release_holds_nothing_raw() -> None:
    """Neither the object nor its pickle leads to the summary, its ledger or a label that was not released."""
    summary = weighed({"published": 100_000, "withheld-8731": 1}, partitions=2)
    result = dptop.release(summary, epsilon=1.0, delta=1e-9)
    assert [row.item for row in result] == ["published"]
    things = reachable(result)
    assert not any(isinstance(thing, (dptop.SpaceSaving, _native.Counters, type(summary._ledger))) for thing in things)
    assert summary._tables.identity not in things
    assert "withheld-8731" not in things
    assert any(isinstance(thing, _native.Counters) for thing in reachable(summary))  # the search finds one
    data = pickle.dumps(result)
    assert b"published" in data
    assert b"withheld" not in data
    assert summary._tables.identity not in data
    for twin in (pickle.loads(data), copy.copy(result), copy.deepcopy(result)):
        assert twin == result
        assert twin.explain() == result.explain()


# The guarantee in words


def test_explain_says_what_is_promised() -> None:
    """Unit, epsilon, delta, mechanism, scale, threshold rule, interval meaning, and limits."""
    text = dptop.release(weighed({"a": 1000}), epsilon=0.5, delta=1e-9, top=7, confidence=0.9).explain()
    offset = StableThreshold.calibrate(epsilon=0.5, delta=1e-9).offset
    for fact in (
        "one item of the stream, added or removed anywhere",
        "(0.5, 1e-09)-differential privacy",
        "replacing an item",
        "SpaceSaving, capacity 100",
        "least-recent",
        "discrete Laplace of scale 2",
        f"more than {offset}",
        "probability 0.9",
        "the 7 with the largest noisy counts",
        "timing",
    ):
        assert fact in text
    assert "NOT PRIVATE" not in text


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
def test_a_seed_makes_a_release_not_private(seed: int) -> None:
    """It repeats, and says what that means, in its words and in its flag."""
    results = [dptop.release(weighed({"a": 1000}), epsilon=0.1, delta=1e-9, seed=seed) for _ in range(2)]
    assert results[0] == results[1]
    assert results[0].private is False
    assert results[0].explain().startswith("NOT PRIVATE")
    assert "entropy" not in results[0].explain()
    fresh = dptop.release(weighed({"a": 1000}), epsilon=0.1, delta=1e-9)
    assert fresh.private is True
    assert "entropy" in fresh.explain()


def test_explain_tells_nothing_private(silent: Drawn) -> None:
    """Streams that differ in all that is private, and agree in what is published, have the same words."""
    one = weighed({"a": 50_000, "b": 40_000, **{f"other {i}": 3 for i in range(80)}})
    two = weighed({"x": 300})
    arguments: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-9, "share": 0.001, "length": 10**6, "top": 5}
    first, second = (dptop.release(summary, **arguments) for summary in (one, two))
    assert first.noisy_minimum == second.noisy_minimum
    assert first.rows != second.rows
    assert first.explain() == second.explain()
    assert first.parameters == second.parameters


def test_explain_shows_the_published_minima_of_partitions() -> None:
    """The threshold of each partition is its own."""
    result = dptop.release(weighed(dict.fromkeys(range(100), 1000), 20, partitions=3), epsilon=1.0, delta=1e-9)
    assert "minimum of its partition" in result.explain()
    assert ", ".join(map(str, result.noisy_minimum)) in result.explain()


# Bad parameters


BAD: list[tuple[str, Any]] = [
    *[
        ("epsilon", value)
        for value in (0, -1, math.nan, math.inf, "abc", True, None, 2.0**-21, 64.1, [1], np.True_, Decimal("0.1"))
    ],
    ("epsilon", Fraction(2**60 - 1, 2**60)),  # the nearest float is above it
    *[("delta", value) for value in (0, -1, math.nan, math.inf, 2, 1, "abc", True, None, np.True_, Fraction(1, 3))],
    *[("top", value) for value in (0, -1, 10**12, 2.5, "5", True, math.nan)],
    *[("share", value) for value in (0, -0.1, 1.1, math.nan, math.inf, "0.1", True)],
    *[("length", value) for value in (0, -1, 2.5, "5", True, 2**63)],
    *[("max_contributions", value) for value in (0, -1, 2.5, "5", True, None, 10**12)],
    *[("confidence", value) for value in (0, 1, -1, 95, math.nan, "0.9", True, None, 1e-300, 1 - 2.0**-60)],
    *[("mechanism", value) for value in ("best", "", 1, "Stable-Threshold")],
    *[("seed", value) for value in (-1, 2.5, "1", True, 2**63)],
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_parameter_out_of_range_is_refused(name: str, value: Any) -> None:
    """The message names the parameter, its rule, the value and a remedy; nothing is spent."""
    summary = weighed({"a": 1000})
    with pytest.raises(dptop.InvalidParameter, match=f"^{name} must") as caught:
        dptop.release(summary, **({"epsilon": 1.0, "delta": 1e-9} | {name: value}))
    assert shown(value) in str(caught.value)
    assert str(caught.value).endswith(".")
    assert isinstance(caught.value, ValueError)
    assert not summary._ledger.entries


@pytest.mark.parametrize("value", [None, "summary", [1, 2], StableThreshold])
def test_only_a_summary_is_released(value: Any) -> None:
    """Raw items are counted first."""
    with pytest.raises(dptop.InvalidParameter, match="summary must be"):
        dptop.release(value, epsilon=1.0, delta=1e-9)


def test_numbers_of_numpy_are_numbers() -> None:
    """They are taken as what they are, and leave no trace in the result."""
    arguments: dict[str, Any] = {
        "epsilon": np.float64(1),
        "delta": np.float32(0.25),
        "top": np.int64(3),
        "share": np.float64(0.5),
        "length": np.uint64(2**62),
        "max_contributions": np.int8(2),
        "confidence": np.float64(0.9),
    }
    result = dptop.release(weighed({"a": 1000}), **arguments)
    for value in result.parameters.values():
        assert type(value) in (int, float, str, bool, type(None))
    assert b"numpy" not in pickle.dumps(result)


def test_items_counted_during_a_release_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that goes on while it is released gives no result; the release is spent."""
    original = noise.draw
    for more in ([1], [5, 6, 7]):
        summary = weighed(dict.fromkeys(range(4), 1000), 5)

        def meanwhile(
            epsilon: Fraction,
            count: int,
            seed: int | None = None,
            summary: dptop.SpaceSaving = summary,
            more: Sequence[int] = more,
        ) -> list[int]:
            summary.extend(more)
            return original(epsilon, count, seed)

        monkeypatch.setattr(noise, "draw", meanwhile)
        with pytest.raises(dptop.SourceError, match="meanwhile"):
            dptop.release(summary, epsilon=1.0, delta=1e-9)
        with pytest.raises(dptop.BudgetExhausted):
            dptop.release(summary, epsilon=1.0, delta=1e-9)


# Intervals, end to end


def covered(
    streams: Sequence[list[int]],
    epsilon: float,
    confidence: float,
    low: Callable[[dptop.Release, int], int],
    first: int,
) -> Any:
    """Release every stream; return for each how many labels from `first` on came out, and how many intervals hold."""
    found = []
    for number, stream in enumerate(streams):
        true = Counter(stream)
        result = dptop.release(summary_of(stream, 12), epsilon=epsilon, delta=0.05, confidence=confidence, seed=number)
        rows = [i for i in range(len(result)) if result[i].item in range(first, 1000)]
        holds = sum(low(result, i) <= true[result[i].item] <= result[i].high for i in rows)  # type: ignore[index]
        found.append((len(rows), holds))
    return np.array(found)


def streams_near_the_threshold(count: int, epsilon: float) -> list[list[int]]:
    """Return streams whose last labels end a little above the minimum of a full table, where selection bites."""
    generator = random.Random(f"near {epsilon}")
    offset = StableThreshold.calibrate(epsilon=epsilon, delta=0.05).offset
    level = offset + int(20 / epsilon)
    out = []
    for _ in range(count):
        settled = [label for label in range(10) for _ in range(level)]
        heavy = [10] * (level + generator.randrange(10, 200)) + [11] * (level + 2 * offset)
        generator.shuffle(settled)
        late = [label for label in range(100, 105) for _ in range(max(1, offset - generator.randrange(3)))]
        generator.shuffle(late)
        out.append(settled + heavy + late)
    return out


def random_streams(count: int, epsilon: float) -> list[list[int]]:
    generator = np.random.default_rng(int(1000 * epsilon))
    length = int(600 / epsilon)
    return [(generator.zipf(1.4, length) % 60).tolist() for _ in range(count)]


def worst(found: Any, confidence: float) -> float:
    """Return by how many standard errors the intervals hold less often than promised; runs are independent."""
    excess = found[:, 1] - confidence * found[:, 0]
    return float(-excess.mean() / (excess.std() / math.sqrt(len(excess)) + 1e-12))


@pytest.mark.parametrize(
    ("make", "first"), [(streams_near_the_threshold, 100), (streams_near_the_threshold, 0), (random_streams, 0)]
)
@pytest.mark.parametrize(("epsilon", "runs"), [(1.0, 1500), (0.1, 300)])
def test_intervals_cover_the_true_counts_of_released_labels(
    make: Callable[[int, float], list[list[int]]],
    first: int,
    epsilon: float,
    runs: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the labels that are released from simulated streams at least the promised part has its true count inside."""
    monkeypatch.setattr(StableThreshold, "of", staticmethod(lru_cache(StableThreshold.of)))  # one calibration
    streams = make(runs, epsilon)
    for confidence in (0.5, 0.95):
        found = covered(streams, epsilon, confidence, lambda result, i: result[i].low, first)
        assert found[:, 0].sum() > runs / 3
        z = worst(found, confidence)
        assert z < 4.76, f"{found.sum(0)} (released, inside) at confidence {confidence}: {z} errors; false once in 10^6"


def test_a_lower_end_that_forgets_the_selection_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same simulation refuses as a lower end the count minus the minimum minus a quantile of their noise."""
    monkeypatch.setattr(StableThreshold, "of", staticmethod(lru_cache(StableThreshold.of)))
    epsilon = exact_epsilon(1.0)
    q = smallest_by_bisection(lambda g: noise.difference_tail(epsilon, g) <= Decimal("0.25"))

    def forgetful(result: dptop.Release, i: int) -> int:
        return max(0, result[i].count - result.noisy_minimum[0] - q)

    found = covered(streams_near_the_threshold(1500, 1.0), 1.0, 0.5, forgetful, 100)
    assert worst(found, 0.5) > 4.76


@pytest.mark.parametrize("partitions", [1, 3])
def test_simultaneous_intervals_hold_together_whatever_is_picked(
    partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All intervals hold at once with the promised probability, also of the top labels, which high noise has raised."""
    monkeypatch.setattr(StableThreshold, "of", staticmethod(lru_cache(StableThreshold.of)))  # one calibration
    confidence, runs, held = 0.5, 1500, 0
    counts: dict[Any, int] = dict.fromkeys(range(30), 100)
    for _ in range(runs):
        summary = weighed(counts, 31 * partitions, partitions=partitions)
        result = dptop.release(summary, epsilon=1.0, delta=1e-6, top=3, confidence=confidence, simultaneous=True)
        assert len(result) == 3
        held += all(row.low <= counts[row.item] <= row.high for row in result)
    assert "at once" in result.explain()
    chance = binomtest(held, runs, confidence, alternative="less").pvalue
    assert chance > 1e-6, f"{held} of {runs} at confidence {confidence}: a false alarm once in 10^6"


# The promise, measured from outside


Event = tuple[bool, ...]
RUNS, DELTA = 8_000, 0.02


def audited(stream: list[int], capacity: int, tie: Tie, events: Callable[[dptop.Release], Event]) -> Any:
    """Return how often each event happens in fresh releases of fresh summaries of a stream."""
    total: Any = 0
    for _ in range(RUNS):
        result = dptop.release(summary_of(stream, capacity, tie=tie), epsilon=1.0, delta=DELTA)
        total = total + np.array(events(result))
    return total


def excess(
    long: list[int], short: list[int], capacity: int, tie: Tie, events: Callable[[dptop.Release], Event]
) -> float:
    """Return the largest P[E] - e^epsilon P'[E] - delta over events, both directions, in standard errors."""
    p, q = (audited(stream, capacity, tie, events) / RUNS for stream in (long, short))
    largest = -math.inf
    for a, b in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)):
        error = np.sqrt((a * (1 - a) + math.e**2 * b * (1 - b) + 1 / RUNS) / RUNS)
        largest = max(largest, float(((a - math.e * b - DELTA) / error).max()))
    return largest


LIMIT = 5.6
"""Standard errors: one of 40 events in both directions exceeds it by chance less than once in 10^6 audits."""


def events_of_a_new_label(result: dptop.Release) -> Event:
    items = {row.item for row in result}
    at_most = [result.noisy_minimum[0] <= 20 + i for i in (-3, -1, 0, 1, 3)]
    return (99 in items, 0 in items, 99 in items and at_most[2], not items, *at_most)


def events_of_the_minimum(result: dptop.Release) -> Event:
    u = result.noisy_minimum[0]
    return (u >= 21, u >= 20, u >= 22, u >= 18, bool(result.rows), u >= 21 and bool(result.rows))


def events_of_a_counter(result: dptop.Release) -> Event:
    counts = {row.item: row.count for row in result}
    v = counts.get(1, 0)
    return (v >= 60, v >= 61, v >= 62, 1 in counts, v >= 61 and result.noisy_minimum[0] <= 20)


FULL = [label for label in range(3) for _ in range(20)]
NEIGHBOURS: dict[str, tuple[list[int], list[int], int, Callable[[dptop.Release], Event]]] = {
    # three labels at 20; one new label takes the place of one of them, at 21
    "a new label": ([*FULL, 99], FULL, 3, events_of_a_new_label),
    # one of two labels is alone at the minimum, and the item lifts the minimum
    "the minimum": ([0] * 60 + [1] * 21, [0] * 60 + [1] * 20, 2, events_of_the_minimum),
    # one counter far above the minimum has one item more
    "a counter": ([*FULL, *[1] * 41], [*FULL, *[1] * 40], 3, events_of_a_counter),
}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calibrate once: the mechanism is a pure function of its parameters."""
    monkeypatch.setattr(StableThreshold, "of", staticmethod(lru_cache(StableThreshold.of)))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", NEIGHBOURS)
@pytest.mark.parametrize("tie", Tie)
def test_releases_of_neighbours_are_hard_to_tell_apart(name: str, tie: Tie) -> None:
    """Thousands of public releases of two neighbours keep P[E] <= e^epsilon P'[E] + delta for telling events."""
    long, short, capacity, events = NEIGHBOURS[name]
    found = excess(long, short, capacity, tie, events)
    assert found < LIMIT, f"{found} standard errors above delta; false once in 10^6 audits, so look for a cause"


def with_a_lower_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StableThreshold, "keeps", lambda self, v, u: v - u > self.offset - 1)


def with_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = noise.draw
    monkeypatch.setattr(noise, "draw", lambda epsilon, count, seed=None: draw(2 * epsilon, count, seed))


def without_noise_on_the_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = noise.draw
    monkeypatch.setattr(noise, "draw", lambda epsilon, count, seed=None: [0, *draw(epsilon, count - 1, seed)])


def with_one_noise_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = noise.draw
    monkeypatch.setattr(noise, "draw", lambda epsilon, count, seed=None: draw(epsilon, 1, seed) * count)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("broken", "name"),
    [
        (with_a_lower_threshold, "a new label"),
        (with_half_the_noise, "the minimum"),
        (with_half_the_noise, "a counter"),
        (without_noise_on_the_minimum, "the minimum"),
        (with_one_noise_for_all, "a counter"),
    ],
)
def test_a_weaker_release_is_told_apart(
    broken: Callable[[pytest.MonkeyPatch], None], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same audit fails for a lower threshold, half the noise, none on the minimum, or a shared one."""
    broken(monkeypatch)
    long, short, capacity, events = NEIGHBOURS[name]
    assert excess(long, short, capacity, Tie.LEAST_RECENT, events) > LIMIT


@pytest.mark.usefixtures("quick")
def test_an_isolated_label_is_published_as_rarely_as_the_offset_says() -> None:
    """A label that only one neighbour tracks comes out with the exact chance P(G), which is at most delta."""
    mechanism = StableThreshold.calibrate(epsilon=1.0, delta=DELTA)
    long, _, capacity, events = NEIGHBOURS["a new label"]
    count = int(audited(long, capacity, Tie.LEAST_RECENT, events)[0])
    chance = float(mechanism.failure_probability)
    assert chance <= DELTA
    p = binomtest(count, RUNS, chance).pvalue
    assert p > 1e-6, f"{count} of {RUNS} at chance {chance}; false once in 10^6, so look for a cause"
