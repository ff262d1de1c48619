"""Declared labels of tiny sketches: the exact divergence between all small neighbours, summed over all outputs."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

import dptop
from dptop.privacy import exact_epsilon, floor_epsilon
from sketching import twin_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from numpy.typing import NDArray

    from conftest import Drawn

LABELS = [10, 11, 12]
KINDS: list[tuple[type[dptop.CountMin] | type[dptop.CountSketch], int, int, int]] = [
    (dptop.CountMin, 2, 1, 25),
    (dptop.CountMin, 2, 2, 9),
    (dptop.CountMin, 3, 1, 14),
    (dptop.CountSketch, 2, 1, 25),
    (dptop.CountSketch, 1, 3, 14),
]
"""Type, width, depth, and how far noise is followed. Values beyond count as the last one: that tells less, not more."""


def law(cell: int, epsilon: float, reach: int) -> NDArray[np.float64]:
    """Return the chances of cell + Z, from -reach to reach: exact, what is beyond at the ends."""
    a = math.exp(-epsilon)
    z = np.arange(-reach, reach + 1) - cell
    p = (1 - a) / (1 + a) * a ** np.abs(z)

    def tail(k: int) -> float:
        """Return P[Z >= k]."""
        return a**k / (1 + a) if k >= 1 else 1 - a ** (1 - k) / (1 + a)

    p[0], p[-1] = tail(reach + cell), tail(reach - cell)
    assert abs(p.sum() - 1) < 1e-12
    return np.asarray(p)


class Tiny(NamedTuple):
    """A sketch with known keys, and all values that its noisy cells may have."""

    cells: dict[tuple[int, ...], NDArray[np.int64]]  # by counts of the labels, row after row
    outputs: NDArray[np.int64]  # which estimates of the labels go with each setting of the cells
    shape: tuple[int, ...]
    reach: int


def tiny(kind: Any, width: int, depth: int, reach: int, seed: int, items: int) -> Tiny:
    cells = {}
    for counts in product(range(items + 1), repeat=len(LABELS)):
        if sum(counts) <= items:
            sketch = kind(width, depth, seed=seed)
            sketch.extend(LABELS, list(counts))
            cells[counts] = np.array(sketch._sketch.cells()).ravel()
    twin = twin_of(kind(width, depth, seed=seed)._sketch, LABELS)
    values = np.arange(-reach, reach + 1)
    grid = np.meshgrid(*[values] * (width * depth), indexing="ij", sparse=True)
    code: Any = np.int64(0)
    for label in LABELS:
        f = twin.fingerprint(label)
        mine = [grid[r * width + row.bucket(f, width)] for r, row in enumerate(twin.rows)]
        if kind is dptop.CountMin:
            estimate = np.minimum.reduce(np.broadcast_arrays(*mine))
        else:
            signed = [row.sign(f) * cell for row, cell in zip(twin.rows, mine, strict=True)]
            estimate = np.sort(np.stack(np.broadcast_arrays(*signed)), axis=0)[depth // 2]
        code = code * (2 * reach + 1) + estimate + reach
    _, outputs = np.unique(np.broadcast_to(code, [len(values)] * (width * depth)).ravel(), return_inverse=True)
    return Tiny(cells, outputs, (len(values),) * (width * depth), reach)


def chances(sketch: Tiny, counts: tuple[int, ...], epsilon_cell: float) -> NDArray[np.float64]:
    """Return the chance of each vector of estimates."""
    joint = np.ones(1)
    for cell in sketch.cells[counts]:
        joint = np.multiply.outer(joint, law(int(cell), epsilon_cell, sketch.reach)).ravel()
    return np.asarray(np.bincount(sketch.outputs, weights=joint), dtype=np.float64)


def neighbours(sketch: Tiny) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for counts in sketch.cells:
        for i in range(len(LABELS)):
            less = (*counts[:i], counts[i] - 1, *counts[i + 1 :])
            if less in sketch.cells:
                yield counts, less


def worst(sketch: Tiny, epsilon_cell: float, epsilon: float) -> tuple[float, float]:
    """Return the largest divergence and the largest loss, ln P/P', over all neighbours, in both directions."""
    known = {counts: chances(sketch, counts, epsilon_cell) for counts in sketch.cells}
    divergence, loss = 0.0, 0.0
    for one, other in neighbours(sketch):
        for p, q in ((known[one], known[other]), (known[other], known[one])):
            divergence = max(divergence, float(np.maximum(0, p - math.exp(epsilon) * q).sum()))
            loss = max(loss, float(np.log(p / q).max()))
    return divergence, loss


def epsilon_of_cells(kind: Any, width: int, depth: int, epsilon: float, no_noise: Drawn) -> Fraction:
    """Return what a release of declared labels gives each cell's noise."""
    dptop.release(kind(width, depth), epsilon=epsilon, delta=1e-9, labels=LABELS, noise="laplace")
    found = no_noise.cells[-1].epsilon_cell
    assert found is not None
    return found


@pytest.mark.parametrize(("kind", "width", "depth", "reach"), KINDS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_estimates_of_declared_labels_keep_epsilon_exactly(
    kind: Any, width: int, depth: int, reach: int, seed: int, no_noise: Drawn
) -> None:
    """All streams of up to three items over three labels, whatever shares cells; broken copies do not keep it."""
    epsilon = float(exact_epsilon(0.8))
    epsilon_cell = float(epsilon_of_cells(kind, width, depth, 0.8, no_noise))
    assert epsilon_cell == float(floor_epsilon(exact_epsilon(0.8) / depth))
    sketch = tiny(kind, width, depth, reach, seed, 3)
    divergence, loss = worst(sketch, epsilon_cell, epsilon)
    assert divergence < 1e-12
    assert loss <= epsilon + 1e-9
    assert loss > 0.9 * epsilon  # nothing is given away: the bound is met but for what cells share
    halved, _ = worst(sketch, 2 * epsilon_cell, epsilon)
    assert halved > 0.02
    if depth > 1:
        without_depth, _ = worst(sketch, depth * epsilon_cell, epsilon)
        assert without_depth > 0.02


@pytest.mark.parametrize(("kind", "width", "depth", "reach"), [KINDS[1], KINDS[4]])
def test_estimates_tell_less_than_cells(kind: Any, width: int, depth: int, reach: int) -> None:
    """What is read from the noisy cells diverges by no more than they do themselves."""
    sketch = tiny(kind, width, depth, reach, 1, 2)
    itself = sketch._replace(outputs=np.arange(math.prod(sketch.shape)))
    for epsilon_cell in (0.3, 0.9):
        for epsilon in (0.2, 0.5):
            of_estimates, _ = worst(sketch, epsilon_cell, epsilon)
            of_cells, loss = worst(itself, epsilon_cell, epsilon)
            assert of_estimates <= of_cells + 1e-12
            assert loss == pytest.approx(depth * epsilon_cell)
