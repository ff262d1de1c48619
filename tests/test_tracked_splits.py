"""How epsilon and delta are split, and that thresholds of releases are those of the formulas, to the integer.

The formulas of docs/privacy.md sections 4, 6, 14 and 15 are computed here once more, in NumPy and SciPy, from what was
asked for; releases are without noise, so that noisy lengths and squares are exact.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import binom

import dptop
from dptop.envelope import GaussianCells, LaplaceCells
from envelope_formulas import least, majority, rows, weights

if TYPE_CHECKING:
    from conftest import Drawn
    from dptop.envelope import CellNoise

GRID = Fraction(1, 2**32)
N, K = 1_000_000, 1000
COUNTS = {rank: 100_000 // rank for rank in range(1, 1001)}
SHARING = 2.0**-64
MOST = 6000


def on_grid(epsilon: Fraction) -> Fraction:
    return epsilon // GRID * GRID


def gaussian_delta(epsilon: float, variance: int, depth: int) -> float:
    """Return sum over s of P[S = s] max(0, 1 - exp(eps + (2s - d)/(2v))), S the sum of d draws, by convolution."""
    reach = int(13 * variance**0.5) + 2
    z = np.arange(-reach, reach + 1)
    p = np.exp(-(z.astype(float) ** 2) / (2 * variance))
    p /= p.sum()
    law = np.ones(1)
    for _ in range(depth):
        law = np.convolve(law, p)
    s = np.arange(-depth * reach, depth * reach + 1)
    loss = epsilon + (2 * s - depth) / (2 * variance)
    return float((law * np.maximum(0, -np.expm1(np.minimum(loss, 0)))).sum())


class Case(NamedTuple):
    kind: type[dptop.CountMin] | type[dptop.CountSketch]
    width: int
    depth: int
    candidates: str = "estimates"
    noise: str = "laplace"
    epsilon: float = 1.0
    delta: float = 1e-5
    declared: int | None = N
    tie: str = "least-recent"
    first: bool = False


MIN, SKETCH = dptop.CountMin, dptop.CountSketch
CASES = [
    Case(MIN, 4096, 12),
    Case(MIN, 5000, 20, delta=1.5e-7),  # two labels that share a fingerprint take half of what beta allows
    Case(MIN, 4096, 12, declared=None, delta=1e-4),
    Case(MIN, 3000, 25, noise="gaussian", epsilon=0.5),
    Case(MIN, 4096, 9, first=True, delta=1e-3),
    Case(MIN, 4096, 9, noise="gaussian", first=True, delta=1e-3),
    Case(MIN, 4096, 9, "space-saving", delta=1e-9),
    Case(MIN, 4096, 15, "space-saving", delta=4e-13),  # below s N 2^-64 = 1.1e-13 there would be none
    Case(MIN, 4096, 9, "space-saving", tie="most-recent", declared=None, noise="gaussian", delta=1e-6),
    Case(MIN, 4096, 9, "space-saving", first=True, declared=None, delta=1e-6),
    Case(SKETCH, 30_000, 61),
    Case(SKETCH, 60_000, 31, delta=8e-7),  # a bound on the squares that is too low takes 0.76 of what beta allows
    Case(SKETCH, 8192, 51, "space-saving", delta=4e-11),  # and 0.84 of delta
    Case(SKETCH, 30_000, 61, noise="gaussian", declared=None),
    Case(SKETCH, 2000, 79, first=True, noise="gaussian", delta=1e-3),
    Case(SKETCH, 4096, 61, "space-saving", noise="gaussian", delta=1e-6),
    Case(SKETCH, 10_000, 51, "space-saving", tie="most-recent", declared=None, delta=1e-6, epsilon=2.0),
]


def moments(noise: CellNoise) -> tuple[float, float]:
    """Return E[Z^2] and Var(Z^2)."""
    z, p = weights(noise)
    second = float((p * z**2).sum())
    return second, float((p * z**4).sum()) - second**2


def squares_of(row_sums: list[int], width: int, collision: float, noise: CellNoise, length: int) -> int:
    """Return the largest F with F - sqrt(8 (2 c F^2 + 4 E[Z^2] F + w Var(Z^2))) <= the median of the Y_r, or N^2."""
    second, fourth = moments(noise)
    y = sorted(row_sums)[len(row_sums) // 2] - width * second

    def within(f: float) -> bool:
        return f - math.sqrt(8 * (2 * collision * f * f + 4 * second * f + width * fourth)) <= y

    low, high = 0, length**2
    assert within(max(0.0, y))
    if within(high):
        return high
    low = max(0, int(y))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low


def errors_of(
    case: Case, noise: CellNoise, length: int, left: float, epsilon: float, row_sums: list[int], sharing: float
) -> int:
    """Return what is added to floor(N/K) in the threshold."""
    d, w = case.depth, case.width
    c = -(-(2**32) // w) / 2**32
    t = np.arange(MOST + 1)
    beta = left / (1 + math.exp(epsilon))
    once = 0.0
    if case.kind is MIN:
        over = rows(noise, MOST, lambda gap: np.minimum(1, length * c / gap)) ** d
        collisions = np.minimum(1, length * c / (t + 1)) ** d
    else:
        once = float(binom.sf((d - 1) // 2, d, 1 / 8))
        squares = length**2
        allowed = left if case.candidates == "space-saving" else beta
        if once <= allowed * 15 / 16:
            squares = squares_of(row_sums, w, c, noise, length)
        else:
            once = 0.0
        over = majority(d, rows(noise, MOST, lambda gap: np.minimum(1, squares * c / gap**2) / 2))
        collisions = majority(d, np.minimum(1, squares * c / (t + 1.0) ** 2) / 2)
    if case.candidates == "space-saving":
        s = 2 if case.tie == "least-recent" else 4
        return 1 + int(np.argmax(s * (over + length * sharing) <= left - once))
    allowed = beta - length * (length + 1) / 2 * sharing - once
    if case.first:
        z, p = weights(noise)
        tail = np.array([p[z > g].sum() for g in range(MOST + 1)])
        if case.kind is MIN:
            return least((length + 1) * over, min(length, w) * d * tail, allowed, times=2)
        return least((2 * length + 1) * over, length * over, allowed, times=2)
    if case.kind is MIN:
        return least((length + 1) * over, length * collisions, allowed)
    halves = np.arange(MOST + 1)
    tracking = length * (collisions[halves - halves // 2] + collisions[halves // 2])
    return least((length + 1) * over, tracking, allowed)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)).replace("<class 'dptop.oracle.", ""))
def test_a_release_has_the_threshold_of_the_formulas(case: Case, no_noise: Drawn) -> None:
    """From what was asked for to the integer: the split, the length, the noise, its errors and their chances."""
    epsilon, delta, true_length = Fraction(case.epsilon), Fraction(str(case.delta)), sum(COUNTS.values())
    length, of_length = case.declared, Fraction(0)
    if length is None:  # 2 % of epsilon and half of delta find a bound
        of_length = on_grid(epsilon / 50)
        delta /= 2
        a = math.exp(-float(of_length))
        length = true_length + next(t for t in range(10**5) if a ** (t + 1) / (1 + a) <= delta) + 1
    epsilon -= of_length
    oracle = case.kind(case.width, case.depth)
    own = Fraction(0)  # the noise's own delta
    if case.noise == "gaussian":
        own = delta / 2
    if case.first:
        cost = {} if case.noise == "laplace" else {"noise": "gaussian", "delta": float(own)}
        oracle = oracle.with_noise(epsilon=float(epsilon), **cost)  # type: ignore[arg-type]  # both kinds of values
        assert oracle.noise is not None
        made = oracle.noise
    summary = dptop.Tracked(oracle, K, case.candidates, tie=case.tie)
    summary.extend(list(COUNTS), list(COUNTS.values()))
    result = dptop.release(
        summary,
        epsilon=case.epsilon,
        delta=case.delta,
        mechanism="envelope",
        noise=None if case.first else case.noise,
        length=case.declared,
    )
    [drawn] = no_noise.cells
    if case.first:
        assert drawn is made
    assert drawn.state.epsilon == epsilon
    assert Fraction(drawn.state.delta) == own
    noise: CellNoise
    if case.noise == "gaussian":
        assert drawn.variance is not None
        assert gaussian_delta(float(epsilon), drawn.variance, case.depth) <= own
        assert gaussian_delta(float(epsilon), drawn.variance - 1, case.depth) > own
        noise = GaussianCells(drawn.variance)
    else:
        assert drawn.epsilon_cell == on_grid(epsilon / case.depth)
        noise = LaplaceCells(drawn.epsilon_cell)
    assert no_noise.counters == ([(of_length, 1)] if of_length else [])
    assert result.parameters["length_epsilon"] == float(of_length)
    assert result.noisy_length == (true_length if of_length else None)

    found = (case, noise, length, float(delta - own), float(epsilon), summary._cells.squares())
    expected = errors_of(*found, SHARING)
    assert result.parameters["threshold"] == length // K + expected
    assert errors_of(*found, 0.0) <= expected
    over = {x for x, v in zip(COUNTS, summary._cells.estimate(_batch()), strict=True) if v > length // K + expected}
    assert {row.item for row in result} == over
    assert over


def _batch() -> Any:
    return dptop._native.LabelBatch.from_sequence(list(COUNTS))


def test_sharing_a_fingerprint_is_paid_for(no_noise: Drawn) -> None:
    """It raises a threshold; where it costs more than there is of delta there is no envelope by estimates."""
    noise, found = LaplaceCells(on_grid(Fraction(1, 20))), []
    for sharing in (0.0, SHARING):
        case = Case(MIN, 5000, 20, delta=1.5e-7)
        found.append(errors_of(case, noise, N, 1.5e-7, 1.0, [], sharing))
    assert found[0] < found[1]
    for candidates, rows_expected in (("estimates", False), ("space-saving", True)):
        summary = dptop.Tracked(dptop.CountMin(5000, 20), K, candidates)
        summary.extend([1], [500_000])
        result = dptop.release(summary, epsilon=1.0, delta=1e-7, length=N, mechanism="envelope", noise="laplace")
        assert bool(result.rows) == rows_expected  # 2.7e-8 is what beta has, and what a pair of 10^6 labels takes
    assert no_noise.cells


def selection_offset(epsilon: float, delta: float, tie: str) -> int:
    """Return 1 + G, by the closed form of section 4."""
    a = math.exp(-epsilon)

    def chance(g: int) -> float:
        return a ** (g + 1) * ((1 - a) * (g + 1) + (1 + a + 2 * a * a) / (1 + a)) / (1 + a) ** 2

    def failure(g: int) -> float:
        return chance(g) + (chance(g + 1) if tie == "most-recent" else 0)

    return 1 + next(g for g in range(10**6) if failure(g) <= delta)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("tie", ["least-recent", "most-recent"])
@pytest.mark.parametrize(("share", "declared"), [(None, None), (0.01, None), (0.01, N), (None, N)])
@pytest.mark.parametrize("first", [False, True])
def test_selection_splits_epsilon_in_halves(
    noise: str, tie: str, share: float | None, declared: int | None, first: bool, no_noise: Drawn
) -> None:
    """After 2 % for a length that a share asks for; delta is all of the labels', or half where the noise is Gaussian.

    Noise that is in the cells already takes what it was made for, and leaves the rest to the labels.
    """
    epsilon, delta, depth = Fraction(7, 10), Decimal("1e-6"), 20
    epsilon = on_grid(epsilon)
    of_length = on_grid(epsilon / 50) if share is not None and declared is None else Fraction(0)
    for_labels = on_grid((epsilon - of_length) / 2)
    for_cells = epsilon - of_length - for_labels
    own = delta / 2 if noise == "gaussian" else Decimal(0)
    oracle = dptop.CountMin(256, depth)
    if first:
        for_cells, own = on_grid(Fraction(1, 3)), own / 10
        for_labels = epsilon - of_length - for_cells
        given: dict[str, Any] = {"noise": noise, "delta": float(own)} if own else {}
        oracle = oracle.with_noise(epsilon=1 / 3, **given)
    summary = dptop.Tracked(oracle, 30, tie=tie)
    summary.extend([1, 2], [5000, 3000])
    asked = None if first else noise
    result = dptop.release(summary, epsilon=0.7, delta=1e-6, share=share, length=declared, noise=asked)
    [made] = no_noise.cells
    assert (made.kind, made.state.epsilon, made.state.delta) == (noise, for_cells, own)
    expected: list[tuple[Fraction, int]] = [(of_length, 1)] if of_length else []
    assert no_noise.counters == [*expected, (for_labels, 1 + 2)]
    assert for_cells + for_labels + of_length == epsilon
    assert result.parameters["offset"] == selection_offset(float(for_labels), float(delta - own), tie)


def test_contributions_scale_everything(no_noise: Drawn) -> None:
    """With c items a unit every part is made of what protects one: eps0 = eps/c, delta (e^eps0 - 1)/(e^eps - 1)."""
    each = on_grid(Fraction(1, 4))
    delta = 1e-6 * math.expm1(0.25) / math.expm1(1.0)
    for mechanism in ("selected", "envelope"):
        no_noise.cells.clear()
        no_noise.counters.clear()
        summary = dptop.Tracked(dptop.CountMin(4096, 12), 100)
        summary.extend(["a"], [10_000])
        result = dptop.release(
            summary, epsilon=1.0, delta=1e-6, max_contributions=4, mechanism=mechanism, noise="laplace", length=N
        )
        [made] = no_noise.cells
        if mechanism == "selected":
            assert made.state.epsilon == each / 2
            assert result.parameters["offset"] == selection_offset(0.125, delta, "least-recent")
        else:
            case = Case(MIN, 4096, 12, "space-saving", delta=delta)
            noise = LaplaceCells(on_grid(each / 12))
            assert result.parameters["threshold"] == N // 100 + errors_of(case, noise, N, delta, 0.25, [], SHARING)
