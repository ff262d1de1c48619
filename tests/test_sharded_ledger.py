"""What a release of shards costs: all of them or none, and what else is not released."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

import dptop
from containers import SECRET
from dptop import noise
from dptop.mechanism import CENTRAL_COUNTS, LOCAL_SUMS
from shard_makers import ASK, FORMS, shards_of, weighed

if TYPE_CHECKING:
    from fractions import Fraction
    from pathlib import Path


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
    large, small, other = (weighed({"a": 1000}, budget=dptop.Budget(epsilon, 1e-5)) for epsilon in (3.0, 1.0, 3.0))
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
    refused: list[dict[str, Any]] = [
        {"epsilon": -1},
        {"mechanism": "stable-threshold"},
        {"mechanism": "paper", "share": 0.1},
        {"epsilon": 2.0**-20, "max_contributions": 2**12, "mechanism": CENTRAL_COUNTS},
        {"noise": "laplace"},
        {"labels": ["a"]},
    ]
    for wrong in refused:
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
    parts = [weighed({"a": 1000}, budget=dptop.Budget(10.0, 1e-3)) for _ in range(2)]
    with pytest.raises(dptop.InvalidParameter, match="length must bound the length"):
        dptop.release(dptop.Sharded(parts), **ASK, length=1999)
    for part in parts:
        with pytest.raises(dptop.BudgetExhausted, match="longer than its declared length"):
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


def test_an_empty_shard_that_begins_with_other_labels_meanwhile_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels of two kinds are not mixed, also if the second kind came just after the charge."""
    parts = [weighed({"a": 1000}), dptop.SpaceSaving(10)]
    charge = dptop.Sharded._charge

    def then_count(self: dptop.Sharded, spent: Any, length: int | None) -> None:
        charge(self, spent, length)
        parts[1].update(1, 1000)

    monkeypatch.setattr(dptop.Sharded, "_charge", then_count)
    with pytest.raises(dptop.IncompatibleSummaries):
        dptop.release(dptop.Sharded(parts), **ASK)


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
