"""Oracles of other libraries: what they are asked, what they must state, and what their errors do."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import dptop
from dptop.envelope import Envelope, delta_of
from dptop.mechanism import LengthBound, StableThreshold
from dptop.privacy import PrivacyParameters, floor_epsilon
from foreign_oracles import STATED, Exact, NoisyAtRelease

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Drawn

ASK: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
WAYS = [("space-saving", "selected"), ("space-saving", "envelope"), ("estimates", "envelope")]
N = 100_000


def tracked_of(oracle: Any, candidates: str, counts: dict[Any, int], capacity: int = 100) -> dptop.Tracked:
    summary = dptop.Tracked(oracle, capacity, candidates)
    summary.extend(list(counts), list(counts.values()))
    return summary


@pytest.mark.parametrize(("candidates", "mechanism"), WAYS)
def test_heavy_hitters_of_a_foreign_oracle_are_released(candidates: str, mechanism: str) -> None:
    """With its own counts, by the threshold that its envelope makes; it is asked at the end for what is tracked."""
    oracle = Exact()
    summary = tracked_of(oracle, candidates, {f"label {i}": 5000 // (i + 1) for i in range(60)})
    oracle.asked.clear()
    result = dptop.release(summary, **ASK, mechanism=mechanism, length=N)
    assert [row.item for row in result][:4] == ["label 0", "label 1", "label 2", "label 3"]
    assert all(row.count == oracle.counts[row.item] for row in result)
    assert set(oracle.lengths) == {N}
    p, text = result.parameters, result.explain()
    assert "Exact" in text
    assert "the oracle keeps the envelope and the privacy that it states. The guarantee rests on it." in text
    if mechanism == "envelope":
        errors = 20 if candidates == "space-saving" else 60
        threshold = N // 100 + errors + (candidates == "space-saving")
        assert p["threshold"] == threshold
        assert {row.item for row in result} == {item for item, count in oracle.counts.items() if count > threshold}
        assert {"sketch", "noise", "scale", "offset"}.isdisjoint(p)
        assert len(oracle.asked) == 60
    else:
        selecting = PrivacyParameters(Fraction(1, 2), Decimal("1e-6"))
        assert p["offset"] == StableThreshold.of(selecting).offset
        assert p["scale"] == 2.0
        assert f"by more than {p['offset']}" in text
    for row in result:
        assert row.low <= row.count <= row.high


def test_the_length_an_oracle_is_asked_for_bounds_both_neighbours(no_noise: Drawn) -> None:
    """Declared it is as it is; a noisy one is lifted by what half of delta needs, and by one for the other stream."""
    for candidates, mechanism in WAYS:
        oracle = Exact(Envelope.stated(over=20, under=20, beta=1e-8, epsilon=0.25))
        no_noise.counters.clear()
        result = dptop.release(tracked_of(oracle, candidates, {"a": 5000}), **ASK, mechanism=mechanism)
        length = floor_epsilon(Fraction(1, 50))
        slack = next(
            t for t in range(10**6) if math.exp(-float(length) * (t + 1)) / (1 + math.exp(-float(length))) <= 5e-7
        )
        assert slack == LengthBound(length, Decimal("5e-7")).slack
        assert oracle.lengths == [1, 5000 + slack + 1]  # first what it states at all, before anything is spent
        assert no_noise.counters[0] == (length, 1)
        assert result.noisy_length == 5000
        assert result.parameters["length_epsilon"] == float(length)
        if mechanism == "selected":
            selecting = PrivacyParameters(1 - length - Fraction(1, 4), Decimal("5e-7"))
            assert result.parameters["offset"] == StableThreshold.of(selecting).offset


# What it states


def test_an_envelope_beyond_what_is_asked_for_is_refused() -> None:
    """With a declared length before anything is spent; to the last bit of epsilon and digit of delta."""
    beta = Decimal("1e-7")
    for candidates, cost in (("estimates", delta_of(beta, Fraction(1, 2))), ("space-saving", 2 * beta)):
        fits = float(cost * (1 + Decimal("1e-12")))
        short = float(cost * (1 - Decimal("1e-12")))
        stated = Envelope.stated(over=20, under=20, beta=1e-7, epsilon=0.5)
        ask: dict[str, Any] = {"mechanism": "envelope", "length": N}
        summary = tracked_of(Exact(stated), candidates, {"a": 5000})
        for refused in (
            {"epsilon": 0.5, "delta": short},
            {"epsilon": 0.5 - 2.0**-32, "delta": fits},
            {"epsilon": 0.5, "delta": fits, "max_contributions": 2},
        ):
            with pytest.raises(dptop.InvalidParameter, match="the oracle must keep"):
                dptop.release(summary, **(ask | refused))
        assert not summary._ledger.entries
        assert [row.item for row in dptop.release(summary, **ask, epsilon=0.5, delta=fits)] == ["a"]


def test_an_oracle_s_delta_counts() -> None:
    """What its noise has of delta comes on top of the errors, and is taken from what selects."""
    stated = Envelope.stated(over=20, under=20, beta=1e-8, epsilon=0.5, delta=4e-7)
    summary = tracked_of(Exact(stated), "space-saving", {"a": 5000})
    with pytest.raises(dptop.InvalidParameter, match="the oracle must keep"):
        dptop.release(summary, epsilon=1.0, delta=4.19e-7, length=N, mechanism="envelope")
    with pytest.raises(dptop.InvalidParameter, match="the oracle must leave some"):
        dptop.release(summary, epsilon=1.0, delta=4e-7, length=N)
    with pytest.raises(dptop.InvalidParameter, match="the oracle must leave some"):
        dptop.release(summary, epsilon=0.5, delta=1e-6, length=N)
    assert not summary._ledger.entries
    result = dptop.release(summary, **ASK, length=N)
    left = PrivacyParameters(Fraction(1, 2), Decimal("6e-7"))
    assert result.parameters["offset"] == StableThreshold.of(left).offset


@pytest.mark.parametrize(("candidates", "mechanism"), WAYS)
@pytest.mark.parametrize("envelope", [None, 20, STATED.total, Envelope])
def test_what_is_no_envelope_is_refused(candidates: str, mechanism: str, envelope: Any) -> None:
    """Before anything is spent, whether a length is declared or not."""
    summary = tracked_of(Exact(envelope), candidates, {"a": 5000})
    with pytest.raises(dptop.InvalidParameter, match=r"an oracle's envelope must be a dptop\.Envelope"):
        dptop.release(summary, **ASK, mechanism=mechanism, length=N)
    assert not summary._ledger.entries
    with pytest.raises(dptop.InvalidParameter, match=r"an oracle's envelope must be a dptop\.Envelope"):
        dptop.release(summary, **ASK, mechanism=mechanism)
    assert not summary._ledger.entries


def test_envelopes_out_of_range_are_refused() -> None:
    """Where they are stated, each number with its rule."""
    good: dict[str, Any] = {"over": 1, "under": 1, "beta": 1e-9, "epsilon": 1.0, "delta": 0.0}
    bad: dict[str, list[Any]] = {
        "over": [-1, 1.5, None, True, 2**63],
        "under": [-1, 1.5, None, True],
        "beta": [-1e-9, 0.5, math.nan, "1", None],
        "epsilon": [0, 65, math.nan],
        "delta": [-1, 1, math.nan],
    }
    for name, values in bad.items():
        for value in values:
            with pytest.raises(dptop.InvalidParameter, match=f"^{name}"):
                Envelope.stated(**(good | {name: value}))
    assert Envelope.stated(**good).under == 1
    state = STATED.state
    assert Envelope(1, 0, 1, Decimal(0), state).under is None
    with pytest.raises(dptop.InvalidParameter, match=r"^under must"):
        Envelope(1, 0, 1, Decimal(0), state, -1)


# Noise at the end


@pytest.mark.parametrize(("candidates", "mechanism"), WAYS)
def test_noise_at_the_end_is_drawn_once_in_each_release(candidates: str, mechanism: str) -> None:
    """Final estimates are read from what `noisy` returns; while the stream is read the oracle itself is asked."""
    oracle = NoisyAtRelease(shift=7)
    summary = dptop.Tracked(oracle, 100, candidates, budget=dptop.Budget(2.0, 2e-6))
    summary.extend(["a"] * 5000 + ["b"] * 4000)
    for draws in (1, 2):
        oracle.asked.clear()
        result = dptop.release(summary, **ASK, mechanism=mechanism, length=N)
        assert [(row.item, row.count) for row in result] == [("a", 5007), ("b", 4007)]
        assert oracle.draws == draws
        assert not oracle.asked


def test_the_upper_end_of_an_interval_needs_a_statement_about_final_estimates() -> None:
    """A bound on estimates on arrival says nothing of noise that comes later: without another there is no upper end."""
    arrival = Envelope(over_tracking=0, under_tracking=0, over=30, beta=Decimal("1e-8"), state=STATED.state)
    for candidates in ("space-saving", "estimates"):
        for stated, under in ((arrival, None), (Envelope(0, 0, 30, Decimal("1e-8"), STATED.state, 30), 30)):
            summary = tracked_of(NoisyAtRelease(stated, shift=-25), candidates, {"a": 5000})
            result = dptop.release(summary, **ASK, mechanism="envelope", length=N)
            [row] = result
            assert row.count == 4975
            assert row.low == 4945
            assert row.high == (2**63 - 1 if under is None else 5005)
            assert ("not stated" in result.explain()) == (under is None)
    assert dptop.release(
        tracked_of(Exact(), "estimates", {"a": 5000}), **ASK, mechanism="envelope", length=N
    )[0] == dptop.Row("a", 5000, 4980, 5020)  # fmt: skip


def test_the_noise_of_a_release_is_not_for_foreign_cells() -> None:
    """They are not seen from here: asking for a kind of noise is refused."""
    summary = tracked_of(Exact(), "estimates", {"a": 5000})
    with pytest.raises(dptop.InvalidParameter, match="noise is for sketches"):
        dptop.release(summary, **ASK, noise="laplace")
    assert not summary._ledger.entries


# Labels


@pytest.mark.parametrize(("candidates", "mechanism"), WAYS)
@pytest.mark.parametrize("label", ["x" * 10_000, b"\0" * 5000 + b"\xff", "é" * 5000])
def test_long_labels_are_asked_for_whole(candidates: str, mechanism: str, label: Any) -> None:
    """Nothing is shortened on the way to an oracle of another library and back."""
    oracle = Exact()
    other = label[:-1] + (b"y" if isinstance(label, bytes) else "y")
    result = dptop.release(
        tracked_of(oracle, candidates, {label: 5000, other: 4000}), **ASK, mechanism=mechanism, length=N
    )
    assert [(row.item, row.count) for row in result] == [(label, 5000), (other, 4000)]
    assert {item for item, _ in oracle.updates} == {label, other}
    assert set(oracle.asked) == {label, other}


@pytest.mark.parametrize("candidates", ["space-saving", "estimates"])
@pytest.mark.parametrize("labels", [[3, -(2**63), 2**64 - 1], ["a", "", "é"], [b"a", b"", b"\xff\0"]])
def test_an_oracle_gets_labels_as_plain_python_objects(candidates: str, labels: list[Any]) -> None:
    """From a list, an array and by single updates; one kind, and another is refused before it sees any of it."""
    oracle = Exact()
    summary = dptop.Tracked(oracle, 10, candidates)
    summary.extend(labels)
    if isinstance(labels[0], str):
        summary.extend(np.array(labels))
    summary.update(labels[0], 3)
    seen = list(oracle.updates)
    with pytest.raises(dptop.UnsupportedLabel):
        summary.extend([labels[1], 7 if isinstance(labels[0], str) else "other"])
    assert oracle.updates == seen
    assert {type(item) for item, _ in seen} == {type(labels[0])}
    assert {type(weight) for _, weight in seen} == {int}
    assert [item for item, _ in seen[:3]] == labels
    assert seen[-1] == (labels[0], 3)
    assert summary._releasable


# Errors


class Failing(Exact):
    """An oracle that fails at one of its calls."""

    def __init__(self, where: str, after: int = 5) -> None:
        super().__init__()
        self.where, self.left = where, after

    def _maybe(self, where: str) -> None:
        if where == self.where:
            self.left -= 1
            if self.left < 0:
                raise ConnectionError

    def update(self, item: Any, weight: int = 1) -> None:
        self._maybe("update")
        super().update(item, weight)

    def estimate(self, item: Any) -> Any:
        self._maybe("estimate")
        return super().estimate(item)


@pytest.mark.parametrize(
    ("candidates", "where"), [("space-saving", "update"), ("estimates", "update"), ("estimates", "estimate")]
)
@pytest.mark.parametrize("feed", [lambda s: s.extend(["a"] * 20), lambda s: [s.update("a") for _ in range(20)]])
def test_an_error_while_items_are_counted_closes_the_summary(
    candidates: str, where: str, feed: Callable[[Any], object]
) -> None:
    """The items that were lost may be any: it is not released, though it goes on counting."""
    summary = dptop.Tracked(Failing(where), 10, candidates)
    with pytest.raises(ConnectionError):
        feed(summary)
    with pytest.raises(dptop.SourceError, match="read to the end"):
        dptop.release(summary, **ASK, length=N)
    assert not summary._ledger.entries


def test_an_error_at_the_end_leaves_the_release_spent() -> None:
    """Its cause may be the data: there is no second try."""
    summary = tracked_of(Failing("estimate", 0), "space-saving", {"a": 5000})
    with pytest.raises(ConnectionError):
        dptop.release(summary, **ASK, length=N)
    with pytest.raises(dptop.BudgetExhausted):
        dptop.release(summary, **ASK, length=N)


class Answers(Exact):
    """An oracle that estimates what it is told."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def estimate(self, item: Any) -> Any:
        return self.answer


NO_NUMBERS = [5000.0, 5000.5, "5000", None, True, np.float64(5000), math.nan, Decimal(5000), 2**63, -(2**63)]


@pytest.mark.parametrize("answer", NO_NUMBERS, ids=repr)
def test_an_estimate_that_is_no_whole_number_is_refused(answer: Any) -> None:
    """By its type, not by its value: while estimates track, and at the end."""
    summary = dptop.Tracked(Answers(answer), 10, "estimates")
    with pytest.raises(dptop.InvalidParameter, match="an oracle's estimate must be a whole number") as caught:
        summary.update("secret")
    assert "5000" not in str(caught.value)
    assert not summary._releasable
    summary = tracked_of(Answers(answer), "space-saving", {"secret": 5000})
    with pytest.raises(dptop.InvalidParameter, match="an oracle's estimate must be a whole number"):
        dptop.release(summary, **ASK, length=N)
    assert summary._ledger.entries


@pytest.mark.parametrize("answer", [5000, np.int64(5000), np.uint8(200), 2**63 - 1, -(2**63) + 1])
@pytest.mark.parametrize(("candidates", "mechanism"), WAYS)
def test_whole_numbers_of_any_type_are_estimates(candidates: str, mechanism: str, answer: Any) -> None:
    """They leave as plain numbers."""
    result = dptop.release(tracked_of(Answers(answer), candidates, {"a": 5000}), **ASK, mechanism=mechanism, length=N)
    for row in result:
        assert row.count == answer
        assert type(row.count) is int
    assert len(result) == (mechanism == "selected" or int(answer) > 2000)


@pytest.mark.parametrize("candidates", ["space-saving", "estimates"])
@pytest.mark.parametrize("kind", [None, dptop.CountMin, dptop.CountSketch])
def test_private_counters_are_the_estimates_of_now(kind: Any, candidates: str) -> None:
    """Those of the oracle for every tracked label, by estimate downwards, then label: raw data, without noise."""
    counts = {"a": 7, "c": 9, "b": 9}
    oracle = Exact() if kind is None else kind(width=512, depth=5, seed=1)  # keys for which the three share no median
    summary = tracked_of(oracle, candidates, counts)
    assert summary.private_counters() == [("b", 9), ("c", 9), ("a", 7)]
    summary.update("a", 4)
    assert summary.private_counters() == [("a", 11), ("b", 9), ("c", 9)]
    assert tracked_of(Exact(), candidates, {}).private_counters() == []


def test_private_counters_refuse_what_is_no_whole_number() -> None:
    """As a release does."""
    oracle = Exact()
    summary = tracked_of(oracle, "space-saving", {"a": 1})
    oracle.counts["a"] = 0.5  # type: ignore[assignment]  # that is what is refused
    with pytest.raises(dptop.InvalidParameter, match=r"an oracle's estimate must be a whole number within 2\*\*63"):
        summary.private_counters()
