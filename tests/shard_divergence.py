"""The exact divergence of a release of two shards: the law of its output, summed over all outputs, in both directions.

Neighbours differ in one item of the first shard. A *side* of a label is its counters (in the first shard, in the second
one), None where it is not tracked. Given the noisy minima, labels are published independently, and one with the same
counters on both sides leaves the divergence alone (tests/test_exact_divergence.py). So a pair of streams matters only
through its shape: the minima, and the sides of the labels whose counters in the first shard differ.

Sums are in floats. Noise beyond a reach is left out, and outputs of one label with equal odds are put together, which
changes no divergence but by rounding; all of it is below `SLACK`.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dptop.noise import pmf, tail
from neighbours import State, Stream, neighbours, run_reference, streams

if TYPE_CHECKING:
    from fractions import Fraction

    from dptop.tie import Tie

SLACK: Final = 1e-7
LEFT_OUT: Final = 1e-11

Keeps = Callable[[int, int], bool]
Side = tuple[int | None, int | None]
Noise = dict[int, float]
Law = dict[Hashable, Any]
"""The chance of each outcome of a label, as an array over the noisy minima of both shards."""
NO_NOISE: Final[Noise] = {0: 1.0}


@dataclass(frozen=True)
class Shape:
    """Two neighbours: minima of the first shard, that of the second, and for each label that differs both its sides."""

    minima: tuple[int, int]
    other: int
    labels: tuple[tuple[Side, Side], ...]

    def swapped(self) -> Shape:
        """Return the same neighbours, seen from the other one."""
        return Shape(self.minima[::-1], self.other, tuple((b, a) for a, b in self.labels))


@lru_cache(maxsize=32)
def noise(epsilon: Fraction) -> Noise:
    """Return P[Z = z] for all z but a part smaller than LEFT_OUT."""
    reach = next(g for g in itertools.count() if tail(epsilon, g) < LEFT_OUT / 2)
    return {z: float(pmf(epsilon, z)) for z in range(-reach, reach + 1)}


@dataclass(frozen=True, eq=False)
class Release:
    """How two shards are released; subclasses say what is published of a label.

    Attributes:
        keeps: the comparison of each shard.
        selection: the noise that is compared.
        minimum: the noise of the minima; its own for each shard, unless `shared`.
    """

    keeps: tuple[Keeps, Keeps]
    selection: Noise
    minimum: Noise
    shared: bool = False

    def minima(self, first: int, second: int, grid: tuple[range, range]) -> Any:
        """Return the joint law of the noisy minima."""
        if self.shared:
            chances = [[self.minimum.get(u - first, 0) * (u - first == w - second) for w in grid[1]] for u in grid[0]]
            return np.array(chances)
        one, two = (
            np.array([self.minimum.get(u - m, 0) for u in us]) for m, us in zip((first, second), grid, strict=True)
        )
        return one[:, None] * two

    def passes(self, counter: int | None, shard: int, us: range) -> dict[Any, Any]:
        """Return the chance of each v that passes, and of none (None), as arrays over u."""
        if counter is None:
            return {None: np.ones(len(us))}
        found: dict[Any, Any] = {}
        for z, p in self.selection.items():
            found[counter + z] = np.array([p * self.keeps[shard](counter + z, u) for u in us])
        found[None] = 1 - sum(found.values())
        return found

    def law(self, side: Side, grid: tuple[range, range]) -> Law:
        """Return the law of what is published of a label."""
        found: Law = defaultdict(lambda: np.zeros((len(grid[0]), len(grid[1]))))
        one, two = (self.used(self.passes(c, shard, grid[shard])) for shard, c in enumerate(side))
        for (v, p), (w, q) in itertools.product(one.items(), two.items()):
            for outcome, chance in self.published(side, v, w):
                found[outcome] += p[:, None] * q * chance
        return found

    def used(self, passing: dict[Any, Any]) -> dict[Any, Any]:
        """Return the law of what is used of v, by default all."""
        return passing

    def published(self, side: Side, v: Any, w: Any) -> Iterator[tuple[Hashable, float]]:
        """Yield what is published where these noisy counters pass, with chances that sum to one."""
        raise NotImplementedError


class LocalParts(Release):
    """Local sums, and more: the noisy counters of all shards that selected a label, one by one."""

    def published(self, side: Side, v: Any, w: Any) -> Iterator[tuple[Hashable, float]]:
        yield (v, w), 1.0


class LocalSums(Release):
    """Local sums as they are published: who selected a label, and the sum of their noisy counters."""

    def published(self, side: Side, v: Any, w: Any) -> Iterator[tuple[Hashable, float]]:
        yield (v is None, w is None, (v or 0) + (w or 0)), 1.0


@dataclass(frozen=True, eq=False)
class Counted(Release):
    """Central counts: who selected a label, and the sum of their counters with noise, that of `count`."""

    count: Noise = field(kw_only=True)

    def used(self, passing: dict[Any, Any]) -> dict[Any, Any]:
        """Return only whether the label was selected: 0 for any v."""
        return {None: passing[None], 0: 1 - passing[None]}

    def total(self, side: Side, v: Any, w: Any) -> int:
        """Return what gets the noise: the sum of counters over the shards that selected the label."""
        return sum(c or 0 for c, passed in zip(side, (v, w), strict=True) if passed is not None)

    def published(self, side: Side, v: Any, w: Any) -> Iterator[tuple[Hashable, float]]:
        if v is None and w is None:
            yield None, 1.0
            return
        for z, p in self.count.items():
            yield (v is None, w is None, self.total(side, v, w) + z), p


def grid_of(release: Release, shape: Shape) -> tuple[range, range]:
    reach = max(release.minimum)
    return (
        range(min(shape.minima) - reach, max(shape.minima) + reach + 1),
        range(shape.other - reach, shape.other + reach + 1),
    )


@lru_cache(maxsize=4096)
def odds(release: Release, sides: tuple[Side, Side], grid: tuple[range, range]) -> tuple[Any, Any]:
    """Return the chances of what is published of a label, on both sides; outcomes with equal odds are put together."""
    laws = [release.law(side, grid) for side in sides]
    nothing = np.zeros((len(grid[0]), len(grid[1])))
    outcomes = list(dict.fromkeys(itertools.chain(*laws)))
    p, q = (np.array([law.get(o, nothing) for o in outcomes]).reshape(len(outcomes), -1) for law in laws)
    groups: dict[bytes, list[int]] = defaultdict(list)
    for i, (one, two) in enumerate(zip(p, q, strict=True)):
        possible = one + two > 0
        ratio = np.round(one[possible] / (one + two)[possible], 10)
        same = len(ratio) > 0 and ratio.min() == ratio.max()  # at all minima where the outcome is possible
        groups[ratio[:1].tobytes() if same else possible.tobytes() + ratio.tobytes()].append(i)
    together = [np.array([side[members].sum(0) for members in groups.values()]) for side in (p, q)]
    return together[0], together[1]


def divergence(release: Release, shape: Shape, factor: float) -> float:
    """Return the sum over outputs of max(0, P[X gives o] - factor * P[X' gives o]), to within SLACK."""
    grid = grid_of(release, shape)
    first, second = (release.minima(m, shape.other, grid).reshape(-1) for m in shape.minima)
    tables = [odds(release, sides, grid) for sides in shape.labels]
    total = 0.0
    for rows in itertools.product(*(range(len(p)) for p, _ in tables)):
        one, two = first, second
        for (p, q), row in zip(tables, rows, strict=True):
            one, two = one * p[row], two * q[row]
        total += float(np.maximum(0, one - factor * two).sum())
    return total


def worst(release: Release, shapes: frozenset[Shape] | list[Shape], factor: float) -> float:
    """Return the largest divergence over the shapes, in both directions."""
    return max(divergence(release, s, factor) for shape in shapes for s in (shape, shape.swapped()))


def far(heights: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield heights of a state, and, for one label above the minimum, greater ones, where it is nearly always shown."""
    yield heights
    if max(heights, default=0) == 1:
        yield from ((*heights[:-1], high) for high in (8, 14))


@cache
def shapes(tie: Tie, longest: int = 5) -> frozenset[Shape]:
    """Return every shape of two shards of capacity 2 that streams of up to so many items leave, up to renaming.

    Counters are relative to the smaller minimum of their shard. The labels of the second shard are any of those that
    differ in the first one, or others.
    """
    heights: set[tuple[int, ...]] = {()}
    for stream in streams(longest):
        state = run_reference(stream, 2, tie)
        heights |= set(far(tuple(sorted(c - state.minimum for c in state.counts.values()))))
    seen = set()
    for minima, pairs in first_shards(tie, longest):
        for h in heights:
            for placed in itertools.permutations([*h, *[None] * len(pairs)], len(pairs)):
                labels = (((a, c), (b, c)) for (a, b), c in zip(pairs, placed, strict=True))
                seen.add(Shape(minima, 0, tuple(sorted(labels, key=repr))))
    return frozenset(seen)


def first_shards(tie: Tie, longest: int) -> set[tuple[tuple[int, int], tuple[tuple[int | None, int | None], ...]]]:
    """Return the minima of the first shard and the counters of labels that differ there, in X and in X'."""
    found = set()
    for _, long, short in neighbours(run_reference, 2, tie, longest):
        base = min(long.minimum, short.minimum)
        pairs = differing(long, short, base)
        found.add(((long.minimum - base, short.minimum - base), pairs))
        if pairs == ((1, 0),) and long.minimum == short.minimum:
            found |= {((0, 0), ((1 + up, up),)) for up in (8, 14)}
    return found


def differing(long: State, short: State, base: int) -> tuple[tuple[int | None, int | None], ...]:
    """Return the counters above `base` of labels that differ, None where a label is not tracked."""
    states = (long, short)
    pairs = (tuple(s.counts[x] - base if x in s.counts else None for s in states) for x in labels_of(states))
    return tuple(sorted(((a, b) for a, b in pairs if a != b), key=repr))


def labels_of(states: tuple[State, ...]) -> list[int]:
    return sorted({x for state in states for x in state.counts})


def shape_of(long: Stream, short: Stream, other: Stream, tie: Tie) -> Shape:
    """Return the shape of two neighbours, with counters as they are: the streams of the first shard, and the second."""
    x, y, z = (run_reference(stream, 2, tie) for stream in (long, short, other))
    labels = (tuple((s.counts.get(label), z.counts.get(label)) for s in (x, y)) for label in labels_of((x, y)))
    return Shape((x.minimum, y.minimum), z.minimum, tuple((a, b) for a, b in labels if a != b))
