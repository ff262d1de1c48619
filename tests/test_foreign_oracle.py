"""Plug and play: the Count-Min sketch of Apache DataSketches as an oracle, and heavy hitters released from it.

The sketch knows nothing of privacy. Two wrappers put exact noise into its table, by way of its serialised form: before
the first item, as the paper has it, or into a copy at release.

What is assumed of its hashes. A row's bucket is 64 bits of MurmurHash3 with a seed of its own, modulo the buckets
(`get_hashes` in its source), and its Python package reads back only sketches with the seed that all know. So labels are
reduced to 128 bits by keyed BLAKE2b first, with a key from the system's entropy: what MurmurHash3 sees is as good as
random, also where someone has made labels that meet under it whatever its seed. Then two labels meet in a row with
chance 1/w, and 2/w is claimed; that the rows behave as independent is assumed.
"""

from __future__ import annotations

import secrets
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from typing import Any, Self

import datasketches
import numpy as np
import pytest
from scipy.stats import binom, binomtest, chisquare

import dptop
from dptop import noise
from dptop.envelope import CountMinError, Envelope, LaplaceCells, beta_within, noise_at_release, noise_first
from dptop.privacy import PrivacyParameters, floor_epsilon

EPSILON, DELTA = 1.0, 1e-6
BUCKETS, ROWS, CAPACITY = 8192, 8, 100
LENGTH = 50_000


def table_of(sketch: Any, cells: int) -> Any:
    """Return the cells, row after row: doubles, which the serialised form ends with."""
    return np.frombuffer(sketch.serialize()[-8 * cells :])


class DataSketches:
    """Count-Min of Apache DataSketches for text: what its wrappers share."""

    def __init__(self, epsilon: Fraction = Fraction(1, 2), share_of_delta: Decimal = Decimal("1e-6")) -> None:
        self.key = secrets.token_bytes(32)
        self.sketch = datasketches.count_min_sketch(ROWS, BUCKETS)
        self.state = PrivacyParameters(epsilon, Decimal(0))
        self.epsilon_cell = floor_epsilon(epsilon / ROWS)
        self.beta = beta_within(share_of_delta, epsilon)

    def fingerprint(self, item: str) -> str:
        return blake2b(item.encode(), digest_size=16, key=self.key).hexdigest()

    def update(self, item: str, weight: int = 1) -> None:
        self.sketch.update(self.fingerprint(item), weight)

    def estimate(self, item: str) -> int:
        return int(self.sketch.get_estimate(self.fingerprint(item)))

    def envelope(self, length: int) -> Envelope:
        raise NotImplementedError

    def error(self, length: int) -> CountMinError:
        cells = LaplaceCells(self.epsilon_cell)
        collision, sharing = Fraction(2, BUCKETS), Fraction(1, 2**128)
        return CountMinError(BUCKETS, ROWS, length, cells, collision=collision, sharing=sharing)

    def with_noise(self) -> Any:
        """Return the sketch with noise in each cell."""
        cells = ROWS * BUCKETS
        noisy = table_of(self.sketch, cells) + noise.draw(self.epsilon_cell, cells)
        image = self.sketch.serialize()[: -8 * cells] + noisy.tobytes()
        return datasketches.count_min_sketch.deserialize(image)


class NoiseFirst(DataSketches):
    """Noise before the first item: every estimate is noisy, early and late."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.update("any", 1)  # an empty sketch is serialised without its table;
        self.update("any", -1)  # cells are as they were
        self.sketch = self.with_noise()

    def envelope(self, length: int) -> Envelope:
        envelope = noise_first(self.error(length), beta=self.beta, capacity=CAPACITY, state=self.state)
        assert envelope is not None
        return envelope


class NoiseAtRelease(DataSketches):
    """Exact cells while the stream is read; a noisy copy for the final estimates."""

    def noisy(self) -> Self:
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.sketch = self.with_noise()
        return copy

    def envelope(self, length: int) -> Envelope:
        envelope = noise_at_release(self.error(length), beta=self.beta, capacity=CAPACITY, state=self.state)
        assert envelope is not None
        return envelope


class Stated(NoiseFirst):
    """The same bounds in the form for any oracle: all estimates within [f - under, f + over]."""

    def envelope(self, length: int) -> Envelope:
        error = self.error(length)
        half = 0.4999 * float(self.beta)
        over = next(g for g in range(10**6) if error.noisy_overs(g) <= half)
        under = next(g for g in range(10**6) if error.noisy_unders(g) <= half)
        return Envelope.stated(over=over, under=under, beta=2 * half, epsilon=float(self.state.epsilon))


ORACLES = [NoiseFirst, NoiseAtRelease, Stated]
WAYS = [("space-saving", "selected"), ("space-saving", "envelope"), ("estimates", "envelope")]


def zipf_stream(seed: int) -> list[str]:
    generator = np.random.default_rng(seed)
    return [f"page {rank}" for rank in generator.zipf(1.3, LENGTH) if rank <= 10_000]


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize(("candidates", "mechanism"), WAYS)
def test_heavy_hitters_are_released_from_another_library_s_sketch(
    oracle: type[DataSketches], candidates: str, mechanism: str
) -> None:
    """Everything well above the threshold comes out, nothing that is rare does, and intervals hold the true counts."""
    stream = zipf_stream(len(oracle.__name__))
    true: Counter[Any] = Counter(stream)
    made = oracle()
    summary = dptop.Tracked(made, CAPACITY, candidates)
    summary.extend(stream)
    result = dptop.release(
        summary, epsilon=EPSILON, delta=DELTA, mechanism=mechanism, length=LENGTH, confidence=1 - 1e-8
    )
    stated = made.envelope(LENGTH)
    if mechanism == "envelope":
        threshold = result.parameters["threshold"]
        extra = stated.over + 1 if candidates == "space-saving" else stated.errors
        assert threshold == LENGTH // CAPACITY + extra
    else:
        threshold = LENGTH // CAPACITY + result.parameters["offset"] + 60  # the minimum is at most n/K, and 30 scales
    released = {row.item for row in result}
    # noise lowers an estimate by 400 with chance 8 e^(-400/16) = 1e-10
    surely = {item for item, count in true.items() if count > threshold + 400}
    assert len(surely) >= 4
    assert surely <= released
    if mechanism == "envelope":
        assert all(true[item] > LENGTH // CAPACITY for item in released)
    for row in result:
        assert -400 <= row.count - true[row.item] <= stated.over
        assert row.low <= true[row.item] <= row.high
    assert oracle.__name__ in result.explain()
    assert "the oracle keeps the envelope and the privacy that it states" in result.explain()


def test_its_hashes_keep_the_claim() -> None:
    """Over fresh keys two labels meet in a row about as often as 1/w, less than 2/w, and rows independently."""
    rows, buckets, runs = 3, 16, 20_000
    met = np.zeros(runs, dtype=int)
    oracle = DataSketches()
    for run in range(runs):
        oracle.key = secrets.token_bytes(32)
        sketch = datasketches.count_min_sketch(rows, buckets)
        for item in "ab":
            sketch.update(oracle.fingerprint(item))
        met[run] = (table_of(sketch, rows * buckets) == 2).sum()
    law = binom.pmf(np.arange(rows + 1), rows, 1 / buckets) * runs
    found = np.bincount(met, minlength=rows + 1)
    merged = [(f[0], f[1], f[2] + f[3]) for f in (found, law)]  # three rows at once are expected five times
    p = chisquare(*merged).pvalue
    assert p > 1e-6, f"{found} for {law}: p-value {p}; false once in 10^6 runs, so look for a cause"
    assert binomtest(int(met.sum()), runs * rows, 2 / buckets).pvalue < 1e-6


def test_noise_in_its_table_is_what_was_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each cell once, at its place; without noise the copy is the sketch."""
    oracle = NoiseAtRelease()
    for _ in range(3):
        oracle.update("a", 5)
        oracle.update("b")
    monkeypatch.setattr(noise, "draw", lambda epsilon, count: [0] * count)
    assert oracle.noisy().sketch.serialize() == oracle.sketch.serialize()
    asked: list[tuple[Fraction, int]] = []

    def numbered(epsilon: Fraction, count: int) -> list[int]:
        asked.append((epsilon, count))
        return list(range(count))

    monkeypatch.setattr(noise, "draw", numbered)
    after, before = (table_of(sketch, ROWS * BUCKETS) for sketch in (oracle.noisy().sketch, oracle.sketch))
    assert (after - before == np.arange(ROWS * BUCKETS)).all()
    assert before.sum() == 18 * ROWS
    assert asked == [(floor_epsilon(Fraction(1, 16)), ROWS * BUCKETS)]
    assert (oracle.estimate("a"), oracle.estimate("b")) == (15, 3)


def test_an_oracle_that_costs_more_than_is_asked_for_is_refused() -> None:
    """Its beta was made for a delta of 1e-6."""
    summary = dptop.Tracked(NoiseFirst(), CAPACITY, "estimates")
    summary.extend(zipf_stream(1)[:1000])
    with pytest.raises(dptop.InvalidParameter, match="the oracle must keep"):
        dptop.release(summary, epsilon=EPSILON, delta=1e-9, length=LENGTH)
    with pytest.raises(dptop.InvalidParameter, match="the oracle must keep"):
        dptop.release(summary, epsilon=0.4, delta=DELTA, length=LENGTH)
    assert not summary._ledger.entries
