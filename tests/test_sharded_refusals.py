"""What is no set of shards, what the interface leaves no room for, and that nothing private is told."""

from __future__ import annotations

import copy
import gc
import inspect
import itertools
import pickle
from typing import TYPE_CHECKING, Any

import pytest

import dptop
from containers import SECRET
from dptop.release import PLANS
from dptop.release.shard_selection import ShardSelection
from saved import routing
from shard_makers import ASK, FORMS, shards_of, weighed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def test_one_shard_twice_is_refused() -> None:
    """Neither itself, nor a copy, nor a saved form: neighbours would differ in both."""
    part = weighed({"a": 1000})
    for other in (part, copy.copy(part), copy.deepcopy(part), pickle.loads(pickle.dumps(part))):
        with pytest.raises(dptop.InvalidParameter, match=r"shard 1: .* a copy of shard 0"):
            dptop.Sharded([part, other])


@pytest.mark.parametrize(
    "shards",
    [
        [],
        3,
        None,
        [1, 2],
        ["a"],
        [dptop.Sharded([dptop.SpaceSaving(10)])],
    ],
)
def test_what_is_no_shard_is_refused(shards: Any) -> None:
    """Shards are summaries, one or more."""
    with pytest.raises(dptop.InvalidParameter, match=r"must be .*; got .*\. "):
        dptop.Sharded(shards)
    with pytest.raises(dptop.InvalidParameter, match="partition must be"):
        dptop.Sharded([dptop.SpaceSaving(10)], partition="round-robin")


def test_shards_without_an_end_are_refused() -> None:
    """One more than there may be is asked for, and then no other: what never ends is not waited for."""
    asked = 0

    def endless() -> Iterator[dptop.SpaceSaving]:
        nonlocal asked
        for asked in itertools.count(1):
            assert asked < 2**21, "it is waited for"
            yield summary

    summary = dptop.SpaceSaving(10)
    with pytest.raises(dptop.InvalidParameter, match=r"at most 2\*\*20; got more"):
        dptop.Sharded(endless())
    assert asked == 2**20 + 1
    with pytest.raises(dptop.InvalidParameter, match="got more"):
        dptop.Sharded(itertools.repeat(summary))


@pytest.mark.parametrize(
    "shards",
    [
        [dptop.MisraGries(10)],
        [dptop.CountMin(10, 2), dptop.CountMin(10, 2)],
        [dptop.SpaceSaving(10), dptop.Tracked(dptop.CountMin(10, 2), 10)],
    ],
)
def test_other_summaries_are_refused(shards: Any) -> None:
    """They are no SpaceSaving, and have no proof here."""
    with pytest.raises(dptop.IncompatibleSummaries, match=r"shard \d: .* must be SpaceSaving, .*; got .*\. Release it"):
        dptop.Sharded(shards)


def test_labels_that_may_not_be_the_same_are_refused() -> None:
    """Of other kinds, or shortened elsewhere; also if that comes about later, and then nothing is spent."""
    for one, other in (({"a": 1}, {1: 1}), ({"a": 1}, {b"a": 1})):
        with pytest.raises(dptop.IncompatibleSummaries, match=r"shard 1: .* one kind of labels"):
            dptop.Sharded([weighed(one), weighed(other)])
    with pytest.raises(dptop.IncompatibleSummaries, match=r"shard 1: .* max_label_bytes.* 64 here and 100 in shard 0"):
        dptop.Sharded([dptop.SpaceSaving(10, max_label_bytes=limit) for limit in (100, 64, 100)])
    parts = [weighed({"a": 1}), dptop.SpaceSaving(10)]
    later = dptop.Sharded(parts)
    parts[1].update(1)
    with pytest.raises(dptop.IncompatibleSummaries):
        dptop.release(later, **ASK)
    assert not any(part._ledger.entries for part in parts)


def test_lengths_that_sum_past_the_largest_count_are_spent_and_refused() -> None:
    """A sum of counters fits into 64 bits, as every count does. The refusal tells of the lengths: it is not free."""
    half = 2**62
    fits = dptop.release(dptop.Sharded([weighed({1: half}), weighed({1: half - 100})]), **ASK)
    assert fits[0].high <= 2**63 - 1
    assert fits.to_arrow().num_rows == 1
    parts = [weighed({1: half}), weighed({1: half})]
    with pytest.raises(
        dptop.InvalidParameter, match=r"length must bound the length of the stream; 9223372036854775807"
    ):
        dptop.release(dptop.Sharded(parts), **ASK)
    for part in parts:  # no second filler is tried beside it
        with pytest.raises(dptop.BudgetExhausted):
            dptop.release(part, **ASK)


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
    items: list[Any] = [f"label {i % 97}" for i in range(5000)]
    expected = routing(summary, sorted(set(items)))
    assert set(expected.values()) == set(range(4))
    for arranged, threads in ((items, 1), (items[::-1], 4), (items[1:] + items[:1], 2)):
        assert routing(summary, arranged) == expected
        fresh = dptop.SpaceSaving.from_bytes(summary.to_bytes())
        fresh.extend(arranged, threads=threads)
        sizes = [len(counters) for _, counters in fresh._snapshot()[1]]
        placed = {str(label): p for p, size in enumerate(sizes) for label in fresh._labels(p, range(size))}
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
        assert not isinstance(thing, (dptop.SpaceSaving, dptop.Sharded, ShardSelection))
        rest += gc.get_referents(thing)


def test_errors_about_shards_quote_no_item() -> None:
    """Whatever is wrong, no label is in the message."""
    messages = []
    untyped: Any = dptop.Sharded
    for wrong in (
        lambda: untyped(SECRET),
        lambda: untyped([SECRET]),
        lambda: untyped({SECRET: 1}),
        lambda: dptop.Sharded([weighed({SECRET: 1}), weighed({1: 1})]),
        lambda: dptop.release(dptop.Sharded([weighed({SECRET: 10})]), **ASK, length=9),
    ):
        with pytest.raises(dptop.DptopError) as caught:
            wrong()
        messages.append(str(caught.value))
    assert not [message for message in messages if SECRET in message or SECRET[:5] in message]
