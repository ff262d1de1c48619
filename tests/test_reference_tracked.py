"""Native tracking by largest estimates is that of the twin, label by label and estimate by estimate."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import dptop
from dptop.reference.tracked import Tracked as Twin
from foreign_oracles import Exact
from sketching import twin_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dptop.oracle import LinearSketch

Label = int | str | bytes
SKETCHES: dict[str, Callable[..., dptop.CountMin | dptop.CountSketch]] = {
    "count-min": dptop.CountMin,
    "count-sketch": dptop.CountSketch,
}
KINDS: dict[str, Callable[[int], Label]] = {
    "integers": lambda rank: (rank << 40) - 7,
    "strings": lambda rank: f"label {rank}" * (1 + 20 * (rank % 7 == 0)),
    "bytes": lambda rank: bytes([rank % 256, 0, rank // 256]),
}


def stream_of(kind: str, seed: int, items: int, labels: int) -> list[Label | None]:
    """Return items of few and of many labels, with nulls among them."""
    generator = random.Random(f"{kind} {seed}")
    made = [KINDS[kind](int(labels ** generator.random())) for _ in range(items)]
    return [None if generator.random() < 0.02 else item for item in made]


def state(tracked: dptop.Tracked) -> list[tuple[Label, int]]:
    """Return the tracked labels with their stored estimates, the one stored first before the others."""
    top = tracked._top
    assert top is not None
    labels: Any = top.labels(0, list(range(top.tracked())))
    return list(zip(labels, top.stored(), strict=True))


def pair(sketch: LinearSketch, capacity: int, stream: Sequence[Label | None]) -> tuple[dptop.Tracked, Twin[Label]]:
    """Return an empty summary and its twin, with the same keys and the same noise in the cells."""
    tracked = dptop.Tracked(sketch, capacity, "estimates")
    oracle = twin_of(tracked._cells, [label for label in dict.fromkeys(stream) if label is not None])
    oracle.cells = tracked._cells.cells()
    return tracked, Twin(oracle, capacity)


@pytest.mark.parametrize("rule", SKETCHES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("width", "depth", "capacity"), [(1, 1, 3), (40, 3, 1), (40, 3, 25), (300, 5, 2000)])
def test_tracking_is_that_of_the_twin(rule: str, kind: str, width: int, depth: int, capacity: int) -> None:
    """One by one, in batches, weighted, and with noise in the cells before the first item."""
    for seed in range(3):
        stream = stream_of(kind, seed, 1500, 400)
        generator = random.Random(seed)
        weights = [generator.choice([0, 1, 1, 2, 30]) for _ in stream]
        sketch = SKETCHES[rule](width, depth)
        if seed == 2:
            sketch = sketch.with_noise(epsilon=0.5)
        tracked, twin = pair(sketch, capacity, stream)
        third = len(stream) // 3
        tracked.extend(stream[:third])
        twin.read(stream[:third])
        assert state(tracked) == list(twin.stored.items())
        for item, weight in zip(stream[third : third + 50], weights[third:], strict=False):
            tracked.update(item, weight)
            twin.update(item, weight)
            assert state(tracked) == list(twin.stored.items())
        tracked.extend(stream[third + 50 :], weights[third + 50 :])
        for item, weight in zip(stream[third + 50 :], weights[third + 50 :], strict=True):
            twin.update(item, weight)
        assert state(tracked) == list(twin.stored.items())
        assert tracked._cells.cells() == twin.oracle.cells  # type: ignore[attr-defined]  # a sketch of the reference
        counted = weights[third:]
        assert tracked._length() == third - stream[:third].count(None) + sum(
            weight for item, weight in zip(stream[third:], counted, strict=True) if item is not None
        )


class Wild(Exact):
    """An oracle whose estimates rise and fall, are often equal, and tell the same for the same past."""

    def estimate(self, item: Any) -> int:
        super().estimate(item)
        return random.Random(f"{item} {self.counts[item] // 3}").randrange(-5, 15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("capacity", [1, 7, 500])
def test_an_oracle_of_another_library_is_tracked_as_the_twin_tracks_it(kind: str, capacity: int) -> None:
    """It gets the items in their order, whole, without nulls and zero weights, and is asked after each."""
    stream = stream_of(kind, capacity, 2000, 300)
    generator = random.Random(capacity)
    weights = [generator.choice([0, 1, 5]) for _ in stream]
    mine, other = Wild(), Wild()
    tracked, twin = dptop.Tracked(mine, capacity, "estimates"), Twin[Any](other, capacity)
    tracked.extend(stream[:900])
    twin.read(stream[:900])
    tracked.extend(iter(stream[900:1000]))
    twin.read(stream[900:1000])
    tracked.extend(stream[1000:], weights[1000:])
    for item, weight in zip(stream[1000:], weights[1000:], strict=True):
        twin.update(item, weight)
    assert state(tracked) == list(twin.stored.items())
    assert mine.updates == other.updates
    assert mine.asked == other.asked
    assert {type(item) for item in mine.asked} == {type(KINDS[kind](1))}


def test_a_foreign_oracle_beside_space_saving_is_not_asked_before_the_end() -> None:
    """SpaceSaving tracks labels by itself; the oracle counts what it counts."""
    stream = stream_of("strings", 1, 2000, 300)
    oracle = Exact()
    tracked = dptop.Tracked(oracle, 30)
    alone = dptop.SpaceSaving(30)
    tracked.extend(stream)
    alone.extend(stream)
    assert not oracle.asked
    assert oracle.counts == Counter(item for item in stream if item is not None)
    assert tracked._tables is not None
    labels = tracked._labels(0, range(30))
    [(_, counts)] = tracked._tables.snapshot()[1]
    assert dict(zip(labels, counts, strict=True)) == dict(alone.private_counters())


@pytest.mark.parametrize("rule", SKETCHES)
def test_candidates_of_space_saving_are_those_of_space_saving(rule: str) -> None:
    """Beside a sketch too, with weights; and the sketch counts what a sketch with its keys counts alone."""
    stream = stream_of("integers", 3, 5000, 900)
    weights = [1 + len(str(item)) % 3 for item in stream]
    alone = dptop.SpaceSaving(50, tie="most-recent")
    sketch = SKETCHES[rule](64, 3, seed=3)
    tracked = dptop.Tracked(sketch, 50, tie="most-recent")
    for summary in (alone, sketch, tracked):
        summary.extend(stream, weights)
    assert tracked._tables is not None
    [(minimum, counts)] = tracked._tables.snapshot()[1]
    assert dict(zip(tracked._labels(0, range(50)), counts, strict=True)) == dict(alone.private_counters())
    assert minimum == min(counts)
    assert tracked._cells.cells() == sketch._sketch.cells()


class Told(Exact):
    """An oracle whose estimates are told beforehand."""

    def __init__(self, estimates: list[int]) -> None:
        super().__init__()
        self.told = iter(estimates)

    def estimate(self, item: Any) -> int:
        return next(self.told)


@pytest.mark.parametrize(
    ("stream", "estimates", "expected"),
    [
        (
            "abac",
            [1, 1, 1, 2],
            {"a": 1, "c": 2},
        ),  # of two with 1 the one that was stored first goes: b, as a came again
        ("abc", [1, 1, 1], {"a": 1, "b": 1}),  # a newcomer must exceed the smallest
        ("aba", [5, 3, 1], {"b": 3, "a": 1}),  # a label's own estimate may fall
        ("abac", [5, 3, 1, 2], {"b": 3, "c": 2}),
        ("abcb", [-3, -2, -1, -5], {"c": -1, "b": -5}),
    ],
)
def test_which_label_goes(stream: str, estimates: list[int], expected: dict[str, int]) -> None:
    """The rule on streams of a few items, for two labels."""
    twin = Twin[str](Told(estimates), 2)
    twin.read(stream)
    assert list(twin.stored.items()) == list(expected.items())
    tracked = dptop.Tracked(Told(estimates), 2, "estimates")
    tracked.extend(list(stream))
    assert state(tracked) == list(expected.items())
