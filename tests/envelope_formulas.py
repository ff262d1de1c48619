"""The formulas of docs/privacy.md section 15 once more, in NumPy and SciPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binom, dlaplace

from dptop.envelope import GaussianCells, LaplaceCells

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from dptop.envelope import CellNoise

    Floats = NDArray[np.float64]


def weights(noise: CellNoise) -> tuple[Floats, Floats]:
    """Return the values of Z and their chances."""
    if isinstance(noise, LaplaceCells):
        eps = float(noise.epsilon_cell)
        z = np.arange(-int(60 / eps), int(60 / eps) + 1)
        return z.astype(float), dlaplace.pmf(z, eps)
    assert isinstance(noise, GaussianCells)
    z = np.arange(-int(12 * noise.variance**0.5) - 2, int(12 * noise.variance**0.5) + 3)
    p = np.exp(-(z.astype(float) ** 2) / (2 * noise.variance))
    return z.astype(float), p / p.sum()


def rows(noise: CellNoise, most: int, weight: Callable[[Floats], Floats]) -> Floats:
    """Return, for g = 0 to `most`, sum over z of P[Z = z] * (1 if z >= g + 1, else weight(g + 1 - z))."""
    z, p = weights(noise)
    out = np.empty(most + 1)
    for g in range(most + 1):
        gap = g + 1 - z
        out[g] = (p * np.where(gap <= 0, 1.0, weight(np.maximum(gap, 1)))).sum()
    return out


def least(first: Floats, second: Floats, allowed: float, times: int = 1) -> int:
    """Return the smallest times * x + y with first[x] + second[y] <= allowed; both arrays fall."""
    y = np.searchsorted(-second, -(allowed - first), side="left")
    good = y < len(second)
    return int((times * np.arange(len(first)) + y)[good].min())


def majority(depth: int, p: Floats) -> Floats:
    return np.asarray(binom.sf((depth - 1) // 2, depth, np.minimum(p, 1)))
