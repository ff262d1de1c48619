"""Error envelopes hold: simulated sketches with ideal hashes fail no more often than beta, and broken claims are seen.

Streams are fixed before the hashes are drawn. False-alarm rate of each simulation: 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from dptop.envelope import (
    CountMinError,
    CountSketchError,
    Envelope,
    GaussianCells,
    LabelEnvelope,
    LaplaceCells,
    fixed_labels,
    noise_at_release,
    noise_first,
    squares_bound,
    squares_failure,
)
from dptop.noise import pmf, tail
from dptop.privacy import PrivacyParameters, exact_epsilon
from dptop.reference.space_saving import SpaceSaving
from dptop.tie import Tie

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from dptop.envelope import CellNoise

    Ints = NDArray[np.int64]

Label = TypeVar("Label")

ALARM = 1e-6
SEED = 20_240_607
BETA = Decimal("0.1")
STATE = PrivacyParameters(Fraction(1), Decimal(0))


def too_often(failures: int, trials: int, beta: float) -> bool:
    """Return whether so many failures have a chance below 1e-6 if each trial fails with at most beta."""
    return bool(binomtest(failures, trials, min(beta, 1.0), alternative="greater").pvalue < ALARM)


def drawn(noise: CellNoise, shape: tuple[int, ...], rng: np.random.Generator) -> Ints:
    """Return independent draws of Z: a difference of two geometric draws, or by the table of its chances."""
    if isinstance(noise, LaplaceCells):
        p = -math.expm1(-float(noise.epsilon_cell))
        return rng.geometric(p, shape) - rng.geometric(p, shape)
    assert isinstance(noise, GaussianCells)
    z = np.arange(-math.ceil(9 * noise.variance**0.5), math.ceil(9 * noise.variance**0.5) + 1)
    p_z = np.exp(-(z.astype(float) ** 2) / (2 * noise.variance))
    return rng.choice(z, shape, p=p_z / p_z.sum())


STREAMS: dict[str, list[int]] = {  # the counts of the other labels, whose sum is N or less
    "distinct": [1] * 200,
    "one heavy": [64],
    "heavy among light": [150, *[1] * 50],
    "equal": [20] * 10,
    "Zipf": [max(1, int(60 / i**1.1)) for i in range(1, 80)],
    "random": np.random.default_rng(3).multinomial(200, [1 / 40] * 40).tolist(),
}


@dataclass
class Ideal:
    """Rows with fully random hashes, drawn anew in every trial, and signs that are random, all +1, or none."""

    width: int
    depth: int
    noise: CellNoise
    signs: str = "none"
    collision: float = 0.0

    def errors(self, others: Sequence[int], trials: int, rng: np.random.Generator) -> Ints:
        """Return estimate - f of a label beside others with these counts, one for each trial."""
        chance = self.collision or 1 / self.width
        counts = np.array(others)
        shape = (trials, self.depth, len(counts))
        weights = counts * (rng.integers(0, 2, shape) * 2 - 1) if self.signs == "random" else counts
        rows = np.where(rng.random(shape) < chance, weights, 0).sum(axis=2)
        rows = rows + drawn(self.noise, rows.shape, rng)
        return np.asarray(np.median(rows, axis=1) if self.signs != "none" else rows.min(axis=1)).astype(np.int64)


def label_failures(
    claim: CountMinError | CountSketchError, sketch: Ideal, others: Sequence[int], trials: int = 4000
) -> tuple[int, int, float]:
    """Return how often a fixed label's estimate is beyond what `fixed_labels` claims at 0.1, of how many, and beta."""
    envelope = fixed_labels(claim, delta=2 * BETA, capacity=1000, tie=Tie.LEAST_RECENT, state=STATE)
    assert envelope is not None
    errors = sketch.errors(others, trials, np.random.default_rng(SEED))
    return int((errors > envelope.over).sum()), trials, float(envelope.beta)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("noise", [LaplaceCells(exact_epsilon(0.5)), GaussianCells(9)], ids=repr)
@pytest.mark.parametrize("depth", [1, 3, 7])
def test_the_estimate_of_a_fixed_label_holds(stream: str, noise: CellNoise, depth: int) -> None:
    """Count-Min and CountSketch, by the squares of the stream, with and without the halving."""
    others = STREAMS[stream]
    length, squares = 1000, sum(f * f for f in others)
    for claim, signs in (
        (CountMinError(32, depth, length, noise), "none"),
        (CountMinError(32, depth, sum(others), noise), "none"),
        (CountSketchError(32, depth, length, noise, squares, fully_random_signs=True), "random"),
        (CountSketchError(32, depth, length, noise, squares), "random"),
    ):
        sketch = Ideal(32, depth, noise, signs)
        if fixed_labels(claim, delta=2 * BETA, capacity=1000, tie=Tie.LEAST_RECENT, state=STATE) is None:
            assert depth == 1  # Markov's bound alone, N/w > 0.1 N
            continue
        failures, trials, beta = label_failures(claim, sketch, others)
        assert not too_often(failures, trials, beta), f"{failures} of {trials}, beta {beta}, seed {SEED}, alarm {ALARM}"


def test_the_estimate_below_holds_too() -> None:
    """P[estimate - f < -g] for the smallest g at 0.1: close to it where there is nothing but noise."""
    rng = np.random.default_rng(SEED)
    noise = LaplaceCells(exact_epsilon(0.25))
    for claim, signs in (
        (CountMinError(1024, 5, 200, noise), "none"),
        (CountSketchError(1024, 5, 200, noise, squares=200), "random"),
    ):
        g = next(g for g in range(1000) if claim.under(g) <= 0.1)
        errors = Ideal(1024, 5, noise, signs).errors(STREAMS["distinct"], 20_000, rng)
        failures = int((errors < -g).sum())
        assert not too_often(failures, 20_000, claim.under(g)), f"{failures} of 20,000, alarm {ALARM}"
        assert failures > 20_000 * claim.under(g) / 3  # the bound is not far off, so that this can fail
        broken = Ideal(1024, 5, LaplaceCells(exact_epsilon(0.125)), signs).errors(STREAMS["distinct"], 20_000, rng)
        assert too_often(int((broken < -g).sum()), 20_000, claim.under(g))


EPSILON = 1.0
LIGHT, HEAVY = STREAMS["distinct"], STREAMS["one heavy"]
CELLS = LaplaceCells(exact_epsilon(EPSILON / 4))
QUIET = LaplaceCells(exact_epsilon(16.0))
DOUBLE = LaplaceCells(exact_epsilon(EPSILON / 8))
WHOLE = LaplaceCells(exact_epsilon(EPSILON))

Broken = tuple[CountMinError | CountSketchError, Ideal, list[int]]

BROKEN: dict[str, Broken] = {
    "noise of twice the scale": (CountMinError(4096, 4, 200, CELLS), Ideal(4096, 4, DOUBLE), LIGHT),
    "no depth factor in the claim": (CountMinError(4096, 4, 200, WHOLE), Ideal(4096, 4, CELLS), LIGHT),
    "a row more in the claim": (CountMinError(4096, 5, 200, CELLS), Ideal(4096, 4, CELLS), LIGHT),
    "collisions twice as likely": (CountMinError(16, 1, 64, QUIET), Ideal(16, 1, QUIET, collision=2 / 16), HEAVY),
    "length half of what it is": (CountMinError(16, 1, 32, QUIET), Ideal(16, 1, QUIET), HEAVY),
    "noise of twice the scale, median": (
        CountSketchError(4096, 5, 200, CELLS, 200),
        Ideal(4096, 5, DOUBLE, "random"),
        LIGHT,
    ),
    "no depth factor in the claim, median": (
        CountSketchError(4096, 5, 200, WHOLE, 200),
        Ideal(4096, 5, CELLS, "random"),
        LIGHT,
    ),
    "variance a fourth of what it is": (
        CountSketchError(4096, 5, 200, GaussianCells(25), 200),
        Ideal(4096, 5, GaussianCells(100), "random"),
        LIGHT,
    ),
    "halved without random signs": (
        CountSketchError(8, 1, 64, QUIET, 64**2, fully_random_signs=True),
        Ideal(8, 1, QUIET, "all +1"),
        HEAVY,
    ),
    "squares half of what they are": (
        CountSketchError(8, 1, 64, QUIET, 64**2 // 2, fully_random_signs=True),
        Ideal(8, 1, QUIET, "random"),
        HEAVY,
    ),
}


@pytest.mark.parametrize("mistake", BROKEN)
def test_a_broken_claim_about_a_label_is_seen(mistake: str) -> None:
    """The simulation has the power to see each; the same claim about the sketch it is made for holds above."""
    claim, sketch, others = BROKEN[mistake]
    if others is LIGHT:
        failures, trials, beta = label_failures(claim, sketch, others, 20_000)
    else:  # right below the heavy label's count, where Markov's and Chebyshev's inequalities are equalities
        g, trials = HEAVY[0] - 2, 20_000  # two below: the noise may take one
        errors = sketch.errors(others, trials, np.random.default_rng(SEED))
        failures, beta = int((errors > g).sum()), claim.over(g)
    assert too_often(failures, trials, beta), f"{failures} of {trials} at beta {beta} were not seen"


# ---- all estimates of a stream


ORDERED: dict[str, list[int]] = {
    "distinct": list(range(120)),
    "one heavy among light": [x for i in range(60) for x in (0, i + 1)],
    "equal, in turns": [i % 12 for i in range(120)],
    "Zipf": np.minimum(np.random.default_rng(5).zipf(1.3, 120), 60).tolist(),
    "random": np.random.default_rng(6).integers(0, 40, 120).tolist(),
}


def stream_failures(
    stream: Sequence[int], envelope: Envelope, sketch: Ideal, trials: int, *, first: bool
) -> tuple[int, int]:
    """Return in how many trials an estimate that was asked for is not within the envelope, and trials.

    Whole sketches, one a trial, all at once. The last label is one that is not in the stream.
    """
    rng = np.random.default_rng(SEED)
    labels = {x: i for i, x in enumerate(dict.fromkeys(stream))}
    d, w, many = sketch.depth, sketch.width, len(labels) + 1
    cells = rng.integers(0, w, (trials, d, many))
    signs = rng.integers(0, 2, (trials, d, many)) * 2 - 1 if sketch.signs == "random" else np.ones((1, 1, many), int)
    noise = drawn(sketch.noise, (trials, d, w), rng)
    table = noise.copy() if first else np.zeros((trials, d, w), int)
    trial, row = np.arange(trials)[:, None], np.arange(d)[None, :]
    counts, failed = np.zeros(many, int), np.zeros(trials, bool)

    def estimate(i: int) -> Ints:
        rows = signs[:, :, i] * table[trial, row, cells[:, :, i]]
        return np.asarray(np.median(rows, axis=1) if sketch.signs == "random" else rows.min(axis=1)).astype(np.int64)

    for x in stream:
        i = labels[x]
        table[trial, row, cells[:, :, i]] += signs[:, :, i]
        counts[i] += 1
        error = estimate(i) - counts[i]
        failed |= (error > envelope.over_tracking) | (error < -envelope.under_tracking)
    if not first:
        table += noise
    for i in range(many):
        failed |= estimate(i) - counts[i] > envelope.over
    return int(failed.sum()), trials


FORMS: dict[str, Callable[..., Envelope | None]] = {"at release": noise_at_release, "first": noise_first}


@pytest.mark.parametrize("stream", ORDERED)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("random_signs", [False, True])
def test_all_estimates_of_a_stream_hold_at_once(stream: str, form: str, random_signs: bool) -> None:
    """On arrival and at the end, for every label and one more; N is the length itself, the least that is allowed."""
    items, noise = ORDERED[stream], LaplaceCells(exact_epsilon(1.0))
    length = len(items)
    squares = sum(items.count(x) ** 2 for x in set(items))
    claim: CountMinError | CountSketchError = CountMinError(256, 3, length, noise)
    if random_signs:
        claim = CountSketchError(256, 7, length, noise, squares, fully_random_signs=True)
    envelope = FORMS[form](claim, beta=BETA, capacity=1000, state=STATE)
    assert envelope is not None
    sketch = Ideal(256, claim.depth, noise, "random" if random_signs else "none")
    failures, trials = stream_failures(items, envelope, sketch, 1500, first=form == "first")
    beta = float(envelope.beta)
    assert not too_often(failures, trials, beta), f"{failures} of {trials}, beta {beta}, seed {SEED}, alarm {ALARM}"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("random_signs", [False, True])
@pytest.mark.parametrize("mistake", ["scale", "union"])
def test_a_broken_claim_about_a_stream_is_seen(form: str, random_signs: bool, mistake: str) -> None:
    """Noise of twice the scale; errors of one label taken for those of all."""
    items, noise = ORDERED["distinct"], LaplaceCells(exact_epsilon(1.0))
    length, depth = len(items), 7 if random_signs else 3
    claim: CountMinError | CountSketchError = CountMinError(4096, depth, length, noise)
    if random_signs:
        claim = CountSketchError(4096, depth, length, noise, length, fully_random_signs=True)
    envelope = FORMS[form](claim, beta=BETA, capacity=1000, state=STATE)
    assert envelope is not None
    if mistake == "union":
        one = next(g for g in range(1000) if claim.over(g) <= float(BETA))
        envelope = replace(envelope, over=one, over_tracking=max(one, envelope.over_tracking))
    else:
        noise = LaplaceCells(exact_epsilon(0.5))
    sketch = Ideal(4096, depth, noise, "random" if random_signs else "none")
    failures, trials = stream_failures(items, envelope, sketch, 1500, first=form == "first")
    assert too_often(failures, trials, float(envelope.beta)), f"{failures} of {trials} were not seen"


# ---- the bound on the squares


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("noise", [LaplaceCells(exact_epsilon(0.5)), GaussianCells(9)], ids=repr)
def test_the_bound_on_the_squares_holds(stream: str, noise: CellNoise) -> None:
    """It is too low no more often than a majority of rows is; the median itself, without the root, is."""
    depth, width, trials = 3, 64, 2000
    rng = np.random.default_rng(SEED)
    counts = np.array(STREAMS[stream])
    squares, length = int((counts**2).sum()), 10_000
    cells = rng.integers(0, width, (trials, depth, len(counts)))
    signs = rng.integers(0, 2, (trials, depth, len(counts))) * 2 - 1
    table = drawn(noise, (trials, depth, width), rng)
    trial, row = np.arange(trials)[:, None], np.arange(depth)[None, :]
    for i, f in enumerate(counts):
        table[trial, row, cells[:, :, i]] += f * signs[:, :, i]
    sums = (table**2).sum(axis=2).tolist()
    bounds = [squares_bound(rows, width=width, length=length, noise=noise) for rows in sums]
    failures, beta = sum(bound < squares for bound in bounds), squares_failure(depth)
    assert not too_often(failures, trials, beta), f"{failures} of {trials}, beta {beta}, seed {SEED}, alarm {ALARM}"
    if len(counts) > 1:  # a single label's square has no error but the noise's
        medians = [sorted(rows)[1] - width * float(noise.moments.square_low) for rows in sums]
        assert too_often(sum(y < squares for y in medians), trials, beta)


# ---- what follows from an envelope: docs/privacy.md


def track(stream: Sequence[Label], capacity: int, estimates: Sequence[int]) -> set[Label]:
    """Return the labels with the largest estimates seen, each stored as of the label's last arrival."""
    stored: dict[Label, int] = {}
    for x, estimate in zip(stream, estimates, strict=True):
        if x in stored or len(stored) < capacity:
            stored[x] = estimate
        else:
            lowest = min(stored, key=lambda y: stored[y])
            if estimate > stored[lowest]:
                del stored[lowest]
                stored[x] = estimate
    return set(stored)


@given(st.data(), st.integers(1, 4), st.integers(0, 3), st.integers(0, 3))
@settings(deadline=None, derandomize=True, max_examples=600)
def test_an_untracked_label_is_not_frequent(data: st.DataObject, capacity: int, above: int, below: int) -> None:
    """However the estimates lie within [f - t2, f + t1], a label that is not tracked has f <= floor(n/K) + t1 + t2."""
    stream = data.draw(st.lists(st.integers(0, capacity + 1), min_size=1, max_size=40))
    errors = data.draw(st.lists(st.integers(-below, above), min_size=len(stream), max_size=len(stream)))
    estimates = [stream[: i + 1].count(x) + e for i, (x, e) in enumerate(zip(stream, errors, strict=True))]
    tracked = track(stream, capacity, estimates)
    limit = len(stream) // capacity + above + below
    assert all(stream.count(x) <= limit for x in set(stream) - tracked)


@pytest.mark.parametrize("capacity", [5, 9])
def test_neither_error_of_tracking_may_be_left_out(capacity: int) -> None:
    """An adversary's estimates keep a label out that exceeds floor(n/K) + t1, and floor(n/K) + t2."""
    above = below = 4 * capacity
    few, many = 2, 2 + above + below  # K labels that look like few + t1, one that looks like many - t2
    stream = [x for x in range(capacity) for _ in range(few)] + [capacity] * many
    estimates = [few + above] * (capacity * few) + [many - below] * many
    assert capacity not in track(stream, capacity, estimates)
    assert many <= len(stream) // capacity + above + below
    assert many > len(stream) // capacity + above
    assert many > len(stream) // capacity + below


@cache
def chance(z: int) -> float:
    return float(pmf(Fraction(1), z))


def law(counts: Mapping[str, int], tracked: frozenset[str], threshold: int) -> list[dict[int, float]]:
    """Return, for each of three labels, the chances of the values it is published with; what is left is not at all."""
    reach = range(threshold + 1, threshold + 40)
    return [{v: chance(v - counts[x]) for v in reach} if x in tracked else {} for x in "abc"]


def divergence(p: list[dict[int, float]], q: list[dict[int, float]]) -> float:
    """Return sum over outputs of max(0, P - e Q), of independent labels; equal ones change nothing."""
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a != b]
    options = [
        [(a.get(v, 0.0), b.get(v, 0.0)) for v in {*a, *b}] + [(1 - sum(a.values()), 1 - sum(b.values()))]
        for a, b in pairs
    ]
    total = 0.0
    for output in product(*options):
        total += max(0.0, math.prod(x for x, _ in output) - math.e * math.prod(y for _, y in output))
    return total


Tracker = Callable[[Sequence[str], int], frozenset[str]]


def by_estimates(stream: Sequence[str], capacity: int) -> frozenset[str]:
    return frozenset(track(stream, capacity, [stream[: i + 1].count(x) for i, x in enumerate(stream)]))


def by_space_saving(tie: Tie) -> Tracker:
    def tracked(stream: Sequence[str], capacity: int) -> frozenset[str]:
        summary: SpaceSaving[str] = SpaceSaving(capacity, tie)
        for x in stream:
            summary.update(x)
        return frozenset(summary.counters())

    return tracked


def worst(tracker: Tracker, capacity: int, length: int, threshold: int) -> float:
    """Return the largest divergence between neighbours of at most `length` items over three labels.

    The oracle counts exactly, and adds one draw with epsilon = 1 to each label's count at release.
    """

    def state(stream: Sequence[str]) -> tuple[tuple[int, ...], frozenset[str]]:
        return tuple(stream.count(x) for x in "abc"), tracker(stream, capacity)

    pairs = set()
    for n in range(1, length + 1):
        for stream in product("abc", repeat=n):
            pairs |= {(state(stream), state(stream[:i] + stream[i + 1 :])) for i in range(n)}
    found = 0.0
    for pair in pairs:
        p, q = (law(dict(zip("abc", counts, strict=True)), tracked, threshold) for counts, tracked in pair)
        found = max(found, divergence(p, q), divergence(q, p))
    return found


@pytest.mark.parametrize("gap", [3, 5])
def test_a_stated_envelope_keeps_the_promise(gap: int) -> None:
    """Every pair of neighbours over three labels, exactly: at most (1 + e^epsilon) beta; without `over` it is more."""
    beta = 3 * tail(Fraction(1), gap)  # any of three draws
    envelope = Envelope(over_tracking=0, under_tracking=0, over=gap, beta=beta, state=STATE)
    promised = float(envelope.total.delta)
    threshold = envelope.threshold(length=5, capacity=2)
    assert worst(by_estimates, 2, 5, threshold) <= promised < 1
    assert worst(by_estimates, 2, 5, threshold - gap) > promised


@pytest.mark.parametrize("tie", Tie)
@pytest.mark.parametrize("gap", [2, 4])
def test_an_envelope_of_fixed_labels_keeps_the_promise(tie: Tie, gap: int) -> None:
    """Labels by SpaceSaving: at most s P[estimate - f > g], and the threshold could not be lower by two."""
    envelope = LabelEnvelope(over=gap, beta=tail(Fraction(1), gap), once=Decimal(0), tie=tie, state=STATE)
    promised = float(envelope.total.delta)
    for capacity, length in ((1, 2), (2, 1), (2, 4), (2, 5)):
        assert worst(by_space_saving(tie), capacity, length, envelope.threshold(length, capacity)) <= promised
    assert worst(by_space_saving(tie), 2, 1, envelope.threshold(1, 2) - 2) > promised
