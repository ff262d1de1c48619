"""The chances behind the error envelopes equal sums written out here, and are never below them."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import pytest
from scipy.stats import binom

from dptop import gaussian
from dptop.envelope import (
    CellNoise,
    CountMinError,
    CountSketchError,
    GaussianCells,
    LaplaceCells,
    NoNoise,
    collision_chance,
    majority,
    squares_bound,
    squares_failure,
)
from dptop.envelope.cell_noise import MOST_BLOCKS
from dptop.errors import InvalidParameter
from dptop.privacy import exact_epsilon, floor_epsilon
from dptop.reference.stable_threshold import laplace

LAPLACE = [exact_epsilon(e) for e in (0.125, 0.5, 2.0)]
VARIANCES = [1, 2, 7, 100]
Law = LaplaceCells | GaussianCells
CLOSE = Decimal("1e-8")  # what the floats were lifted by, and a little

WIDE = Context(prec=80, Emin=-(10**9), Emax=10**9)


@cache
def law(noise: Law) -> dict[int, Decimal]:
    """Return P[Z = z] to 40 digits and more, from the definitions of the two laws; what is left out is below 1e-39."""
    if isinstance(noise, LaplaceCells):
        return laplace(noise.epsilon_cell)
    with localcontext(WIDE):
        reach = math.ceil(14 * math.sqrt(noise.variance)) + 2
        weights = {z: (Decimal(-z * z) / Decimal(2 * noise.variance)).exp() for z in range(-reach, reach + 1)}
        total = sum(weights.values())
        return {z: weight / total for z, weight in weights.items()}


NOISES: list[Law] = [*map(LaplaceCells, LAPLACE), *map(GaussianCells, VARIANCES)]
WIDE_NOISES: list[Law] = [LaplaceCells(exact_epsilon(2.0**-8)), GaussianCells(500**2)]


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_a_narrow_law_is_listed_value_by_value(noise: Law) -> None:
    """Each value with its chance, not below it, and the rest counts as above all."""
    chances, spread = law(noise), noise.spread
    assert list(spread.lasts) == list(range(spread.lasts[0], -spread.lasts[0] + 1))
    for z, found in list(zip(spread.lasts, spread.chances, strict=True))[1:]:
        true = chances[z]
        assert true <= Decimal(found) <= true * (1 + CLOSE) + Decimal("1e-38")
    rest = sum((p for z, p in chances.items() if z > spread.lasts[-1]), Decimal(0))
    assert rest <= Decimal(spread.above[-1]) + Decimal("1e-39") < Decimal("1e-19")


@pytest.mark.parametrize("noise", [*NOISES, *WIDE_NOISES, NoNoise()], ids=repr)
def test_blocks_hold_everything_and_each_at_its_worst_end(noise: Law | NoNoise) -> None:
    """The chance of all blocks from any value on is at least the true one: what they are summed for is never below."""
    spread = noise.spread
    assert len(spread.lasts) <= MOST_BLOCKS + 2
    assert 1 <= spread.above[0] <= 1 + 1e-4
    assert all(a < b for a, b in pairwise(spread.lasts))
    assert all(a >= b for a, b in pairwise(spread.above))
    if isinstance(noise, NoNoise):
        return
    chances, true = law(noise), Decimal(0)
    values = sorted(chances, reverse=True)
    for last, found in reversed(list(zip(spread.lasts, spread.above[1:], strict=True))):
        while values and values[0] > last:
            true += chances[values.pop(0)]
        assert Decimal(found) >= true - Decimal("1e-38")


@pytest.mark.parametrize("noise", [*NOISES, *WIDE_NOISES], ids=repr)
def test_the_mass_of_a_block_is_not_below_the_sum_of_its_values(noise: Law) -> None:
    """Block by block, and above it by less than 1 % where the block is wide."""
    chances, spread = law(noise), noise.spread
    for i in range(1, len(spread.lasts)):
        values = range(spread.lasts[i - 1] + 1, spread.lasts[i] + 1)
        true = sum((chances.get(z, Decimal(0)) for z in values), Decimal(0))
        loose = Decimal("0.01") if len(values) > 1 else CLOSE
        assert true <= Decimal(spread.chances[i]) + Decimal("1e-38")
        assert Decimal(spread.chances[i]) <= true * (1 + loose) + Decimal("1e-18")


@pytest.mark.parametrize("noise", [*NOISES, *WIDE_NOISES], ids=repr)
def test_a_tail_is_never_below_its_sum(noise: Law) -> None:
    """P[Z > g] from the values themselves; close to it where values are listed one by one or Z is Laplace."""
    chances = law(noise)
    exact = isinstance(noise, LaplaceCells) or noise.variance < 1000  # values are listed one by one
    for g in (0, 1, 2, 3, 5, 9, 14, 20, 30, 77, 200, 201, 650):
        true = sum((p for z, p in chances.items() if z > g), Decimal(0))
        found = Decimal(noise.tail(g))
        assert true <= found + Decimal("1e-38")
        if exact:
            assert found <= true * (1 + CLOSE) + Decimal("1e-18")
        elif true > Decimal("1e-20"):
            assert found <= true * Decimal("1.05")


@pytest.mark.parametrize("variance", [1, 2, 7, 100, 2975, 2**16, 250_000])
def test_the_two_computations_of_the_gaussian_law_agree(variance: int) -> None:
    """Floats that the envelopes sum, and decimals that the privacy of the noise rests on: the former are never below.

    A tail in decimals is above the true one by at most a relative 1e-6 for a variance above 2^16.
    """
    cells, root = GaussianCells(variance), math.isqrt(variance)
    loose = Decimal("1e-6") if variance > 2**16 else Decimal(0)
    for g in (0, 1, root, 2 * root + 1, 5 * root, 9 * root, 20 * root):
        true = gaussian.tail(variance, g)
        assert true * (1 - loose) <= Decimal(cells.tail(g))
        assert true > Decimal("1e-19") or Decimal(cells.tail(g)) < Decimal("1e-18")
    spread = cells.spread
    blocks = range(1, len(spread.lasts), max(1, len(spread.lasts) // 200))
    for i in blocks:
        values = range(spread.lasts[i - 1] + 1, spread.lasts[i] + 1)
        assert sum(gaussian.pmf(variance, z) for z in values) <= Decimal(spread.chances[i])
    assert (max(map(len, (range(spread.lasts[i - 1], spread.lasts[i]) for i in blocks))) > 1) == (variance > 2**16)


def test_tails_do_not_vanish() -> None:
    """A chance too small for a float counts as 1e-300, not as none."""
    assert LaplaceCells(Fraction(1)).tail(10**6) == 1e-300
    assert GaussianCells(1).tail(10**6) == 1e-300
    assert majority(79, 1e-30) == 1e-300
    assert CountMinError(2**31, 40, 1, NoNoise()).over(10**6) == 1e-300


@pytest.mark.parametrize("noise", [*NOISES, *WIDE_NOISES, LaplaceCells(Fraction(1, 2**12))], ids=repr)
def test_moments_enclose_those_of_the_law(noise: Law) -> None:
    """E[Z^2] and Var(Z^2) by direct sums; the enclosure is narrow."""
    chances = law(noise)
    with localcontext(WIDE):
        square = sum((p * z * z for z, p in chances.items()), Decimal(0))
        fourth = sum((p * z**4 for z, p in chances.items()), Decimal(0))
        off = Decimal("1e-25") * fourth
        found = noise.moments
        low, high, variance = (
            Decimal(m.numerator) / Decimal(m.denominator)
            for m in (found.square_low, found.square_high, found.variance_high)
        )
        assert low - off <= square <= high + off
        assert high - low <= Decimal("1e-6") * square
        assert fourth - square * square <= variance + off
        assert variance <= (fourth - square * square) * Decimal("1.00001") + off


def test_the_smallest_epsilon_has_its_moments() -> None:
    """At 2^-32 the closed forms still hold: E[Z^2] near 2/eps^2 and Var(Z^2) near 20/eps^4."""
    found = LaplaceCells(Fraction(1, 2**32)).moments
    assert abs(float(found.square_low) / (2 * 2.0**64) - 1) < 1e-9
    assert abs(float(found.variance_high) / (20 * 2.0**128) - 1) < 1e-9


# ---- rows


def row_by_sums(noise: Law | NoNoise, g: int, chance: Fraction, power: int, share: Fraction) -> Decimal:
    """Return sum over z of P[Z = z] * (1 if z >= g + 1, else share * min(1, chance/(g + 1 - z)^power))."""
    pairs = law(noise).items() if not isinstance(noise, NoNoise) else [(0, Decimal(1))]
    total = Decimal(0)
    with localcontext(WIDE):
        for z, p in pairs:
            weight = Fraction(1) if z >= g + 1 else share * min(Fraction(1), chance / (g + 1 - z) ** power)
            total += p * weight.numerator / weight.denominator
    return total


@pytest.mark.parametrize("noise", [*NOISES, NoNoise()], ids=repr)
@pytest.mark.parametrize(("width", "length"), [(1000, 777), (64, 10_000), (4, 5)])
def test_rows_are_the_sums_of_the_formulas(noise: Law | NoNoise, width: int, length: int) -> None:
    """R(g) and q(g), both signs and one, at errors below, around and above the mean collision."""
    c = collision_chance(width)
    count_min = CountMinError(width, 3, length, noise)
    halved = CountSketchError(width, 3, length, noise, squares=length * 9, fully_random_signs=True)
    whole = CountSketchError(width, 3, length, noise, squares=length * 9)
    for g in (0, 1, 2, 5, 17, 60, 156, 157, 800, 10**6):
        for found, true in (
            (count_min.row(g), row_by_sums(noise, g, length * c, 1, Fraction(1))),
            (halved.row(g), row_by_sums(noise, g, 9 * length * c, 2, Fraction(1, 2))),
            (whole.row(g), row_by_sums(noise, g, 9 * length * c, 2, Fraction(1))),
        ):
            assert min(Decimal(1), true) <= Decimal(found) <= true * (1 + CLOSE) + Decimal("1e-18")


@pytest.mark.parametrize("noise", WIDE_NOISES, ids=repr)
def test_rows_over_a_wide_law_are_safe_and_near(noise: Law) -> None:
    """In blocks: never below the sum over single values, and above it by less than 2 %."""
    for g in (0, 100, 500, 2000, 10_000):
        found = CountMinError(128, 1, 10_000, noise).row(g)
        true = row_by_sums(noise, g, 10_000 * collision_chance(128), 1, Fraction(1))
        assert min(Decimal(1), true) <= Decimal(found) <= true * Decimal("1.02")


@pytest.mark.parametrize("rows", [1, 3, 25, 79])
@pytest.mark.parametrize("chance", [1e-9, 0.001, 0.125, 0.3, 0.5, 0.9, 1.0 - 1e-12, 1.0])
def test_a_majority_is_the_binomial_s_upper_tail(rows: int, chance: float) -> None:
    """Against SciPy, and by exact fractions, which it is never below."""
    p = Fraction(chance)
    terms = range((rows + 1) // 2, rows + 1)
    true = sum((math.comb(rows, k) * p**k * (1 - p) ** (rows - k) for k in terms), Fraction(0))
    found = majority(rows, chance)
    assert true <= Fraction(found)
    assert found <= max(float(true) * (1 + 2e-9), 1e-299)
    if float(true) > 1e-280:
        assert found == pytest.approx(float(binom.sf((rows - 1) // 2, rows, chance)), rel=1e-8)


def test_estimates_err_as_their_rows_do() -> None:
    """Closed values by hand: N c = 1 over a table of 1024 cells, errors of 9, one to ten rows."""
    count_min = CountMinError(1024, 3, 1024, NoNoise())
    assert count_min.over(9) == pytest.approx(1e-3, rel=1e-8)  # (1/10)^3
    assert count_min.collisions(9) == pytest.approx(1e-3, rel=1e-8)
    assert count_min.trackings(9) == pytest.approx(1.024, rel=1e-8)
    assert count_min.finals(9) == pytest.approx(1.025, rel=1e-8)
    sketch = CountSketchError(1024, 3, 32, NoNoise(), fully_random_signs=True)
    p = 1 / 200  # (1/100)/2
    assert sketch.over(9) == pytest.approx(3 * p * p * (1 - p) + p**3, rel=1e-8)
    assert 3 * p * p * (1 - p) + p**3 == pytest.approx(7.475e-5, rel=1e-12)
    assert sketch.trackings(19) == pytest.approx(32 * (7.475e-5 + 3 / 242**2 - 2 / 242**3), rel=1e-8)  # 9 and 10
    assert sketch.finals(9) == pytest.approx(2.46675e-3, rel=1e-8)  # 33 times
    assert sketch.noisy_overs(9) == pytest.approx(4.85875e-3, rel=1e-8)  # 65 times
    assert sketch.noisy_unders(9) == pytest.approx(2.392e-3, rel=1e-8)  # 32 times
    noise = LaplaceCells(Fraction(1, 2))
    tail = math.exp(-5.5) / (1 + math.exp(-0.5))  # P[Z > 10]
    assert CountMinError(50, 4, 1024, noise).under(10) == pytest.approx(4 * tail, rel=1e-8)
    assert CountMinError(50, 4, 1024, noise).noisy_unders(10) == pytest.approx(50 * 4 * tail, rel=1e-8)
    assert CountMinError(5000, 4, 1024, noise).noisy_unders(10) == pytest.approx(1024 * 4 * tail, rel=1e-8)


@pytest.mark.parametrize("noise", [LaplaceCells(Fraction(1, 8)), GaussianCells(50), NoNoise()], ids=repr)
def test_chances_fall_as_the_error_grows_and_rise_with_the_load(noise: CellNoise) -> None:
    """What the searches rely on."""
    errors = range(0, 400, 7)
    small, large = CountMinError(256, 5, 1000, noise), CountMinError(256, 5, 2000, noise)
    flat = CountSketchError(256, 5, 1000, noise, squares=1000)
    steep = CountSketchError(256, 5, 1000, noise)
    for error in (small, flat, steep):
        for name in ("over", "under", "finals", "trackings", "noisy_overs", "noisy_unders"):
            values = [getattr(error, name)(g) for g in errors]
            assert all(a >= b for a, b in pairwise(values)), name
    for low, high in ((small, large), (flat, steep)):
        assert all(low.over(g) <= high.over(g) for g in errors)


def test_collisions_of_two_labels() -> None:
    """No cell gets more than ceil(2^32/w) of 2^32 hashes that are scaled to the width: counted for a few widths."""
    assert collision_chance(4096) == Fraction(1, 4096)
    for width in (1, 3, 1000, 5243, 2**32, 2**40):
        assert Fraction(1, width) <= collision_chance(width) < Fraction(1, width) + Fraction(1, 2**32)
    for width in (3, 7, 100, 255):  # the same rule with 16 bits, where cells can be counted
        cells = [0] * width
        for value in range(2**16):
            cells[value * width >> 16] += 1
        assert max(cells) == -(-(2**16) // width)


# ---- the bound on the squares


def largest_by_trial(y: Fraction, c: Fraction, s: Fraction, width: int, variance: Fraction, most: int) -> int:
    """Return the largest whole F <= most with F - sqrt(8 (2 c F^2 + 4 s F + w Var)) <= y, by trial; most if none."""
    for f in range(most, -1, -1):
        if f <= y or (f - y) ** 2 <= 8 * (2 * c * f * f + 4 * s * f + width * variance):
            return f
    return most


@pytest.mark.parametrize("noise", [LaplaceCells(Fraction(1, 2)), GaussianCells(30), NoNoise()], ids=repr)
@pytest.mark.parametrize("width", [20, 64, 1000])
def test_the_bound_on_the_squares_is_the_largest_of_the_formula(noise: CellNoise, width: int) -> None:
    """For medians above and below what the noise alone would give, down to where no F solves it."""
    moments, length, c = noise.moments, 60, collision_chance(width)
    base = math.floor(width * moments.square_high)
    for above in (-(10**6), -2000, -300, -40, -5, 0, 1, 10, 100, 900, 3000, 10**6):
        rows = [base + above, base + above + 10**9, base + above - 10**9]
        found = squares_bound(rows, width=width, length=length, noise=noise)
        y = base + above - width * moments.square_low
        assert found == largest_by_trial(y, c, moments.square_high, width, moments.variance_high, length**2)


def test_a_row_s_sum_of_squares_has_the_mean_and_at_most_the_variance_of_the_formula() -> None:
    """All hashes of four labels into three cells and all their signs, exactly; the noise by its moments.

    Given the signed sums A of the cells, sum (A + Z)^2 has mean sum A^2 + w E[Z^2] and variance
    4 E[Z^2] sum A^2 + w Var(Z^2), as E[Z] = E[Z^3] = 0.
    """
    counts, width = (5, 3, 1, 1), 3
    s, variance = Fraction(7), Fraction(90)
    squares = sum(f * f for f in counts)
    first = second = Fraction(0)
    ways = list(product(product(range(width), repeat=4), product((-1, 1), repeat=4)))
    for cells, signs in ways:
        a = [sum(f * g for f, g, h in zip(counts, signs, cells, strict=True) if h == cell) for cell in range(width)]
        energy = sum(x * x for x in a)
        mean = energy + width * s
        first += Fraction(mean, len(ways))
        second += (mean * mean + 4 * s * energy + width * variance) / len(ways)
    assert first - width * s == squares
    exact = second - first * first
    bound = 2 * Fraction(squares**2, width) + 4 * s * squares + width * variance
    assert exact <= bound
    fourth = sum(f**4 for f in counts)
    assert exact == bound - 2 * Fraction(fourth, width)  # what is left out is the labels' collision with themselves


def test_the_bound_fails_as_seldom_as_a_majority_of_rows() -> None:
    """P[Bin(d, 1/8) >= (d + 1)/2]."""
    for depth in (1, 3, 25, 79):
        assert squares_failure(depth) == pytest.approx(float(binom.sf((depth - 1) // 2, depth, 0.125)), rel=1e-8)


# ---- bad input


def test_bad_input_is_refused() -> None:
    """Rule, value and remedy."""
    with pytest.raises(InvalidParameter, match="multiple of 2"):
        LaplaceCells(Fraction(1, 3))
    with pytest.raises(InvalidParameter, match="multiple of 2"):
        LaplaceCells(floor_epsilon(Fraction(1, 2**33)))
    for variance in (0, -1, 1.5, True):
        with pytest.raises(InvalidParameter, match="whole number from 1"):
            GaussianCells(variance)  # type: ignore[arg-type]
    for shape in ((0, 3, 10), (10, 0, 10), (10, 3, 0), (-1, 3, 10)):
        with pytest.raises(InvalidParameter, match="must be a whole number"):
            CountMinError(*shape, NoNoise())
    with pytest.raises(InvalidParameter, match="odd"):
        CountSketchError(10, 4, 10, NoNoise())
    with pytest.raises(InvalidParameter, match="collision"):
        CountMinError(10, 4, 10, NoNoise(), collision=Fraction(1, 1000))
    with pytest.raises(InvalidParameter, match="odd number of rows"):
        squares_bound([1, 2], width=100, length=10, noise=NoNoise())
    with pytest.raises(InvalidParameter, match="above 16"):
        squares_bound([1], width=16, length=10, noise=NoNoise())
