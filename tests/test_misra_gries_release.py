"""Private Misra-Gries: the thresholds of Lebeda and Tětek, and the exact divergence of what is released."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dptop.mechanism import MisraGriesThreshold
from dptop.noise import pmf, tail
from dptop.reference.misra_gries import MisraGries
from neighbours import streams
from test_misra_gries import DropsZeros

if TYPE_CHECKING:
    import numpy.typing as npt

    from neighbours import Stream

Shape = tuple[tuple[int | None, int | None], ...]
"""For each label its counter in X and in X', None where it is not tracked."""

REACH = 40
"""Noise beyond it has a chance below 1e-17 at epsilon 1."""

# thresholds at (epsilon, delta), published and smallest: the formulas of Lebeda and Tětek 2023, section 5, by hand
PINS = {
    (1.0, 1e-6): (33, 17),
    (1.0, 1e-2): (15, 7),
    (0.5, 1e-4): (45, 24),
    (0.1, 1e-6): (301, 161),
    (2.0, 1e-6): (17, 9),
}


@pytest.mark.parametrize(("epsilon", "delta"), PINS)
def test_thresholds(epsilon: float, delta: float) -> None:
    """The published one is its formula; the smallest one keeps delta, and one less does not."""
    published = MisraGriesThreshold.calibrate(epsilon=epsilon, delta=delta, published=True)
    smallest = MisraGriesThreshold.calibrate(epsilon=epsilon, delta=delta)
    assert (published.threshold, smallest.threshold) == PINS[epsilon, delta]
    grown = math.exp(epsilon)
    assert published.threshold == 1 + 2 * math.ceil(math.log(6 * grown / ((grown + 1) * delta)) / epsilon)
    assert summed(smallest.epsilon, smallest.threshold) <= delta < summed(smallest.epsilon, smallest.threshold - 1)
    assert smallest.keeps(smallest.threshold)
    assert not smallest.keeps(smallest.threshold - 1)


def summed(epsilon: Fraction, t: int) -> float:
    """Return 1 - sum over e of P[eta = e] P[Z < t - 1 - e] P[Z < t - e], term by term."""
    reach = math.ceil(60 / epsilon)
    less = {y: 1 - tail(epsilon, y - 1) for y in range(t - 1 - reach, t + reach + 1)}
    terms = (pmf(epsilon, e) * (1 - less[t - 1 - e] * less[t - e]) for e in range(-reach, reach + 1))
    return float(sum(terms))


@pytest.mark.parametrize("epsilon", [Fraction(1, 8), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("t", [1, 2, 3, 10, 40])
def test_the_closed_form_is_the_sum(epsilon: Fraction, t: int) -> None:
    """To 12 digits, and never below it but for what the test's own sum loses."""
    mechanism = MisraGriesThreshold.calibrate(epsilon=float(epsilon), delta=0.5)
    chance = mechanism._failure(t)
    assert float(chance) == pytest.approx(summed(epsilon, t), rel=1e-12)
    assert chance >= summed(epsilon, t) * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [2.0**-20, 0.01, 1.0, 64.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-9, 0.9])
def test_extremes_are_calibrated(epsilon: float, delta: float) -> None:
    """From the smallest epsilon and delta to the largest: the threshold holds, and the one below it does not."""
    mechanism = MisraGriesThreshold.calibrate(epsilon=epsilon, delta=delta)
    assert mechanism.failure_probability <= mechanism.delta
    assert mechanism.threshold == 1 or mechanism._failure(mechanism.threshold - 1) > mechanism.delta


@cache
def shapes(capacity: int, longest: int, kind: type[MisraGries[int]] = MisraGries[int]) -> frozenset[Shape]:
    """Return every way in which the counters of neighbours differ, under all renamings of the labels."""

    def run(stream: Stream) -> dict[int, int]:
        summary = kind(capacity)
        for label in stream:
            summary.update(label)
        return summary.counters()

    seen = set()
    for stream in streams(longest):
        names = list(range(max(stream) + 1))
        for order in permutations(names) if len(names) <= 4 else (names, names[::-1]):
            renamed = tuple(order[x] for x in stream)
            long = run(renamed)
            for at in range(len(renamed)):
                short = run(renamed[:at] + renamed[at + 1 :])
                pairs = ((long.get(x), short.get(x)) for x in long.keys() | short.keys())
                seen.add(tuple(sorted(pairs, key=repr)))
    return frozenset(seen | {lifted for shape in seen if (lifted := higher(shape))})


def higher(shape: Shape) -> Shape:
    """Return a shape of common labels as longer streams leave it, each label released nearly always; else nothing."""
    if any(a is None or b is None for a, b in shape):
        return ()
    return tuple((a + 25, b + 25) for a, b in shape if a is not None and b is not None)


def law(epsilon: float) -> npt.NDArray[np.float64]:
    """Return P[Z = z] for z from -REACH to REACH."""
    return np.array([float(pmf(Fraction(epsilon), z)) for z in range(-REACH, REACH + 1)])


def divergence(shape: Shape, epsilon: float, threshold: int, *, common: bool = True, noise: float = 0.0) -> float:
    """Return the sum over outputs of max(0, P[X gives o] - e^epsilon P[X' gives o]), from the law of the noise.

    Its parameter is epsilon, unless another one is given.

    Given the noise that all counters share, labels are released independently; the sum over it is inside of the
    chance of an output. An output that shows a label of X only is impossible under X'.
    """
    z = law(noise or epsilon)
    shared = z if common else np.where(np.arange(-REACH, REACH + 1) == 0, 1.0, 0.0)
    offsets = np.arange(-REACH, REACH + 1)
    values = np.arange(threshold, threshold + 2 * REACH)

    def released(count: int) -> npt.NDArray[np.float64]:
        """For each shared noise (rows) the chance of each value, and in the last column that it is hidden."""
        own = values[None, :] - count - offsets[:, None]
        inside = np.abs(own) <= REACH
        chances = np.where(inside, z[np.where(inside, own + REACH, 0)], 0.0)
        hidden = np.array([z[: max(0, threshold - count - e + REACH)].sum() for e in offsets])
        return np.column_stack([chances, hidden])

    def chance_of(side: int) -> tuple[npt.NDArray[np.float64], float]:
        """Return the chances of outputs that hide all labels of one side, and the chance of all others."""
        hides = shared.copy()
        tables = []
        for pair in shape:
            count = pair[side]
            if count is None:
                continue
            if pair[1 - side] is None:
                hides = hides * released(count)[:, -1]
            else:
                tables.append(released(count))
        letters = "ijk"[: len(tables)]
        rule = ",".join(["e", *(f"e{letter}" for letter in letters)]) + "->" + letters
        both = np.einsum(rule, hides, *tables, optimize=True)
        return both, max(0.0, 1.0 - float(hides.sum()))

    first, shown = chance_of(0)
    second, _ = chance_of(1)
    return shown + float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


def worst(kinds: frozenset[Shape], epsilon: float, threshold: int, *, common: bool = True, noise: float = 0.0) -> float:
    """Return the largest divergence over the shapes, in both directions."""
    both = kinds | {tuple((b, a) for a, b in shape) for shape in kinds}
    return max(divergence(shape, epsilon, threshold, common=common, noise=noise) for shape in both)


@pytest.mark.parametrize(("capacity", "longest"), [(1, 7), (2, 7), (3, 6)])
@pytest.mark.parametrize("delta", [0.3, 0.02])
def test_the_release_keeps_its_promise(capacity: int, longest: int, delta: float) -> None:
    """The exact divergence over all small streams stays within delta, and is what the threshold was built for.

    What is left out of the sums is below 1e-12.
    """
    mechanism = MisraGriesThreshold.calibrate(epsilon=1.0, delta=delta)
    found = worst(shapes(capacity, longest), 1.0, mechanism.threshold)
    assert found <= float(mechanism.failure_probability) + 1e-9 <= delta + 1e-9
    if capacity >= 2:
        assert found == pytest.approx(float(mechanism.failure_probability), abs=1e-9)
        assert worst(shapes(capacity, longest), 1.0, mechanism.threshold - 1) > delta


def test_broken_copies_are_found() -> None:
    """No noise in common, the textbook's variant, and noise of half the scale."""
    mechanism = MisraGriesThreshold.calibrate(epsilon=1.0, delta=0.02)
    assert worst(shapes(2, 7), 1.0, mechanism.threshold, common=False) > 0.1
    assert worst(shapes(3, 7, DropsZeros), 1.0, mechanism.threshold) > 0.02
    assert worst(shapes(2, 7), 1.0, mechanism.threshold, noise=2.0) > 0.02
