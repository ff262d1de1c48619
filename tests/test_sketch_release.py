"""Sketches by themselves: labels that the caller declares, deletions, merging, and what is refused."""

from __future__ import annotations

import random
import resource
import time
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import dptop
from containers import SECRET
from dptop import gaussian
from dptop.envelope import squares_failure
from dptop.mechanism import SketchNoise
from dptop.privacy import exact_epsilon, floor_epsilon
from dptop.release import Request
from dptop.release.sketch import noise_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Drawn

ASK: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
SKETCHES = [dptop.CountMin, dptop.CountSketch]
Sketch = dptop.CountMin | dptop.CountSketch


def counted(kind: Callable[..., Any], counts: dict[Any, int], width: int = 512, depth: int = 5, **more: Any) -> Any:
    sketch = kind(width, depth, **more)
    sketch.extend(list(counts), list(counts.values()))
    return sketch


# Declared labels


@pytest.mark.parametrize("kind", SKETCHES)
def test_declared_labels_have_the_sketch_s_estimates(kind: Callable[..., Any], no_noise: Drawn) -> None:
    """Each once, sorted like all rows, whether they occurred or not, long ones too; without a threshold."""
    generator = random.Random(3)
    labels = [f"label {i}" * generator.choice([1, 1, 30]) for i in range(300)]
    counts = {label: generator.randrange(1, 500) for label in labels[:200]}
    sketch = counted(kind, counts, 64, 3, max_label_bytes=100)
    estimates = dict(zip(labels, sketch.estimate(labels), strict=True))
    generator.shuffle(labels)
    result = dptop.release(sketch, **ASK, labels=labels + labels[:50])
    assert {row.item: row.count for row in result} == estimates
    assert len(result) == 300
    assert [(-row.count, row.item) for row in result] == sorted((-row.count, row.item) for row in result)
    assert len(no_noise.cells) == 1
    text = result.explain()
    for fact in ("the 300 that the caller declared", f"{kind.__name__}, 3 rows of 64 cells", "(1, 1e-06)"):
        assert fact in text
    assert "Assumed" not in text
    assert result.mechanism == "public-labels"


INPUTS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "iterator": iter,
    "numpy": np.array,
    "arrow": pa.array,
    "polars": pl.Series,
}


@pytest.mark.parametrize("labels", [["a", "b"], [2**63 - 1, -5]])
@pytest.mark.parametrize("make", INPUTS)
def test_labels_may_be_declared_by_any_input(make: str, labels: list[Any], no_noise: Drawn) -> None:
    """They come back as plain Python objects."""
    sketch = counted(dptop.CountMin, {labels[0]: 7})
    result = dptop.release(sketch, **ASK, labels=INPUTS[make](labels))
    assert [(row.item, row.count) for row in result] == [(labels[0], 7), (labels[1], 0)]
    assert {type(row.item) for row in result} == {type(labels[0])}
    assert no_noise.cells


@pytest.mark.parametrize("labels", [None, "abc", b"abc", 3, {"a": 1}, ["a", None], ["a", 1], [True], [1.5], [["a"]]])
def test_what_are_no_labels_is_refused_before_anything_is_spent(labels: Any) -> None:
    """A single text is none: its letters would be."""
    sketch = counted(dptop.CountMin, {SECRET: 5})
    with pytest.raises(dptop.InvalidParameter, match=r"labels") as caught:
        dptop.release(sketch, **ASK, labels=labels)
    assert SECRET not in str(caught.value)
    assert not sketch._ledger.entries
    assert dptop.release(sketch, **ASK, labels=[]).rows == ()


def test_labels_are_for_a_sketch_by_itself() -> None:
    """What tracks labels has its own."""
    for summary in (dptop.SpaceSaving(5), dptop.Tracked(dptop.CountMin(8, 2), 5)):
        with pytest.raises(dptop.InvalidParameter, match="labels is for sketches"):
            dptop.release(summary, **ASK, labels=["a"])
    with pytest.raises(dptop.InvalidParameter, match="noise is for sketches"):
        dptop.release(dptop.SpaceSaving(5), **ASK, noise="laplace")


@pytest.mark.parametrize("kind", SKETCHES)
def test_labels_of_another_kind_have_estimates_too(kind: Callable[..., Any], no_noise: Drawn) -> None:
    """A refusal would tell one neighbour, the empty stream, from the other. Text and its bytes are one label there."""
    streams: list[dict[Any, int]] = [{}, {"a": 1}, {1: 1}, {b"a": 1}]
    for stream in streams:
        for label in ("a", 1, b"a"):
            result = dptop.release(counted(kind, stream), **ASK, labels=[label])
            same = sum(count for other, count in stream.items() if (other == 1) == (label == 1))
            assert [(row.item, row.count) for row in result] == [(label, same)]
    assert no_noise.cells


@pytest.mark.parametrize("kind", SKETCHES)
def test_items_may_be_taken_back(kind: Callable[..., Any], no_noise: Drawn) -> None:
    """Deletions bring estimates back, to 0 for a stream that was taken back whole; its length is what was moved."""
    generator = random.Random(1)
    stream = [generator.randrange(500) for _ in range(5000)]
    sketch = kind(16, 3)
    kept = kind(16, 3, seed=9)
    twin = kind(16, 3, seed=9)
    sketch.extend(stream)
    sketch.extend(stream, [-1] * len(stream))
    for label in stream[:100]:
        kept.update(label, 5)
        twin.update(label, 3)
        kept.update(label, -2)
    labels = list(range(500))
    assert sketch.estimate(labels) == [0] * 500
    assert kept.estimate(labels) == twin.estimate(labels)
    assert sketch._length() == 2 * len(stream)
    result = dptop.release(sketch, **ASK, labels=labels, length=2 * len(stream))
    assert {row.count for row in result} == {0}
    short = counted(kind, {"a": 50})
    short.update("a", -50)
    with pytest.raises(dptop.InvalidParameter, match="length must bound"):
        dptop.release(short, **ASK, labels=["a"], length=99)
    with pytest.raises(dptop.BudgetExhausted, match="asking again"):
        dptop.release(short, **ASK, labels=["a"])
    assert no_noise.cells


@pytest.mark.parametrize("noise", ["laplace", "gaussian", None])
def test_declared_labels_leave_all_to_the_noise(noise: str | None, no_noise: Drawn) -> None:
    """Nothing is selected: the cells have the whole epsilon, and Gaussian ones the whole delta; a share costs 2 %."""
    epsilon = exact_epsilon(0.7)
    for depth in (2, 30):
        ask: dict[str, Any] = {"epsilon": 0.7, "delta": 1e-6, "labels": ["a"], "noise": noise}
        for share in (None, 0.01):
            no_noise.cells.clear()
            dptop.release(dptop.CountMin(64, depth), **ask, share=share)
            [made] = no_noise.cells
            left = epsilon if share is None else epsilon - floor_epsilon(epsilon / 50)
            assert made.state.epsilon == left
            if made.kind == "gaussian":
                assert made.state.delta == Decimal("1e-6")
                assert made.variance == gaussian.smallest_variance(left, Decimal("1e-6"), depth)
            else:
                assert made.state.delta == 0
                assert made.epsilon_cell == floor_epsilon(left / depth)
            assert noise in (None, made.kind)
    assert [epsilon for epsilon, _ in no_noise.counters] == [floor_epsilon(epsilon / 50)] * 2


def test_the_noise_that_spreads_less_is_taken() -> None:
    """A few rows are Laplace's, many are Gauss's; where there is no Gaussian noise, Laplace's."""
    for depth, expected in ((1, "laplace"), (3, "laplace"), (60, "gaussian")):
        result = dptop.release(dptop.CountMin(64, depth), **ASK, labels=[])
        assert result.parameters["noise"] == expected
    result = dptop.release(dptop.CountMin(64, 60), epsilon=1.0, delta=1e-310, labels=[])
    assert result.parameters["noise"] == "laplace"
    with pytest.raises(dptop.InvalidParameter):
        dptop.release(dptop.CountMin(64, 60), epsilon=1.0, delta=1e-310, labels=[], noise="gaussian")


# Noise first


@pytest.mark.parametrize("kind", SKETCHES)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_noise_before_the_first_item_is_all_the_noise(kind: Callable[..., Any], noise: str) -> None:
    """It is in the cells once; a release reads them, and spends what was made to be spent."""
    delta = 1e-7 if noise == "gaussian" else None
    sketch = kind(64, 5).with_noise(epsilon=0.75, delta=delta, noise=noise)
    before = sketch._sketch.cells()
    sketch.extend(["a"] * 100)
    assert any(map(any, before))  # all of 320 cells are without noise once in 10^300
    made = sketch.noise
    assert isinstance(made, SketchNoise)
    estimate = sketch.estimate("a")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"noise": "laplace" if noise == "gaussian" else "gaussian"}, "noise must be that which is in the cells"),
        ({"epsilon": 0.74}, "epsilon and delta must cover the noise in the cells"),
        *([({"delta": 1e-8}, "epsilon and delta must cover")] if delta else []),
    ]
    for refused, message in cases:
        with pytest.raises(dptop.InvalidParameter, match=message):
            dptop.release(sketch, **(ASK | {"labels": ["a"]} | refused))
    assert not sketch._ledger.entries
    result = dptop.release(sketch, epsilon=0.75, delta=1e-7, labels=["a"])
    assert [(row.item, row.count) for row in result] == [("a", estimate)]
    assert "before the first item, drawn exactly" in result.explain()
    assert result.parameters["noise"] == noise
    assert repr(sketch).startswith(f"{kind.__name__}(width=64, depth=5, noise={noise!r}")


BAD_NOISE: list[tuple[dict[str, Any], str]] = [
    ({"epsilon": 0}, "epsilon must"),
    ({"epsilon": 1.0, "noise": "uniform"}, "noise must be"),
    ({"epsilon": 1.0, "noise": "gaussian"}, "delta must be given with Gaussian noise"),
    ({"epsilon": 1.0, "delta": 1e-6}, "delta must be given with Gaussian noise and not with Laplace"),
    ({"epsilon": 1.0, "noise": "gaussian", "delta": 1.0}, "delta must"),
    ({"epsilon": 1.0, "seed": -1}, "seed must"),
    ({"epsilon": 2.0**-20}, "epsilon / depth must"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_NOISE)
def test_noise_out_of_range_is_refused(arguments: dict[str, Any], message: str) -> None:
    """As is noise after the first item, and noise on noise."""
    with pytest.raises(dptop.InvalidParameter, match=f"^{message}"):
        dptop.CountMin(2, 2**13).with_noise(**arguments)
    used = counted(dptop.CountMin, {"a": 1})
    used.update("a", -1)
    for sketch in (used, dptop.CountMin(2, 2).with_noise(epsilon=1.0)):
        with pytest.raises(dptop.InvalidParameter, match="noise must come before the first item"):
            sketch.with_noise(epsilon=1.0)


def test_what_noise_leaves_of_delta_does_not_depend_on_the_caller_s_decimals() -> None:
    """With a context of three digits the difference would be rounded up, and more be spent than there is."""
    spent = []
    for digits in (28, 3):
        with localcontext() as context:
            context.prec = digits
            sketch = dptop.CountSketch(4096, 25).with_noise(epsilon=0.5, delta=1.0009e-7, noise="gaussian")
            assert sketch.noise is not None
            request = Request(epsilon=1.0, delta=1e-6)
            spent.append(noise_of(request, sketch, request.split().labels)[1])
    assert spent[0] == spent[1]
    assert Fraction(spent[0]) + Fraction("1.0009e-7") == Fraction("1e-6")


# Merging


@pytest.mark.parametrize("kind", SKETCHES)
def test_merged_sketches_have_counted_both_streams(kind: Callable[..., Any], no_noise: Drawn) -> None:
    """Cell by cell what one sketch of both holds; and one release for both."""
    whole = kind(32, 3, seed=4)
    one, other = kind(32, 3, seed=4), kind(32, 3, seed=4).empty_copy()
    one.extend([1, 2, 3] * 50, [1, 2, -1] * 50)
    other.extend([3, 4] * 50)
    for _ in range(50):
        whole.extend([1, 2, 3, 3, 4], [1, 2, -1, 1, 1])
    one.merge(other)
    assert one._sketch.cells() == whole._sketch.cells()
    assert one._length() == whole._length()
    result = dptop.release(one, **ASK, labels=[1, 2, 3, 4])
    assert {row.item: row.count for row in result} == dict(zip([1, 2, 3, 4], whole.estimate([1, 2, 3, 4]), strict=True))
    assert result.private is False
    assert no_noise.cells
    with pytest.raises(dptop.BudgetExhausted, match="merged into another"):
        dptop.release(other, **ASK, labels=[1])
    with pytest.raises(dptop.BudgetExhausted, match="one release per stream"):
        dptop.release(one, **ASK, labels=[1])


def parts() -> tuple[Sketch, Sketch]:
    first = counted(dptop.CountMin, {"a": 100})
    second = first.empty_copy()
    second.update("b", 100)
    return first, second


@pytest.mark.parametrize("released", [0, 1])
def test_what_was_released_of_a_part_counts_for_the_whole(released: int) -> None:
    """Whichever of the two it was."""
    both = parts()
    dptop.release(both[released], **ASK, labels=["a"])
    both[0].merge(both[1])  # type: ignore[arg-type]  # both are CountMin
    for sketch in both:
        with pytest.raises(dptop.BudgetExhausted):
            dptop.release(sketch, **ASK, labels=["a"])


def test_a_budget_covers_what_both_parts_spent() -> None:
    """The sums of both, within the budget of the one that goes on."""
    first = counted(dptop.CountMin, {"a": 100}, budget=dptop.Budget(3.0, 3e-6))
    second = first.empty_copy()
    assert second.budget == first.budget
    second.update("b", 100)
    for sketch in (first, second):
        dptop.release(sketch, **ASK, labels=["a"])
    first.merge(second)
    dptop.release(first, **ASK, labels=["a", "b"])
    with pytest.raises(dptop.BudgetExhausted, match="within budget"):
        dptop.release(first, **ASK, labels=["a"])


def test_a_part_is_merged_once() -> None:
    """Twice it would count each of its items twice, and noise for one hides one."""
    first, second = parts()
    first.merge(second)  # type: ignore[arg-type]  # both are CountMin
    third = first.empty_copy()
    for target in (first, third):
        with pytest.raises(dptop.IncompatibleSummaries, match="Merge each part once"):
            target.merge(second)  # type: ignore[arg-type]  # both are CountMin
    with pytest.raises(dptop.IncompatibleSummaries, match="Merge each part once"):
        second.merge(third)  # type: ignore[arg-type]  # both are CountMin
    assert first.estimate("b") == 100
    dptop.release(first, **ASK, labels=["a"])
    dptop.release(third, **ASK, labels=["a"])


def test_what_does_not_fit_is_not_merged() -> None:
    """Other keys, width, depth, length limit, type or kind of labels, noise, or itself; nothing changes."""
    sketch = counted(dptop.CountMin, {SECRET: 5}, 64, 3, seed=1)
    numbers = counted(dptop.CountMin, {1: 5}, 64, 3, seed=1)
    unfinished = dptop.CountMin(64, 3, seed=1)
    with pytest.raises(ZeroDivisionError):
        unfinished.extend(1 // (2 - i) for i in range(5))
    cases: list[tuple[Any, str]] = [
        (dptop.CountMin(64, 3, seed=2), "hash keys"),
        (dptop.CountMin(64, 3), "hash keys"),
        (dptop.CountMin(63, 3, seed=1), "width"),
        (dptop.CountMin(64, 4, seed=1), "depth"),
        (dptop.CountMin(64, 3, seed=1, max_label_bytes=64), "max_label_bytes"),
        (dptop.CountSketch(64, 3, seed=1), "merges with another one; got CountSketch"),
        (numbers, "one kind of label"),
        (dptop.CountMin(64, 3, seed=1).with_noise(epsilon=1.0), "noise"),
        (unfinished, "once their inputs are read"),
        (sketch, "got CountMin"),
        (dptop.SpaceSaving(5), "got SpaceSaving"),
        (None, "got NoneType"),
    ]
    cells = sketch._sketch.cells()
    for other, message in cases:
        with pytest.raises(dptop.IncompatibleSummaries, match=message) as caught:
            sketch.merge(other)
        assert SECRET not in str(caught.value)
        if isinstance(other, dptop.CountMin) and other is not sketch and other is not unfinished:
            with pytest.raises(dptop.IncompatibleSummaries):
                other.merge(sketch)
    assert sketch._sketch.cells() == cells
    dptop.release(sketch, **ASK, labels=["a"])
    dptop.release(numbers, **ASK, labels=[1])


def test_an_error_of_merging_changes_no_ledger() -> None:
    """The other part can still be released."""
    one, other = dptop.CountMin(8, 2), dptop.CountMin(8, 2)
    with pytest.raises(dptop.IncompatibleSummaries):
        one.merge(other)
    for sketch in (one, other):
        dptop.release(sketch, **ASK, labels=["a"])


# Bad shapes

HUGE = 2**31


@pytest.mark.parametrize("kind", SKETCHES)
@pytest.mark.parametrize(
    ("width", "depth", "message"),
    [
        *[(value, 1, "width must") for value in (0, -1, HUGE + 1, 2.0, True, None, "5", float("nan"))],
        *[(5, value, "depth must") for value in (0, -1, 2**16 + 1, 3.0, True, None)],
        (HUGE, 2**16 - 1, "a sketch must fit into memory"),
        (HUGE, 10_001, "a sketch must fit into memory"),
    ],
)
def test_a_shape_out_of_range_is_refused_at_once(
    kind: Callable[..., Any], width: Any, depth: Any, message: str
) -> None:
    """At once, before anything is allocated."""
    used, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with pytest.raises(dptop.InvalidParameter, match=f"^{message}"):
        kind(width, depth)
    assert time.monotonic() - began < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 64 * 1024  # KiB


def test_a_median_has_an_odd_depth() -> None:
    """An even one is refused, and says so."""
    with pytest.raises(dptop.InvalidParameter, match="depth must be odd"):
        dptop.CountSketch(8, 4)


@pytest.mark.parametrize("seed", [-1, 2**63, 1.0, True, "1"])
def test_a_seed_out_of_range_is_refused(seed: Any) -> None:
    """It is a whole number."""
    with pytest.raises(dptop.InvalidParameter, match=r"^seed must"):
        dptop.CountMin(8, 2, seed=seed)


def test_known_keys_make_every_release_not_private() -> None:
    """Also through an empty copy and a merge, and whatever the noise."""
    for kind in SKETCHES:
        seeded = kind(64, 3, seed=3)
        part = seeded.empty_copy()
        part.update("a")
        seeded.merge(part)
        for sketch in (seeded, seeded.empty_copy(), seeded.empty_copy().with_noise(epsilon=0.5)):
            result = dptop.release(sketch, **ASK, labels=["a"])
            assert result.private is False
            assert result.explain().startswith("NOT PRIVATE: a seed for tests determined noise or hashes")
        assert dptop.release(kind(64, 3), **ASK, labels=["a"]).private is True


def test_a_bound_on_squares_is_used_where_its_failure_is_affordable() -> None:
    """Intervals of CountSketch with a declared length: from the rows where there are many, from the length at few."""
    assert squares_failure(61) < 0.05 / 8 < squares_failure(3)
    spans = {}
    for depth in (3, 61):
        sketch = counted(dptop.CountSketch, {"a": 1000}, 4096, depth)
        result = dptop.release(sketch, **ASK, labels=["a"], length=10**6, noise="gaussian")
        spans[depth] = result[0].high - result[0].low
    assert spans[61] < 1000 < 10_000 < spans[3]
