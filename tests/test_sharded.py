"""`Sharded`: what is released of parts that were counted apart, what it costs, and what is refused."""

from __future__ import annotations

import copy
import gc
import inspect
import math
import pickle
import random
import time
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import binomtest

import dptop
from containers import SECRET, summary_of
from dptop import noise
from dptop.mechanism import CENTRAL, LOCAL_SUMS, StableThreshold
from dptop.privacy import exact_epsilon
from dptop.reference import sharded as reference
from dptop.reference import stable_threshold
from dptop.release import PLANS, sharded
from dptop.release.sharded import COUNTS_SEED
from dptop.tie import Tie
from saved import routing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

ASK: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
FORMS = [LOCAL_SUMS, CENTRAL]


def weighed(counts: dict[Any, int], capacity: int = 100, **parameters: Any) -> dptop.SpaceSaving:
    summary = dptop.SpaceSaving(capacity, **parameters)
    summary.extend(list(counts), weights=list(counts.values()))
    return summary


def shards_of(number: int, counts: dict[Any, int] | None = None) -> list[dptop.SpaceSaving]:
    return [weighed({"a": 1000} if counts is None else counts) for _ in range(number)]


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make all noise zero."""
    monkeypatch.setattr(noise, "draw", lambda epsilon, count, seed=None: [0] * count)  # noqa: ARG005 - as `draw`


# What is released


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
    draws = iter(noise.draw(selection, sum(1 + len(c) for tables in raw for _, c, _ in tables), 23))
    tables = []
    for part, of_part in zip(parts, raw, strict=True):
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
    for number, partition, form in ((1, "as-stored", LOCAL_SUMS), (4, "as-stored", LOCAL_SUMS)) + (
        (5, "as-stored", CENTRAL),
        (5, "label", LOCAL_SUMS),
    ):
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
        assert ratio > sharded.FEW
    assert variance(Fraction(1, 8)) / variance(Fraction(1, 4)) < sharded.FEW + 1


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
    assert len(labels) == (1 if form == LOCAL_SUMS else 2)
    assert sum(labels) + length == 1
    assert (result.epsilon, result.parameters["item_epsilon"]) == (2.0, 1.0)


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
    """They take time linear in the counters, seconds at the most, and each tie rule is calibrated once."""
    calibrated = []
    original = StableThreshold.of

    def of(*arguments: Any) -> StableThreshold:
        calibrated.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(StableThreshold, "of", staticmethod(of))
    counts = dict.fromkeys(range(100), 200)
    parts = [weighed(counts, 120, tie=tie) for tie in list(Tie) * 500]
    start = time.process_time()
    result = dptop.release(dptop.Sharded(parts), **ASK, mechanism=form)
    assert time.process_time() - start < 10  # 0.4 s on the machine where it was written
    assert len(calibrated) == 2
    assert len(result) == 100
    assert len(result.noisy_minimum) == 1000
    assert all(row.low <= 200_000 <= row.high for row in result)


def test_noise_of_central_counts_does_not_grow_with_the_shards() -> None:
    """Of a hundred shards a count errs by the noise of one draw: no more than 40 but once in 10^8."""
    result = dptop.release(dptop.Sharded(shards_of(100)), epsilon=1.0, delta=1e-6)
    assert result.mechanism == CENTRAL
    assert abs(result[0].count - 100_000) <= 40, "false once in 10^8, so look for a cause"


# Intervals


CONFIDENCE, RUNS, TINY = 0.5, 500, 1e-9


def streams(seed: int, offset: int) -> list[list[int]]:
    """Return three streams: a label that is frequent in one and just below the threshold in others, and evictions."""
    generator = random.Random(seed)
    found = []
    for shard in range(3):
        settled = [label for label in range(8) for _ in range(150)]
        generator.shuffle(settled)
        near = [100 + i for i in range(3) for _ in range(200 if i == shard else offset - generator.randrange(2))]
        generator.shuffle(near)
        found.append(settled + list(range(200, 208)) + near)
    return found


def held(form: str, partition: str = "as-stored") -> int:
    """Return in how many of RUNS releases every interval holds its true count."""
    total = 0
    offset = StableThreshold.calibrate(epsilon=1.0 if form == LOCAL_SUMS else 0.5, delta=TINY).offset
    for run in range(RUNS):
        parts = streams(run, offset)
        if partition == "label":
            joined = [x for stream in parts for x in stream]
            parts = [[x for x in joined if x % 3 == j] for j in range(3)]
        true = Counter(x for stream in parts for x in stream)
        shards = dptop.Sharded([summary_of(stream, 12) for stream in parts], partition)
        result = dptop.release(shards, epsilon=1.0, delta=TINY, mechanism=form, confidence=CONFIDENCE, seed=run)
        total += all(row.low <= true[row.item] <= row.high for row in result)
    return total


@pytest.mark.parametrize("partition", ["as-stored", "label"])
@pytest.mark.parametrize("form", FORMS)
def test_intervals_hold_for_all_labels_at_once(form: str, partition: str) -> None:
    """Also of labels that some shards track and did not select."""
    found = held(form, partition)
    chance = binomtest(found, RUNS, CONFIDENCE, alternative="less").pvalue
    assert chance > 1e-6, f"{found} of {RUNS} at confidence {CONFIDENCE}: a false alarm once in 10^6"


def forget_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharded.Shards, "ceilings", lambda self, selected, reach: [0] * len(self.stables))  # noqa: ARG005 - as it is called


def forget_the_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    def ceilings(self: sharded.Shards, selected: Any, reach: int) -> list[int]:
        del self
        return [max(0, reach + max(minimum for minimum, _ in of_shard)) for of_shard in selected]

    monkeypatch.setattr(sharded.Shards, "ceilings", ceilings)


def forget_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharded, "simultaneous_quantile", lambda *_: 0)


@pytest.mark.parametrize("broken", [forget_the_others, forget_the_threshold, forget_the_noise])
@pytest.mark.parametrize("form", FORMS)
def test_an_interval_that_forgets_shards_that_did_not_select_is_seen(
    form: str, broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same simulation fails if others are taken to have nothing, or no more than their minimum, or no noise."""
    broken(monkeypatch)
    assert binomtest(held(form), RUNS, CONFIDENCE, alternative="less").pvalue < 1e-6


# What it costs


def test_a_release_is_charged_to_all_shards_or_to_none() -> None:
    """One shard that is spent refuses, and the others have nothing in their ledgers; afterwards all are spent."""
    first, second, third = shards_of(3)
    dptop.release(second, **ASK)
    with pytest.raises(dptop.BudgetExhausted):
        dptop.release(dptop.Sharded([first, second, third]), **ASK)
    assert not first._ledger.entries
    assert not third._ledger.entries
    dptop.release(dptop.Sharded([first, third]), **ASK)
    for spent in (first, third, dptop.Sharded([first])):
        with pytest.raises(dptop.BudgetExhausted):
            dptop.release(spent, **ASK)


def test_each_shard_has_its_own_budget() -> None:
    """The smallest one decides, and a shard may be released with different others as long as its own lasts."""
    large, small, other = (
        weighed({"a": 1000}, budget=dptop.Budget(epsilon, 1e-5)) for epsilon in (3.0, 1.0, 3.0)
    )
    dptop.release(dptop.Sharded([large, small]), **ASK)
    with pytest.raises(dptop.BudgetExhausted):
        dptop.release(dptop.Sharded([large, small, other]), **ASK)
    assert not other._ledger.entries
    dptop.release(dptop.Sharded([large, other]), **ASK)
    dptop.release(large, **ASK)
    with pytest.raises(dptop.BudgetExhausted):
        dptop.release(large, **ASK)
    assert len(other._ledger.entries) == 1


def test_nothing_is_spent_where_parameters_are_refused() -> None:
    """Neither by a value out of range, nor by an epsilon that cannot be split, nor by another's mechanism."""
    parts = dptop.Sharded(shards_of(2))
    for wrong in ({"epsilon": -1}, {"mechanism": "stable-threshold"}, {"mechanism": "paper", "share": 0.1}) + (
        {"epsilon": 2.0**-20, "max_contributions": 2**12, "mechanism": CENTRAL},
        {"noise": "laplace"},
        {"labels": ["a"]},
    ):
        with pytest.raises(dptop.InvalidParameter):
            dptop.release(parts, **(ASK | wrong))
    with pytest.raises(dptop.InvalidParameter, match="must be one for a SpaceSaving"):
        dptop.release(parts.shards[0], **ASK, mechanism=LOCAL_SUMS)
    assert not any(shard._ledger.entries for shard in parts.shards)


def test_a_length_is_declared_for_several_shards_once() -> None:
    """Beside shards of known lengths one bound after the other could be tried on a shard, so a second is refused."""
    budget = dptop.Budget(10.0, 1e-4)
    part, filler, more = (weighed({"a": 1000}, budget=budget) for _ in range(3))
    dptop.release(dptop.Sharded([part, filler]), **ASK, length=5000)
    for others in ([part, more], [part, filler]):
        with pytest.raises(dptop.InvalidParameter, match="length must be declared in one release of several shards"):
            dptop.release(dptop.Sharded(others), **ASK, length=5000)
    with pytest.raises(dptop.InvalidParameter, match="length must be the one declared before"):
        dptop.release(dptop.Sharded([part, more]), **ASK, length=6000)
    assert not more._ledger.entries
    dptop.release(dptop.Sharded([part, more]), **ASK)
    dptop.release(part, **ASK, length=5000)  # less than what held for more


def test_shards_longer_than_their_declared_length_are_all_closed() -> None:
    """The bound is on the sum; the error tells of it, so none of them is released any more."""
    parts = shards_of(2)
    with pytest.raises(dptop.InvalidParameter, match="length must bound the length"):
        dptop.release(dptop.Sharded(parts), **ASK, length=1999)
    for part in parts:
        with pytest.raises(dptop.BudgetExhausted):
            dptop.release(part, **ASK)


@pytest.mark.parametrize("form", FORMS)
def test_a_shard_that_is_counted_into_meanwhile_is_noticed(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever shard grows while noise is drawn, there is no result, and all are spent."""
    original = noise.draw
    for which in range(3):
        parts = shards_of(3)

        def meanwhile(
            epsilon: Fraction, count: int, seed: int | None = None, part: dptop.SpaceSaving = parts[which]
        ) -> list[int]:
            part.update("b")
            return original(epsilon, count, seed)

        monkeypatch.setattr(noise, "draw", meanwhile)
        with pytest.raises(dptop.SourceError, match="meanwhile"):
            dptop.release(dptop.Sharded(parts), **ASK, mechanism=form)
        assert all(part._ledger.entries for part in parts)


def test_a_shard_whose_stream_broke_off_is_not_released() -> None:
    """Nor are the others with it; nothing is spent."""
    def broken() -> Any:
        yield "a"
        raise OSError(SECRET)

    parts = shards_of(2)
    with pytest.raises(OSError, match=SECRET):
        parts[1].extend(broken())
    with pytest.raises(dptop.SourceError) as caught:
        dptop.release(dptop.Sharded(parts), **ASK)
    assert SECRET not in str(caught.value)
    assert not parts[0]._ledger.entries


def test_parts_that_were_pickled_or_saved_are_shards(tmp_path: Path) -> None:
    """They are released as they were, and what is spent on them is spent on those they came from."""
    parts = shards_of(2)
    parts[1].save(tmp_path / "part")
    loaded = dptop.load(tmp_path / "part")
    assert isinstance(loaded, dptop.SpaceSaving)
    result = dptop.release(dptop.Sharded([pickle.loads(pickle.dumps(parts[0])), loaded]), **ASK, seed=1)
    assert result.rows == dptop.release(dptop.Sharded(shards_of(2)), **ASK, seed=1).rows
    for part in parts:
        with pytest.raises(dptop.BudgetExhausted):
            dptop.release(part, **ASK)


# What is refused


def test_one_shard_twice_is_refused() -> None:
    """Neither itself, nor a copy, nor a saved form: neighbours would differ in both."""
    part = weighed({"a": 1000})
    for other in (part, copy.copy(part), copy.deepcopy(part), pickle.loads(pickle.dumps(part))):
        with pytest.raises(dptop.InvalidParameter, match="one of them twice"):
            dptop.Sharded([part, other])


@pytest.mark.parametrize(
    "shards",
    [
        [],
        3,
        None,
        [1, 2],
        ["a"],
        [dptop.MisraGries(10)],
        [dptop.CountMin(10, 2), dptop.CountMin(10, 2)],
        [dptop.SpaceSaving(10), dptop.Tracked(dptop.CountMin(10, 2), 10)],
        [dptop.Sharded([dptop.SpaceSaving(10)])],
    ],
)
def test_what_is_no_shard_is_refused(shards: Any) -> None:
    """Shards are summaries of type SpaceSaving, one or more; others have no proof here."""
    with pytest.raises(dptop.InvalidParameter, match=r"must be .*; got .*\. "):
        dptop.Sharded(shards)
    with pytest.raises(dptop.InvalidParameter, match="partition must be"):
        dptop.Sharded([dptop.SpaceSaving(10)], partition="round-robin")


def test_labels_that_may_not_be_the_same_are_refused() -> None:
    """Of other kinds, or shortened elsewhere; also if that comes about later, and then nothing is spent."""
    for one, other in (({"a": 1}, {1: 1}), ({"a": 1}, {b"a": 1})):
        with pytest.raises(dptop.IncompatibleSummaries, match="labels of one kind"):
            dptop.Sharded([weighed(one), weighed(other)])
    with pytest.raises(dptop.IncompatibleSummaries, match=r"max_label_bytes.*\[64, 100\]"):
        dptop.Sharded([dptop.SpaceSaving(10, max_label_bytes=limit) for limit in (100, 64, 100)])
    parts = [weighed({"a": 1}), dptop.SpaceSaving(10)]
    later = dptop.Sharded(parts)
    parts[1].update(1)
    with pytest.raises(dptop.IncompatibleSummaries):
        dptop.release(later, **ASK)
    assert not any(part._ledger.entries for part in parts)


def test_lengths_that_sum_past_the_largest_count_are_refused() -> None:
    """A sum of counters fits into 64 bits, as every count does."""
    half = 2**62
    fits = dptop.release(dptop.Sharded([weighed({1: half}), weighed({1: half - 100})]), **ASK)
    assert fits[0].high <= 2**63 - 1
    assert fits.to_arrow().num_rows == 1
    with pytest.raises(dptop.InvalidParameter, match="lengths that sum to at most"):
        dptop.Sharded([weighed({1: half}), weighed({1: half})])


@pytest.mark.parametrize("form", FORMS)
def test_long_labels_are_one_label_in_all_shards(form: str) -> None:
    """A label that is kept as prefix and digest is added up over shards as any other."""
    parts = [weighed({"x" * 5000: 1000, "x" * 4999 + "y": 1000}) for _ in range(2)]
    result = dptop.release(dptop.Sharded(parts), **ASK, mechanism=form)
    assert [type(row.item) for row in result] == [dptop.ShortenedLabel] * 2
    assert all(abs(row.count - 2000) < 100 for row in result)


# What the interface leaves no room for


def test_nothing_public_merges_or_cuts_streams() -> None:
    """SpaceSaving has no merge, a Sharded shows its parts only, and no option changes which shards add to a count."""
    assert not [name for name in dir(dptop.SpaceSaving) if "merge" in name or "add" in name.strip("_")]
    public = {name for name in dir(dptop.Sharded) if not name.startswith("_")}
    assert public == {"partition", "shards"}
    assert set(inspect.signature(dptop.Sharded).parameters) == {"shards", "partition"}
    assert set(PLANS[dptop.Sharded]) == set(FORMS)
    first, second = dptop.Sharded(shards_of(1)), dptop.Sharded(shards_of(1))
    for operation in ("__add__", "__or__", "__iadd__", "extend", "update", "merge"):
        assert not hasattr(first, operation)
        assert not hasattr(second.shards[0], operation) or operation in ("extend", "update")
    with pytest.raises(AttributeError):
        first.shards = second.shards  # type: ignore[misc]


def test_streams_are_parted_by_label_alone() -> None:
    """The table of a label is the same in any order of the items, in any pieces and with any threads."""
    summary = dptop.SpaceSaving(4000, partitions=4)
    items = [f"label {i % 97}" for i in range(5000)]
    expected = routing(summary, sorted(set(items)))
    assert set(expected.values()) == set(range(4))
    for arranged, threads in ((items, 1), (items[::-1], 4), (items[1:] + items[:1], 2)):
        assert routing(summary, arranged) == expected
        fresh = dptop.SpaceSaving.from_bytes(summary.to_bytes())
        fresh.extend(arranged, threads=threads)
        placed = {label: p for p in range(4) for label in fresh._labels(p, range(len(fresh._snapshot()[1][p][1])))}
        assert len(placed) == 97
        assert {label.encode(): p for label, p in placed.items()} == {k[4:]: p for k, p in expected.items()}


# What it tells


def test_words_about_shards_tell_nothing_private() -> None:
    """Streams that differ in all that is private have the same words, but for the kind of labels in a repr."""
    def parts(counts: Sequence[dict[Any, int]]) -> dptop.Sharded:
        return dptop.Sharded([weighed(of_shard, 50) for of_shard in counts])

    one = parts([{SECRET: 50_000, **{f"other {i}": 3 for i in range(200)}}, {}, {"z": 9}])
    two = parts([{}, {"x": 3}, {}])
    assert repr(one) == repr(two) == "Sharded(3 shards, partition='as-stored')"
    for form in FORMS:
        one = parts([{SECRET: 50_000, **{f"other {i}": 3 for i in range(200)}}, {}, {"z": 9}])
        two = parts([{}, {"x": 3}, {}])
        first, second = (
            dptop.release(summary, **ASK, mechanism=form, share=0.01, length=10**6, top=3) for summary in (one, two)
        )
        assert first.explain() == second.explain()
        assert first.parameters == second.parameters
        assert SECRET not in first.explain() + str(first.parameters)


@pytest.mark.parametrize("form", FORMS)
def test_a_release_of_shards_holds_nothing_raw(form: str) -> None:
    """Neither a shard, nor a label that no shard selected, can be reached from it."""
    parts = [weighed({"published": 100_000, f"{SECRET}-{i}": 1}) for i in range(2)]
    result = dptop.release(dptop.Sharded(parts), **ASK, mechanism=form)
    assert [row.item for row in result] == ["published"]
    assert SECRET.encode() not in pickle.dumps(result)
    seen, rest = set(), [result]
    while rest:
        thing: Any = rest.pop()
        if id(thing) in seen or isinstance(thing, type) or inspect.ismodule(thing) or inspect.isfunction(thing):
            continue
        seen.add(id(thing))
        assert not isinstance(thing, (dptop.SpaceSaving, dptop.Sharded, sharded.Shards))
        rest += gc.get_referents(thing)


def test_errors_about_shards_quote_no_item() -> None:
    """Whatever is wrong, no label is in the message."""
    messages = []
    for wrong in (
        lambda: dptop.Sharded(SECRET),
        lambda: dptop.Sharded([SECRET]),
        lambda: dptop.Sharded({SECRET: 1}),
        lambda: dptop.Sharded([weighed({SECRET: 1}), weighed({1: 1})]),
        lambda: dptop.release(dptop.Sharded([weighed({SECRET: 10})]), **ASK, length=9),
    ):
        with pytest.raises(dptop.DptopError) as caught:
            wrong()
        messages.append(str(caught.value))
    assert not [message for message in messages if SECRET in message or SECRET[:5] in message]
