"""The exact sampler: its law against the exact probabilities, its twin, and its entropy."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import binomtest, chi2_contingency, chisquare

from dptop import _native, noise
from dptop.errors import InvalidParameter
from dptop.privacy import exact_epsilon
from dptop.reference import discrete_laplace as reference
from dptop.search import smallest_by_bisection

if TYPE_CHECKING:
    from collections.abc import Sequence

ALARM = 1e-6
DRAWS = 200_000
EPSILONS = [2.0**-20, 0.003, 0.1, 0.5, 1.0, 3.7, 8.0]


SHARES = [0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005]
"""Chances of a draw above the end of a cell."""


def above(epsilon: Fraction, share: float) -> int:
    """Return the smallest q >= 0 that a draw exceeds with chance at most `share`."""
    return smallest_by_bisection(lambda q: noise.tail(epsilon, q) <= Decimal(share))


def cells(epsilon: Fraction) -> list[int]:
    """Return ends of cells e_0 < e_1 < ...: a draw is in cell i if e_(i-1) < z <= e_i. Each expects 25 or more."""
    ends: list[int] = []
    beyond = Decimal("0.5")
    for end in sorted({above(epsilon, share) for share in SHARES}):
        chance = noise.tail(epsilon, end)
        if min(beyond - chance, chance) * DRAWS >= 25:
            ends.append(end)
            beyond = chance
    return sorted(-end - 1 for end in ends) + ends


def counted(draws: Sequence[int], ends: list[int]) -> list[int]:
    found = Counter(np.searchsorted(ends, np.asarray(draws)).tolist())
    return [found[i] for i in range(len(ends) + 1)]


def expected(epsilon: Fraction, ends: list[int]) -> list[float]:
    """Return the exact chance of each cell."""
    tails = [Decimal(1), *(noise.tail(epsilon, end) for end in ends), Decimal(0)]
    return [float(a - b) for a, b in pairwise(tails)]


def law(draws: Sequence[int], epsilon: Fraction) -> float:
    """Return the p-value of the draws under the exact law, by chi-square."""
    ends = cells(epsilon)
    chances = expected(epsilon, ends)
    assert sum(chances) == pytest.approx(1, abs=1e-12)
    assert len(chances) >= 3
    assert min(chances) * len(draws) >= 25
    scale = len(draws) / sum(chances)
    return float(chisquare(counted(draws, ends), [chance * scale for chance in chances]).pvalue)


@pytest.mark.parametrize("value", EPSILONS)
def test_draws_have_the_exact_law(value: float) -> None:
    """Fresh draws fit the exact probabilities in every cell."""
    epsilon = exact_epsilon(value)
    p = law(noise.draw(epsilon, DRAWS), epsilon)
    assert p > ALARM, f"p-value {p}; this alarm is false once in 10^6 runs, so look for a cause"


@pytest.mark.parametrize("value", EPSILONS)
@pytest.mark.parametrize("share", [0.1, 1e-2, 1e-3])
def test_both_tails_are_as_heavy_as_they_should_be(value: float, share: float) -> None:
    """Each side exceeds a far quantile as often as its exact chance says; the sides are told apart."""
    epsilon = exact_epsilon(value)
    draws = np.array(noise.draw(epsilon, DRAWS))
    q = above(epsilon, share)
    chance = float(noise.tail(epsilon, q))
    for side, beyond in (("upper", int((draws > q).sum())), ("lower", int((draws < -q).sum()))):
        p = binomtest(beyond, DRAWS, chance).pvalue
        assert p > ALARM / 2, f"{side} tail: {beyond} of {DRAWS} at chance {chance}; false-alarm rate 1e-6"


def test_at_a_large_epsilon_almost_all_draws_are_zero() -> None:
    """At epsilon 64 another value has chance 3e-28."""
    assert set(noise.draw(Fraction(64), DRAWS)) == {0}
    assert noise.tail(Fraction(64), 0) * 2 * DRAWS < ALARM


@pytest.mark.parametrize("value", [0.003, 0.1, 1.0, 3.7])
def test_a_wrong_law_is_seen(value: float) -> None:
    """Draws with twice the epsilon, and rounded continuous Laplace noise, fail the same test: it can fail."""
    epsilon = exact_epsilon(value)
    assert law(noise.draw(2 * epsilon, DRAWS), epsilon) < ALARM
    if value >= 1:  # rounding shows where the scale is small
        rounded = np.rint(np.random.default_rng(1).laplace(scale=1 / value, size=DRAWS)).astype(int)
        assert law(rounded.tolist(), epsilon) < ALARM
    one_sided = [abs(z) for z in noise.draw(epsilon, DRAWS)]
    assert law(one_sided, epsilon) < ALARM


@pytest.mark.parametrize("value", [2.0**-10, 0.1, 1.0, 3.7])
def test_draws_agree_with_those_of_opendp(value: float) -> None:
    """OpenDP's sampler of the same law, which shares no code with ours, fills the cells in the same proportions."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    theirs = dp.m.make_laplace(*space, scale=1 / value)([0] * (DRAWS // 2))
    epsilon = exact_epsilon(value)
    ends = cells(epsilon)
    ours = counted(noise.draw(epsilon, DRAWS), ends)
    p = chi2_contingency([ours, counted(theirs, ends)]).pvalue
    assert p > ALARM, f"p-value {p}; this alarm is false once in 10^6 runs, so look for a cause"
    doubled = counted(noise.draw(2 * epsilon, DRAWS), ends)
    assert chi2_contingency([np.add(doubled, 1), np.add(counted(theirs, ends), 1)]).pvalue < ALARM


NUMERATORS = [1, 2, 3, 2**12, 2**12 + 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 3 * 2**31, 5 * 2**32, 2**38, 2**38 - 1]


@pytest.mark.parametrize("numerator", NUMERATORS)
def test_native_draws_are_those_of_the_twin(numerator: int) -> None:
    """From the same seed the crate and its twin in Python return the same numbers."""
    for number in range(3):
        seed = noise.seed_bytes(number)
        assert _native.discrete_laplace(numerator, 100, seed) == reference.discrete_laplace(numerator, 100, seed)


def test_native_draws_are_those_of_the_twin_at_any_epsilon() -> None:
    """The same for 200 epsilons of all sizes."""
    generator = random.Random(11)
    for _ in range(200):
        numerator = generator.randrange(1, 1 << generator.randrange(1, 39))
        seed = generator.randbytes(32)
        assert _native.discrete_laplace(numerator, 20, seed) == reference.discrete_laplace(numerator, 20, seed)


def test_a_seed_repeats_and_another_does_not() -> None:
    """A seeded stream does not depend on how many draws are asked for; another seed gives another."""
    some = noise.draw(Fraction(1, 128), 50, seed=1)
    assert noise.draw(Fraction(1, 128), 100, seed=1)[:50] == some
    assert noise.draw(Fraction(1, 128), 50, seed=2) != some


def test_every_call_has_fresh_entropy() -> None:
    """Two calls differ: 100 draws at epsilon 2^-20 repeat by chance once in 2^2000."""
    drawn = {tuple(noise.draw(exact_epsilon(2.0**-20), 100)) for _ in range(20)}
    assert len(drawn) == 20


def test_generators_of_others_do_not_matter() -> None:
    """Neither the state of Python's generator nor that of NumPy's decides a draw, and none is changed by it."""
    drawn = []
    for _ in range(3):
        random.seed(1)
        np.random.seed(1)
        before = random.getstate(), pickle.dumps(np.random.get_state())
        drawn.append(noise.draw(exact_epsilon(2.0**-20), 100))
        assert (random.getstate(), pickle.dumps(np.random.get_state())) == before
    assert drawn[0] != drawn[1] != drawn[2] != drawn[0]


FORKS = """
import os, pickle, sys
import dptop
from dptop import noise
from dptop.privacy import exact_epsilon

noise.draw(exact_epsilon(2.0**-20), 100)  # whatever could be kept from a call is there before the fork
summary = dptop.SpaceSaving(200, budget=dptop.Budget(64, 0.5))
summary.extend(list(range(100)), weights=[10**9] * 100)
data = pickle.dumps(summary)

def drawn():
    twin = pickle.loads(data)
    released = dptop.release(twin, epsilon=2.0**-20, delta=0.1)
    return noise.draw(exact_epsilon(2.0**-20), 100), [row.count for row in released]

out = []
for _ in range(5):
    read, write = os.pipe()
    if os.fork() == 0:
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(drawn(), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        out.append(pickle.load(pipe))
    os.wait()
out.append(drawn())
pickle.dump(out, sys.stdout.buffer)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forks_and_pickles_draw_their_own_noise() -> None:
    """Children of one process, the process itself, and unpickled twins of one summary never share noise."""
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, check=True)
    out: list[tuple[list[int], list[int]]] = pickle.loads(done.stdout)
    assert len(out) == 6
    assert len({tuple(draws) for draws, _ in out}) == 6
    assert len({tuple(counts) for _, counts in out}) == 6
    assert all(len(counts) == 100 for _, counts in out)


@pytest.mark.parametrize(
    "epsilon", [Fraction(0), Fraction(-1), Fraction(1, 3), Fraction(1, 2**33), Fraction(-1, 2**32)]
)
def test_an_epsilon_off_the_grid_is_refused(epsilon: Fraction) -> None:
    """The noise is exact for multiples of 2^-32 and drawn for nothing else."""
    with pytest.raises(InvalidParameter, match="2\\*\\*-32"):
        noise.draw(epsilon, 1)


@pytest.mark.parametrize(
    "arguments", [(0, 1), (-1, 1), (2**64, 1), (1, -1), (1.5, 1), (1, 1, b"short"), (1, 1, bytes(33)), (1, 1, 7)]
)
def test_the_border_refuses_bad_arguments(arguments: tuple[Any, ...]) -> None:
    """No argument out of range reaches the sampler."""
    with pytest.raises((InvalidParameter, OverflowError, TypeError)):
        _native.discrete_laplace(*arguments)


def test_no_draws() -> None:
    """Zero draws are none, and take no entropy."""
    assert noise.draw(Fraction(1), 0) == []


def test_seeds_of_different_purposes_never_meet() -> None:
    """For all seeds that a release takes, and for all shards: counters, length, cells and counts draw apart."""
    largest = _native.MAX_LENGTH
    purposes = [0, noise.LENGTH_SEED, noise.CELLS_SEED, noise.COUNTS_SEED, noise.NEXT_SHARD]
    assert all(later - earlier > largest for earlier, later in pairwise(purposes))
