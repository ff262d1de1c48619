"""What is released of parts that were counted apart: both forms and their twin, options, many shards, empty ones."""

from __future__ import annotations

import math
import sys
import weakref
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import dptop
from containers import summary_of
from dptop import noise
from dptop.mechanism import CENTRAL_COUNTS, LOCAL_SUMS, StableThreshold
from dptop.noise import COUNTS_SEED, NEXT_SHARD
from dptop.privacy import exact_epsilon
from dptop.reference import sharded as reference
from dptop.reference import stable_threshold
from dptop.release import sharded
from dptop.tie import Tie
from shard_makers import ASK, FORMS, shards_of, weighed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make all noise zero."""
    monkeypatch.setattr(noise, "draw", lambda epsilon, count, seed=None: [0] * count)


SHAPES: list[list[dict[str, Any]]] = [
    [{"capacity": 40}, {"capacity": 40}],
    [{"capacity": 30, "tie": "most-recent"}, {"capacity": 400, "partitions": 3}, {"capacity": 1}],
    [{"capacity": 20, "partitions": 4}] * 5 + [{"capacity": 500, "tie": "most-recent", "partitions": 2}],
]


@pytest.mark.parametrize("partition", ["as-stored", "label"])
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("form", FORMS)
def test_both_forms_are_those_of_the_twin(
    form: str, epsilon: float, shapes: list[dict[str, Any]], partition: str
) -> None:
    """From the same counters and draws the reference publishes the same minima, rows and intervals."""
    generator = np.random.default_rng(len(shapes))
    parts = [summary_of((generator.zipf(1.3, 6000) % 200).astype(str).tolist(), **shape) for shape in shapes]
    result = dptop.release(
        dptop.Sharded(parts, partition), epsilon=epsilon, delta=1e-3, mechanism=form, seed=23, confidence=0.9
    )

    whole = exact_epsilon(epsilon)
    selection = whole if form == LOCAL_SUMS else Fraction(math.floor(whole / 2 * 2**32), 2**32)
    sizes = [-(-s["capacity"] // s.get("partitions", 1)) for s in shapes for _ in range(s.get("partitions", 1))]
    raw = [[(m, c, part._labels(p, range(len(c)))) for p, (m, c) in enumerate(part._snapshot()[1])] for part in parts]
    tables = []
    for number, (part, of_part) in enumerate(zip(parts, raw, strict=True)):
        draws = iter(noise.draw(selection, sum(1 + len(c) for _, c, _ in of_part), 23 + number * NEXT_SHARD))
        offset = stable_threshold.smallest_offset(selection, Decimal("1e-3"), part.tie)
        tables.append(
            [
                reference.Table(
                    counters=dict(zip(labels, counts, strict=True)),
                    minimum=minimum,
                    offset=offset,
                    minimum_noise=next(draws),
                    noise={label: next(draws) for label in labels},
                )
                for minimum, counts, labels in of_part
            ]
        )
    chosen = reference.choose(tables)
    beta, elsewhere = Decimal(1 - 0.9), partition == "as-stored"
    if form == LOCAL_SUMS:
        counts = reference.local_sums(tables)
        ends = {
            x: reference.local_interval(x, chosen, epsilon=whole, sizes=sizes, beta=beta, elsewhere=elsewhere)
            for x in counts
        }
    else:
        found = sorted({x for shard in chosen for table in shard for x in table.v}, key=lambda x: str(x).encode())
        more = noise.draw(whole - selection, len(found), 23 + COUNTS_SEED)
        counts = reference.central_counts(tables, dict(zip(found, more, strict=True)))
        ends = {
            x: reference.central_interval(
                x,
                count,
                chosen,
                selection_epsilon=selection,
                count_epsilon=whole - selection,
                sizes=sizes,
                beta=beta,
                elsewhere=elsewhere,
            )
            for x, count in counts.items()
        }
    expected = sorted(((x, v, *ends[x]) for x, v in counts.items()), key=lambda row: (-row[1], str(row[0]).encode()))
    assert [tuple(row) for row in result] == expected
    assert result.noisy_minimum == tuple(table.u for shard in chosen for table in shard)
    assert len(result) > 3


@pytest.mark.parametrize("tie", Tie)
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("partition", ["as-stored", "label"])
def test_one_shard_is_the_plain_release(tie: Tie, partitions: int, partition: str) -> None:
    """With the same draws a single shard has the rows, minima and simultaneous intervals of its own release."""
    items = (np.random.default_rng(3).zipf(1.3, 20_000) % 300).tolist()
    summary = summary_of(items, 60, tie=tie, partitions=partitions)
    twin = dptop.SpaceSaving.from_bytes(summary.to_bytes())
    twin._ledger = type(twin._ledger)(b"another stream, for this test")
    plain = dptop.release(summary, **ASK, seed=5, simultaneous=True)
    alone = dptop.release(dptop.Sharded([twin], partition), **ASK, seed=5)
    assert len(plain) > 5
    assert alone.rows == plain.rows
    assert alone.noisy_minimum == plain.noisy_minimum
    assert alone.mechanism == LOCAL_SUMS


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("form", FORMS)
def test_a_shard_that_did_not_select_a_label_adds_nothing(form: str) -> None:
    """Counters of shards that track a label and did not select it are never added: that would not be private."""
    offset = StableThreshold.calibrate(epsilon=1.0 if form == LOCAL_SUMS else 0.5, delta=1e-6).offset
    parts = [weighed({"a": 1000}), weighed({"a": offset, "b": 500}), weighed({"a": offset + 1})]
    result = dptop.release(dptop.Sharded(parts), **ASK, mechanism=form)
    assert {row.item: row.count for row in result} == {"a": 1000 + offset + 1, "b": 500}
    assert result[0].high >= 1000 + 2 * offset + 1


def test_the_form_goes_by_the_number_of_shards() -> None:
    """Up to four shards, or with every label in one shard, local sums; above that central counts."""
    cases = [(1, "as-stored", LOCAL_SUMS), (4, "as-stored", LOCAL_SUMS), (5, "as-stored", CENTRAL_COUNTS)]
    for number, partition, form in (*cases, (5, "label", LOCAL_SUMS)):
        result = dptop.release(dptop.Sharded(shards_of(number), partition), **ASK)
        assert result.mechanism == form
        assert result.parameters["partition"] == partition
        assert result.parameters["shards"] == number
    explained = dptop.release(dptop.Sharded(shards_of(5)), **ASK).explain()
    assert "epsilon 0.5 selects labels in every shard, epsilon 0.5 counts them" in explained
    assert "the whole of epsilon 1 selects" in dptop.release(dptop.Sharded(shards_of(2)), **ASK).explain()


def test_noise_of_both_forms_meets_at_four_shards() -> None:
    """A count with half of epsilon has the variance of 2 + 2 cosh(epsilon/2) counters: at least four, always."""

    def variance(epsilon: Fraction) -> float:
        return sum(2 * z * z * float(noise.pmf(epsilon, z)) for z in range(1, int(80 / epsilon)))

    for epsilon in (Fraction(1, 4), Fraction(1), Fraction(2)):
        ratio = variance(epsilon / 2) / variance(epsilon)
        assert ratio == pytest.approx(2 + 2 * math.cosh(epsilon / 2), rel=1e-9)
        assert ratio > sharded.MOST_SUMMED
    assert variance(Fraction(1, 8)) / variance(Fraction(1, 4)) < sharded.MOST_SUMMED + 1


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("form", FORMS)
def test_top_and_share_pick_among_sums(form: str) -> None:
    """They look at the count of all shards together, and the length is that of all shards."""

    def parts() -> list[dptop.SpaceSaving]:
        return [weighed({"a": 600, "b": 300}), weighed({"a": 100, "b": 500, "c": 100}), weighed({})]

    result = dptop.release(dptop.Sharded(parts()), **ASK, mechanism=form, top=1)
    assert [row[:2] for row in result] == [("b", 800)]
    result = dptop.release(dptop.Sharded(parts()), **ASK, mechanism=form, share=0.4375)
    assert [row[:2] for row in result] == [("b", 800), ("a", 700)]
    assert result.noisy_length == 1600
    result = dptop.release(dptop.Sharded(parts()), **ASK, mechanism=form, share=0.4376, length=1600)
    assert [row[:2] for row in result] == [("b", 800)]
    assert result.noisy_length is None


@pytest.mark.parametrize("form", FORMS)
def test_what_a_release_spends_is_the_total(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise asked for is that of the parts, for one item of a unit, and the parts sum to the total."""
    asked: list[Fraction] = []
    original = noise.draw

    def draw(epsilon: Fraction, count: int, seed: int | None = None) -> list[int]:
        asked.append(epsilon)
        return original(epsilon, count, seed)

    monkeypatch.setattr(noise, "draw", draw)
    parts = dptop.Sharded(shards_of(3))
    result = dptop.release(parts, epsilon=2.0, delta=1e-6, mechanism=form, share=0.1, max_contributions=2)
    length, labels = Fraction(math.floor(Fraction(1, 50) * 2**32), 2**32), sorted(asked)[1:]
    assert min(asked) == length
    assert len(labels) == (3 if form == LOCAL_SUMS else 4)  # in each shard; each item is in one
    labels = labels[2:]
    assert sum(labels) + length == 1
    assert (result.epsilon, result.parameters["item_epsilon"]) == (2.0, 1.0)


def test_every_shard_has_noise_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Minima of sixty empty shards are draws, and not all alike; with one hidden seed for all they are seen to be."""

    def minima() -> set[int]:
        return set(dptop.release(dptop.Sharded([dptop.SpaceSaving(10) for _ in range(60)]), **ASK).noisy_minimum)

    seeds: list[int | None] = []
    original = noise.draw

    def draw(epsilon: Fraction, count: int, seed: int | None = None) -> list[int]:
        seeds.append(seed)
        return original(epsilon, count, seed)

    monkeypatch.setattr(noise, "draw", draw)
    assert len(minima()) > 1
    assert set(seeds) == {None}
    monkeypatch.setattr(noise, "draw", lambda epsilon, count, seed=None: original(epsilon, count, 4711))
    assert len(minima()) == 1


class Tables(list[Any]):
    """A list that can be watched."""

    __hash__ = object.__hash__  # type: ignore[assignment] # by identity


@pytest.mark.parametrize("form", FORMS)
def test_shards_are_read_one_at_a_time(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of twenty shards the tables of three at the most are there as Python numbers; all at once is seen."""
    alive: weakref.WeakSet[Tables] = weakref.WeakSet()
    most = 0
    original = dptop.SpaceSaving._snapshot

    def snapshot(self: dptop.SpaceSaving) -> Any:
        nonlocal most
        length, tables = original(self)
        watched = Tables(tables)
        alive.add(watched)
        most = max(most, len(alive))
        return length, watched

    monkeypatch.setattr(dptop.SpaceSaving, "_snapshot", snapshot)
    dptop.release(dptop.Sharded(shards_of(20)), **ASK, mechanism=form)
    assert most <= 3
    one_by_one = dptop.Sharded._tables
    monkeypatch.setattr(dptop.Sharded, "_tables", lambda self: iter(list(one_by_one(self))))
    dptop.release(dptop.Sharded(shards_of(20)), **ASK, mechanism=form)
    assert most == 20


@pytest.mark.parametrize("form", FORMS)
def test_empty_shards(form: str) -> None:
    """Shards without items release nothing, and beside others add nothing."""
    nothing = dptop.release(dptop.Sharded([dptop.SpaceSaving(10), dptop.SpaceSaving(10)]), **ASK, mechanism=form)
    assert (len(nothing), len(nothing.noisy_minimum)) == (0, 2)
    parts = [dptop.SpaceSaving(10), weighed({7: 10_000}), dptop.SpaceSaving(10, partitions=3)]
    (row,) = dptop.release(dptop.Sharded(parts), **ASK, mechanism=form)
    assert row.item == 7
    assert row.low <= 10_000 <= row.high


@pytest.mark.parametrize("form", FORMS)
def test_a_thousand_shards(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are released together, and each tie rule is calibrated once."""
    calibrated = []
    original = StableThreshold.of

    def of(*arguments: Any) -> StableThreshold:
        calibrated.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(StableThreshold, "of", staticmethod(of))
    counts = dict.fromkeys(range(100), 200)
    parts = [weighed(counts, 120, tie=tie) for tie in list(Tie) * 500]
    result = dptop.release(dptop.Sharded(parts), **ASK, mechanism=form)
    assert len(calibrated) == 2
    assert len(result) == 100
    assert len(result.noisy_minimum) == 1000
    assert all(row.low <= 200_000 <= row.high for row in result)


def steps(number: int, form: str) -> int:
    """Release so many small shards, and return how many lines of the package that took, each pass of a loop counted."""
    parts = [weighed(dict.fromkeys("abc", 200), 6, tie=tie) for tie in list(Tie) * (number // 2)]
    package, counted = str(Path(dptop.__file__).parent), 0

    def trace(frame: FrameType, _event: str, _argument: object) -> Any:
        nonlocal counted
        if not frame.f_code.co_filename.startswith(package):
            return None
        counted += 1
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        result = dptop.release(dptop.Sharded(parts), **ASK, mechanism=form)
    finally:
        sys.settrace(outer)
    assert len(result) == 3
    return counted


MOST_GROWTH = 5
"""How much more four times as many shards may take: 3.9 as it is, as some lines run once, and 9 and more for one line
that runs once for every two shards."""


@pytest.mark.parametrize("form", FORMS)
def test_work_is_linear_in_the_shards(form: str) -> None:
    """Steps are counted and no clock is asked; loops within one call of Python itself are not seen."""
    assert steps(250, form) > 250 * 100
    assert steps(1000, form) < MOST_GROWTH * steps(250, form)


@pytest.mark.parametrize("form", FORMS)
def test_work_for_every_two_shards_is_seen(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: where each shard that is read asks all of them whether they may be released."""
    original = dptop.Sharded._tables

    def looking(self: dptop.Sharded) -> Iterator[Any]:
        for tables in original(self):
            assert self._releasable
            yield tables

    monkeypatch.setattr(dptop.Sharded, "_tables", looking)
    assert steps(1000, form) > MOST_GROWTH * steps(250, form)


def test_noise_of_central_counts_does_not_grow_with_the_shards() -> None:
    """Of a hundred shards a count errs by the noise of one draw: no more than 40 but once in 10^8."""
    result = dptop.release(dptop.Sharded(shards_of(100)), epsilon=1.0, delta=1e-6)
    assert result.mechanism == CENTRAL_COUNTS
    assert abs(result[0].count - 100_000) <= 40, "false once in 10^8, so look for a cause"
