"""What a release of tracked labels holds and says: rows, mechanisms, words, lengths, refusals."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

import dptop
from dptop.mechanism import StableThreshold

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Drawn

ASK: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
COUNTS = {"a": 5000, "b": 4000, "é": 4000, "B": 4000, "": 9000, "rare": 2}
WAYS = [("space-saving", "selected"), ("space-saving", "envelope"), ("estimates", "envelope")]


def tracked_of(
    counts: dict[Any, int],
    candidates: str = "space-saving",
    oracle: Any = None,
    capacity: int = 50,
    **parameters: Any,
) -> dptop.Tracked:
    oracle = dptop.CountMin(4096, 8) if oracle is None else oracle
    summary = dptop.Tracked(oracle, capacity, candidates, **parameters)
    summary.extend(list(counts), list(counts.values()))
    return summary


def items(result: dptop.Release) -> list[Any]:
    return [row.item for row in result]


# Rows


def test_the_default_mechanism_goes_with_the_candidates() -> None:
    """Selection where SpaceSaving tracks, the envelope where estimates do; the latter cannot be selected from."""
    for candidates, mechanism in (("space-saving", "selected"), ("estimates", "envelope")):
        assert dptop.release(tracked_of(COUNTS, candidates), **ASK).mechanism == mechanism
    summary = tracked_of(COUNTS, "estimates")
    with pytest.raises(dptop.InvalidParameter, match=r"mechanism 'selected' must .* SpaceSaving"):
        dptop.release(summary, **ASK, mechanism="selected")
    with pytest.raises(dptop.InvalidParameter, match=r"mechanism must be one for a Tracked: 'selected', 'envelope'"):
        dptop.release(summary, **ASK, mechanism="stable-threshold")
    with pytest.raises(dptop.InvalidParameter, match=r"mechanism must be one for a CountMin: 'public-labels'"):
        dptop.release(dptop.CountMin(10, 1), **ASK, mechanism="selected")
    assert not summary._ledger.entries


@pytest.mark.parametrize(("candidates", "mechanism"), WAYS)
@pytest.mark.parametrize(("oracle", "depth"), [(dptop.CountMin, 8), (dptop.CountSketch, 61)])
def test_rows_are_the_frequent_labels_by_count_then_item(
    candidates: str, mechanism: str, oracle: Callable[..., Any], depth: int, no_noise: Drawn
) -> None:
    """With the oracle's counts, which without noise are the true ones here; their intervals hold them."""
    summary = tracked_of(COUNTS, candidates, oracle(4096, depth))
    result = dptop.release(summary, **ASK, mechanism=mechanism, length=50_000)
    assert [(row.item, row.count) for row in result] == [
        ("", 9000), ("a", 5000), ("B", 4000), ("b", 4000), ("é", 4000)
    ]  # fmt: skip
    assert all(row.low <= row.count <= row.high for row in result)
    assert len(no_noise.cells) == 1
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    assert again.explain() == result.explain()


@pytest.mark.parametrize(("candidates", "mechanism"), WAYS)
def test_top_and_share_keep_the_largest(candidates: str, mechanism: str, no_noise: Drawn) -> None:
    """Of what passes the threshold; a share is compared in whole numbers, of the declared length or the noisy one."""
    ask = {**ASK, "mechanism": mechanism}
    assert items(dptop.release(tracked_of(COUNTS, candidates), **ask, top=2)) == ["", "a"]
    total = sum(COUNTS.values())
    share = 5000 / total
    for length in (total, None):
        summary = tracked_of(COUNTS, candidates)
        result = dptop.release(summary, **ask, share=round(share - 1e-9, 12), length=length)
        assert items(result) == ["", "a"]
        assert result.noisy_length == (None if length else total)
        result = dptop.release(tracked_of(COUNTS, candidates), **ask, share=round(share + 1e-9, 12), length=length)
        assert items(result) == [""]
    assert no_noise.cells


def test_a_label_must_exceed_the_threshold(no_noise: Drawn) -> None:
    """The comparison of the mechanism decides: at the threshold no, one above it yes."""
    for candidates, mechanism in WAYS[1:]:
        ask = {**ASK, "mechanism": mechanism, "length": 10**5}
        threshold = dptop.release(tracked_of({}, candidates), **ask).parameters["threshold"]
        result = dptop.release(tracked_of({1: threshold, 2: threshold + 1}, candidates), **ask)
        assert [(row.item, row.count) for row in result] == [(2, threshold + 1)]
    offset = dptop.release(tracked_of({}), **ASK).parameters["offset"]
    full = {1: 7, 2: 7 + offset, 3: 8 + offset}
    result = dptop.release(tracked_of(full, capacity=3), **ASK)
    assert (items(result), result.noisy_minimum) == ([3], (7,))
    assert no_noise.cells


@pytest.mark.parametrize(("candidates", "mechanism"), WAYS)
@pytest.mark.parametrize("labels", [[3, -(2**63), 2**64 - 1], ["a", "", "é"], [b"a", b"", b"\xff\0"]])
def test_labels_of_every_kind_come_out_as_they_went_in(candidates: str, mechanism: str, labels: list[Any]) -> None:
    """Integers, strings and bytes; of one kind: another one is refused whole, and the summary goes on."""
    summary = tracked_of(dict.fromkeys(labels, 10_000), candidates)
    other: list[Any] = [b"x"] if isinstance(labels[0], (int, str)) else ["x"]
    before = summary._length()
    with pytest.raises(dptop.UnsupportedLabel):
        summary.extend([labels[0], *other])
    with pytest.raises(dptop.UnsupportedLabel):
        summary.update(other[0])
    assert summary._length() == before
    result = dptop.release(summary, **ASK, mechanism=mechanism)
    assert set(items(result)) == set(labels)
    assert {type(item) for item in items(result)} == {type(labels[0])}


@pytest.mark.parametrize(("candidates", "mechanism"), WAYS)
def test_a_long_label_of_an_own_sketch_is_shortened_and_keeps_its_count(
    candidates: str, mechanism: str, no_noise: Drawn
) -> None:
    """Two labels with one prefix are counted apart, in the sketch and beside it, and read back shortened."""
    one, other = "x" * 100 + "1", "x" * 100 + "2"
    oracle = dptop.CountMin(4096, 8, max_label_bytes=64)
    result = dptop.release(
        tracked_of({one: 3000, other: 2000, "short": 2500}, candidates, oracle), **ASK, mechanism=mechanism
    )
    assert [row.count for row in result] == [3000, 2500, 2000]
    assert result[1].item == "short"
    for row in (result[0], result[2]):
        assert isinstance(row.item, dptop.ShortenedLabel)
        assert row.item.prefix == "x" * 32
    assert no_noise.cells


@pytest.mark.parametrize("candidates", ["space-saving", "estimates"])
def test_negative_weights_are_refused(candidates: str) -> None:
    """What tracks labels cannot take an item back; nothing of the input is counted then. 0 leaves an item out."""
    summary = tracked_of({"a": 5}, candidates)
    with pytest.raises(dptop.InvalidParameter, match=r"whole numbers from 0 to .*; got a negative one"):
        summary.update("a", -1)
    with pytest.raises(dptop.InvalidParameter, match=r"whole numbers from 0 to .*; got a negative one"):
        summary.extend(["b", "a"], [2, -1])
    for weight in (1.5, True, None, "1"):
        with pytest.raises(dptop.InvalidParameter, match="weights must be whole numbers from 0"):
            summary.update("a", weight)  # type: ignore[arg-type]  # that is the point
    summary.update("b", 0)
    summary.update(None, 3)
    assert summary._length() == 5
    assert summary._cells.length() == 5
    dptop.release(summary, **ASK)


# Words


@pytest.mark.parametrize(("candidates", "mechanism"), WAYS)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("oracle", [dptop.CountMin, dptop.CountSketch])
def test_a_release_says_what_is_promised(
    candidates: str, mechanism: str, noise: str, oracle: Callable[..., Any]
) -> None:
    """Unit, epsilon, delta, mechanism, noise, threshold, and what is assumed of the hashes, in words and numbers."""
    summary = tracked_of(COUNTS, candidates, oracle(2000, 25))
    result = dptop.release(summary, **ASK, mechanism=mechanism, noise=noise, length=10**6)
    text, p = result.explain(), result.parameters
    assert result.unit == "one item of the stream, added or removed anywhere"
    assert (result.epsilon, result.delta, result.mechanism, result.private) == (1.0, 1e-6, mechanism, True)
    tie = "least-recent" if candidates == "space-saving" else None
    declared = {"summary": "Tracked", "capacity": 50, "candidates": candidates, "tie": tie, "length": 10**6}
    sketch = {"sketch": oracle.__name__, "width": 2000, "depth": 25, "noise": noise}
    assert (declared | sketch).items() <= p.items()
    for fact in (
        "(1, 1e-06)-differential privacy",
        f"{oracle.__name__}, 25 rows of 2000 cells",
        f"discrete {noise.capitalize()} of scale {p['scale']:.6g} on every cell, once, at release",
        "drawn exactly from the system's entropy",
        "at most 1000000 items, as the caller declared",
    ):
        assert fact in text
    if mechanism == "selected":
        assert f"by more than {p['offset']}" in text
        assert "threshold" not in p
        assert "Assumed" not in text  # nothing is assumed of the hashes
    else:
        assert f"exceeds {p['threshold']}: N / capacity, rounded down, and {p['threshold'] - 20_000} for errors" in text
        assert "rows hash labels as independent random functions, by 64-bit fingerprints" in text
        assert p["simultaneous"]
    assert "NOT PRIVATE" not in text


@pytest.mark.parametrize(("candidates", "mechanism"), WAYS)
@pytest.mark.parametrize("shape", [(4096, 8), (40, 3)])
def test_words_and_parameters_tell_nothing_private(
    candidates: str, mechanism: str, shape: tuple[int, int], no_noise: Drawn
) -> None:
    """Streams that differ in all that is private, and agree in what is published, have the same words.

    Also where nothing can be released: the reason is made of public numbers.
    """
    one = tracked_of(COUNTS | {f"other {i}": 3 for i in range(30)}, candidates, dptop.CountMin(*shape))
    two = tracked_of({"x": 300}, candidates, dptop.CountMin(*shape))
    ask = {**ASK, "mechanism": mechanism, "length": 10**5, "share": 0.001, "top": 3}
    first, second = (dptop.release(summary, **ask) for summary in (one, two))
    assert first.noisy_minimum == second.noisy_minimum
    assert first.explain() == second.explain()
    assert first.parameters == second.parameters
    if mechanism == "envelope" and shape == (40, 3):
        assert "Nothing released: CountMin, 3 rows of 40 cells cannot tell labels from the errors" in first.explain()
        assert "100000 items" in first.explain()
        assert not first.rows
        assert not second.rows
    else:
        assert first.rows != second.rows
    assert no_noise.cells


def test_an_envelope_that_cannot_be_met_depends_on_public_numbers_only() -> None:
    """Whether there is one is the same for an empty stream and a full one; the reason quotes a noisy length."""
    for length in (10**6, None):
        for counts in ({}, {"a": 900_000}):
            for candidates in ("space-saving", "estimates"):
                summary = tracked_of(counts, candidates, dptop.CountSketch(100, 3))
                result = dptop.release(summary, **ASK, mechanism="envelope", length=length)
                assert not result.rows
                assert "threshold" not in result.parameters
                assert "cannot tell labels from the errors" in result.explain()
                assert (result.noisy_length is None) == (length is not None)
                with pytest.raises(dptop.BudgetExhausted):  # an empty release is a release
                    dptop.release(summary, **ASK)


SEEDED: dict[str, Callable[[str], dptop.Tracked]] = {
    "keys": lambda candidates: tracked_of(COUNTS, candidates, dptop.CountMin(4096, 8, seed=1)),
    "keys of a copy": lambda c: tracked_of(COUNTS, c, dptop.CountSketch(4096, 25, seed=1).empty_copy()),
    "keys under noise": lambda c: tracked_of(COUNTS, c, dptop.CountMin(4096, 8, seed=1).with_noise(epsilon=0.3)),
    "noise": lambda c: tracked_of(COUNTS, c, dptop.CountMin(4096, 8).with_noise(epsilon=0.3, seed=0)),
}


@pytest.mark.parametrize(("candidates", "mechanism"), WAYS)
@pytest.mark.parametrize("seeded", SEEDED)
def test_a_known_seed_makes_a_release_not_private(candidates: str, mechanism: str, seeded: str) -> None:
    """Of keys or of noise, through copies, whatever the mechanism: in its flag and in its words."""
    result = dptop.release(SEEDED[seeded](candidates), **ASK, mechanism=mechanism)
    assert result.private is False
    assert result.explain().startswith("NOT PRIVATE: a seed for tests determined noise or hashes")


@pytest.mark.parametrize(("candidates", "mechanism"), WAYS)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_seed_of_a_release_repeats_it(candidates: str, mechanism: str, noise: str) -> None:
    """All of its noise, and it is not private then; without one it does not repeat."""
    ask = {**ASK, "mechanism": mechanism, "noise": noise, "share": 0.001}
    oracle = dptop.CountMin(4096, 8)
    one, two = (dptop.release(tracked_of(COUNTS, candidates, oracle), **ask, seed=5) for _ in range(2))
    assert one == two
    assert one.private is False
    fresh = dptop.release(tracked_of(COUNTS, candidates, oracle), **ask)
    assert fresh.rows != one.rows


# Length and ledger


@pytest.mark.parametrize(("candidates", "mechanism"), WAYS)
def test_a_stream_longer_than_its_declared_length_closes_the_ledger(candidates: str, mechanism: str) -> None:
    """Spent, whatever the budget: the length is not found by asking again, nor quoted."""
    summary = tracked_of({"a": 8731}, candidates, budget=dptop.Budget(60.0, 0.5))
    with pytest.raises(dptop.InvalidParameter, match="length must bound") as caught:
        dptop.release(summary, **ASK, mechanism=mechanism, length=8730)
    assert "8731" not in str(caught.value)
    assert summary._ledger.entries
    for length in (8730, 8731, None):
        with pytest.raises(dptop.BudgetExhausted, match="asking again"):
            dptop.release(summary, **ASK, mechanism=mechanism, length=length)
    dptop.release(tracked_of({"a": 8731}, candidates), **ASK, mechanism=mechanism, length=8731)


@pytest.mark.parametrize(("candidates", "mechanism"), WAYS)
def test_a_second_release_needs_a_budget(candidates: str, mechanism: str) -> None:
    """By either mechanism; with a budget they add up."""
    summary = tracked_of(COUNTS, candidates)
    dptop.release(summary, **ASK, mechanism=mechanism)
    with pytest.raises(dptop.BudgetExhausted, match="one release per stream"):
        dptop.release(summary, **ASK)
    more = tracked_of(COUNTS, candidates, budget=dptop.Budget(2.5, 3e-6))
    for _ in range(2):
        dptop.release(more, **ASK, mechanism=mechanism)
    with pytest.raises(dptop.BudgetExhausted, match="within budget"):
        dptop.release(more, **ASK)
    dptop.release(more, epsilon=0.5, delta=1e-7)


def test_a_summary_with_a_length_keeps_it() -> None:
    """Two answers about two bounds would tell the length."""
    summary = tracked_of(COUNTS, "estimates", budget=dptop.Budget(60.0, 0.5))
    dptop.release(summary, **ASK, length=10**6)
    with pytest.raises(dptop.InvalidParameter, match="length must be the one declared before"):
        dptop.release(summary, **ASK, length=10**6 + 1)
    dptop.release(summary, **ASK)


@pytest.mark.parametrize(("candidates", "mechanism"), WAYS)
def test_a_stream_that_broke_off_is_not_released(candidates: str, mechanism: str) -> None:
    """Neither are items counted while it is read."""
    summary = tracked_of(COUNTS, candidates)

    def broken() -> Any:
        yield from ["a"] * 100_000
        with pytest.raises(dptop.SourceError):
            dptop.release(summary, **ASK, mechanism=mechanism)
        raise OSError

    with pytest.raises(OSError, match=r"^$"):
        summary.extend(broken())
    with pytest.raises(dptop.SourceError, match="read to the end"):
        dptop.release(summary, **ASK, mechanism=mechanism)
    assert not summary._ledger.entries


def test_an_offset_is_that_of_the_mechanism() -> None:
    """Selection is `StableThreshold` with its part of epsilon and delta, by the tie rule of the summary."""
    for tie in dptop.Tie:
        result = dptop.release(tracked_of({}, tie=tie), **ASK, noise="laplace")
        assert result.parameters["offset"] == StableThreshold.calibrate(epsilon=0.5, delta=1e-6, tie=tie).offset
        assert result.parameters["tie"] == tie.value


BAD: list[tuple[dict[str, Any], str]] = [
    *[({"capacity": value}, "capacity must") for value in (0, -1, 2**31 + 1, 2.0, True, None)],
    *[({"candidates": value}, "candidates must") for value in ("all", "", 1, None)],
    *[({"tie": value}, "tie must") for value in ("random", 1)],
    ({"budget": (1.0, 1e-6)}, "budget must"),
    *[({"oracle": value}, "oracle must") for value in (None, dptop.CountMin, dptop.SpaceSaving(5), object(), "x")],
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_a_parameter_out_of_range_is_refused(change: dict[str, Any], message: str) -> None:
    """When the summary is made."""
    given: dict[str, Any] = {"oracle": dptop.CountMin(8, 2), "capacity": 5, "candidates": "estimates"} | change
    with pytest.raises(dptop.InvalidParameter, match=f"^{message}"):
        dptop.Tracked(given.pop("oracle"), **given)


def test_an_oracle_must_be_empty() -> None:
    """What it counted before would not be tracked, and its bounds would not cover it."""
    sketch = dptop.CountMin(8, 2)
    sketch.update("a")
    sketch.update("a", -1)
    with pytest.raises(dptop.InvalidParameter, match="oracle must be empty"):
        dptop.Tracked(sketch, 5)
