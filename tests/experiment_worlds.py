"""Raw rows of made-up experiments: one in which every claim is true, and one in which none is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from experiment_rows import row
from experiments import plan
from experiments.methods import METHODS, PLAIN
from experiments.report.keys import SKETCHES
from experiments.report.series import COMMON

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from experiments.report.series import Point
    from experiments.results import Row

__all__ = ["as_claimed", "contrary"]

LENGTH = 2**24
CAPACITIES = (64, 512, 4096)


class Measured(NamedTuple):
    """What a world says of a method at a point."""

    recall: float
    precision: float
    relative_error: float
    update_ns: float
    memory_bytes: float


def as_claimed(streams: Iterable[str] = ("zipf", "words")) -> list[Row]:
    """Return rows in which all is as the paper and we claim."""
    return [*_grid(streams, _claimed, LENGTH), *_frontier(streams, _claimed_labels)]


def contrary(streams: Iterable[str] = ("zipf", "words"), length: int = LENGTH) -> list[Row]:
    """Return rows in which all is the other way round."""
    return [*_grid(streams, _contrary, length), *_frontier(streams, _contrary_labels)]


def _points(stream: str) -> Iterator[Point]:
    ks = (32, 128, 1024) if stream == "zipf" else (128, 512, 4096)
    points = [COMMON._replace(k=k) for k in ks] + [COMMON._replace(epsilon=epsilon) for epsilon in plan.FULL.epsilons]
    if stream == "zipf":
        points += [COMMON._replace(skew=skew) for skew in (1.7, 2.6)]
    else:
        points += [COMMON._replace(factor=factor) for factor in (1, 16)]
    yield from dict.fromkeys(points)


def _grid(streams: Iterable[str], world: Callable[[str, Point], Measured], length: int) -> Iterator[Row]:
    for stream in streams:
        for point in _points(stream):
            for method in METHODS:
                plain = METHODS[method].family == PLAIN
                if plain and point.epsilon != COMMON.epsilon:
                    continue
                found = world(method, point)
                yield row(
                    stream=stream,
                    length=length,
                    skew=point.skew if stream == "zipf" else None,
                    k=point.k,
                    factor=point.factor,
                    capacity=point.k * point.factor,
                    epsilon=None if plain else point.epsilon,
                    delta=None if plain else plan.DELTA,
                    method=method,
                    threshold=None,
                    memory_bytes=round(found.memory_bytes),
                    recall=found.recall,
                    precision=found.precision,
                    relative_error=found.relative_error,
                    update_ns=found.update_ns,
                )


def _doublings(value: float, of: float) -> float:
    return math.log2(value / of)


def _summary(method: str) -> str:
    """Return the private method of the same summary, the paper's own."""
    plain = {"plain-space-saving": "paper", "plain-misra-gries": "misra-gries-published"}
    named = {"misra-gries": "misra-gries-published", "stable-threshold": "paper"}
    return (plain | named).get(method, method.removeprefix("plain-"))


def _claimed(method: str, at: Point) -> Measured:
    """Return what the paper, and we, say of a method."""
    of = _summary(method)
    ks, factors = _doublings(at.k, COMMON.k), _doublings(at.factor, COMMON.factor)
    sketch = of.startswith("count-")
    sketch_recall = 0.7 - 0.03 * ks + 0.05 * factors - (0.1 if at.epsilon < 0.01 else 0)
    recall = {
        "misra-gries-published": 0.8 + 0.03 * ks - 0.13 * (at.skew - COMMON.skew) + 0.05 * factors,
        "count-min": sketch_recall,
        "count-sketch": sketch_recall - 0.3,
    }.get(of, 1.0)
    base, noise = {
        "misra-gries-published": (0.1, 0.002),
        "count-min": (0.02, 0.01),
        "count-sketch": (0.006, 0.002),
    }.get(of, (0.002, 0.002))
    trend = 0.1 * (ks if of == "count-min" else -ks) - 0.3 * factors
    error = base * (1 + 0.3 * (at.skew - COMMON.skew)) * 2**trend + (noise if at.epsilon < 0.01 else 0)
    if of == "paper" and at.factor == 1:
        error *= 2
    time = (100 if sketch else 20) / (1 + 0.6 * (at.skew - COMMON.skew)) * (2 ** (0.2 * factors) if sketch else 1)
    if method.endswith(("-selected", "-candidates")):
        time *= 0.3
    memory = (240 if sketch else 40) * at.k * at.factor
    return Measured(recall, 1.0, error, time, memory)


def _contrary(method: str, at: Point) -> Measured:
    """Return the reverse of every statement."""
    of = _summary(method).removesuffix("-selected").removesuffix("-candidates")
    ks, factors = _doublings(at.k, COMMON.k), _doublings(at.factor, COMMON.factor)
    tens, skewed = math.log10(at.epsilon / COMMON.epsilon), at.skew - COMMON.skew
    sketch = of in SKETCHES
    sketch_recall = 0.8 + 0.01 * ks - 0.03 * tens
    recall = {
        "misra-gries-published": 0.75 - 0.02 * ks + 0.05 * skewed + 0.03 * tens,
        "count-min": sketch_recall,
        "count-sketch": sketch_recall + 0.1,
        "exact-histogram": 0.2,
    }.get(of, 0.5 + 0.03 * tens) - 0.02 * factors
    base = {"misra-gries-published": 0.3, "count-min": 0.8, "count-sketch": 0.9}.get(of, 1.5)
    trend = 0.1 * ((-ks if of == "count-min" else ks) + factors)
    error = base * (1 - 0.1 * skewed) * (1 + 0.02 * tens) * 2**trend
    time = {"misra-gries-published": 20.0, "count-min": 10.0, "count-sketch": 10.0}.get(of, 40.0) * (1 + skewed)
    time *= 2 ** (0.5 * ks - 0.1 * factors if sketch else 0.2 * (ks + factors))
    memory = {"misra-gries-published": 400, "count-min": 200, "count-sketch": 200}.get(of, 800) * at.k * 2 ** (0.2 * ks)
    precision = 0.5
    if method.startswith("plain-"):
        recall, error = recall + 0.1, error - 0.1
    if method == "stable-threshold":
        recall, precision, time, memory = 0.3, 0.3, 2 * time, 2 * memory
    if method.endswith(("-selected", "-candidates")):
        recall = 0.4
    return Measured(recall, precision, error, time, memory)


def _frontier(streams: Iterable[str], world: Callable[[str, int], tuple[int, float, float]]) -> Iterator[Row]:
    for stream in streams:
        for epsilon, delta in plan.FULL.frontier:
            for method in plan.ON_FRONTIER:
                for capacity in (100_001,) if method == "exact-histogram" else CAPACITIES:
                    released, error, threshold = world(method, capacity)
                    yield row(
                        sweep=plan.FRONTIER,
                        stream=stream,
                        length=LENGTH,
                        skew=COMMON.skew if stream == "zipf" else None,
                        k=None,
                        factor=None,
                        capacity=capacity,
                        epsilon=epsilon,
                        delta=delta,
                        method=method,
                        heavy=0,
                        released=released,
                        recall=None,
                        precision=None,
                        absolute_error=error,
                        threshold=threshold,
                        memory_bytes=40 * capacity,
                    )


def _claimed_labels(method: str, capacity: int) -> tuple[int, float, float]:
    """Return labels, error and threshold as we say."""
    return {
        "paper": (capacity // 8, 10.0, 100.0),
        "misra-gries-published": (2 * capacity // 5, 100.0, 162.0),
        "misra-gries": (capacity // 2, 100.0, 85.0),
        "stable-threshold": (capacity // 2, 10.0, 100.0),
    }.get(method, (5000, 10.0, 63.0))


def _contrary_labels(method: str, capacity: int) -> tuple[int, float, float]:
    """Return the reverse."""
    fewer = {64: 1000, 512: 500, 4096: 100}
    return {
        "paper": (2000, 10.0, 100.0),
        "misra-gries-published": (8000, 100.0, 162.0),
        "misra-gries": (4000, 100.0, 162.0),
        "stable-threshold": (fewer.get(capacity, 0), 200.0, 100.0),
    }.get(method, (1, 10.0, 63.0))
