"""The privacy mechanisms: noise scale, threshold, THE comparison, and the chance that the comparison was built for.

One class per mechanism owns all four, so that they cannot drift apart. `tests/test_exact_divergence.py` sums the exact
probabilities over what `keeps` keeps and compares the result with `delta`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from dptop import intervals
from dptop.noise import difference_tail, tail
from dptop.parameters import as_written, real_number, whole_number
from dptop.privacy import PRECISE, PrivacyParameters
from dptop.search import smallest_by_bisection
from dptop.tie import Tie

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from decimal import Decimal

__all__ = ["PAPER", "STABLE", "LengthBound", "PaperThreshold", "StableThreshold"]

STABLE: Final = "stable-threshold"
PAPER: Final = "paper"
"""What a release calls `StableThreshold` and `PaperThreshold`."""


@dataclass(frozen=True, slots=True)
class StableThreshold:
    """Publishing m + Z_0 and every label with C[x] + Z_x above it by more than `offset` is (epsilon, delta)-private.

    C[x] are the counters of a SpaceSaving summary with this tie rule, m is its smallest counter (0 while a slot is
    free), and Z_0 and all Z_x are independent discrete Laplace draws with the whole epsilon: nothing is split between
    the minimum and the counters, and the length of the stream is not needed. Theorem 1 of docs/privacy.md section 4.

    Attributes:
        epsilon: the epsilon that is kept, a multiple of 2^-32.
        delta: the delta that is kept.
        tie: the tie rule that the summary must have used.
        offset: 1 + G, in items, where G is the smallest integer >= 0 whose failure probability is at most delta.

    >>> mechanism = StableThreshold.calibrate(epsilon=1.0, delta=1e-6)
    >>> mechanism.offset
    16
    >>> mechanism.keeps(noisy_count=117, noisy_minimum=100), mechanism.keeps(noisy_count=116, noisy_minimum=100)
    (True, False)
    """

    epsilon: Fraction
    delta: Decimal
    tie: Tie
    offset: int = field(init=False)

    def __post_init__(self) -> None:
        PrivacyParameters(self.epsilon, self.delta)  # refuses what is off the grid or out of range
        object.__setattr__(self, "tie", Tie.of(self.tie))
        object.__setattr__(self, "offset", 1 + _smallest_gap(difference_tail, self.epsilon, self.delta, self.tie))

    @classmethod
    def calibrate(cls, *, epsilon: float, delta: float, tie: str | Tie = Tie.LEAST_RECENT) -> StableThreshold:
        """Return the mechanism with the smallest threshold that keeps (epsilon, delta).

        Args:
            epsilon: 2^-20 <= epsilon <= 64; rounded down to a multiple of 2^-32.
            delta: 0 < delta < 1.
            tie: "least-recent" or "most-recent": the rule of the summary that is released.

        Raises:
            InvalidParameter: a value out of range, or no such rule.

        >>> StableThreshold.calibrate(epsilon=0.1, delta=1e-6, tie="most-recent").offset
        161
        """
        return cls.of(PrivacyParameters.of(epsilon, delta), tie)

    @classmethod
    def of(cls, parameters: PrivacyParameters, tie: str | Tie = Tie.LEAST_RECENT) -> StableThreshold:
        """Return the mechanism for parameters that are exact already, such as one part of a split."""
        return cls(parameters.epsilon, parameters.delta, Tie.of(tie))

    @property
    def scale(self) -> float:
        """Return 1 / epsilon, the scale of the noise, for humans; the noise itself never meets a float."""
        return float(1 / self.epsilon)

    @property
    def failure_probability(self) -> Decimal:
        """Return the chance that pays for the labels only one neighbour tracks: at most delta, rounded up.

        P(G) under least recent, P(G) + P(G+1) under most recent, P(g) = P[Z_x - Z_0 > g]. Under least recent no delta
        below P(G) holds for a summary of capacity 2 or more.
        """
        return _failure(difference_tail, self.epsilon, self.offset - 1, self.tie)

    def keeps(self, noisy_count: int, noisy_minimum: int) -> bool:
        """Return whether a label is published: THE comparison, strict, in integers."""
        return noisy_count - noisy_minimum > self.offset

    def interval(
        self,
        noisy_count: int,
        noisy_minimum: int,
        beta: float,
        *,
        simultaneous_over: int | None = None,
        tables: int = 1,
    ) -> tuple[int, int]:
        """Return (low, high) around the true count of a published label: see `intervals`.

        >>> StableThreshold.calibrate(epsilon=1.0, delta=1e-6).interval(217, 100, beta=0.05)
        (113, 220)
        """
        return self.intervals([noisy_count], noisy_minimum, beta, simultaneous_over=simultaneous_over, tables=tables)[0]

    def intervals(
        self,
        noisy_counts: Sequence[int],
        noisy_minimum: int,
        beta: float,
        *,
        simultaneous_over: int | None = None,
        tables: int = 1,
    ) -> list[tuple[int, int]]:
        """Return (low, high) for each published label: low <= true count <= high with probability 1 - beta.

        By default the probability is that of each label by itself, given that it was published: among the labels that
        appear, not among those that might have. With `simultaneous_over` it is the probability that all intervals hold
        at once. Both are never shorter than docs/privacy.md section 5 says, and cost no privacy.

        Args:
            noisy_counts: what was published, each kept by `keeps`.
            noisy_minimum: the noisy minimum of the table the labels are from.
            beta: 0 < beta < 1; at most half of it goes to either end.
            simultaneous_over: the capacity of the table, for intervals that hold together. The capacity is public,
                the number of labels tracked is not.
            tables: how many tables are released together, if the intervals are to hold together over all of them.

        Raises:
            InvalidParameter: beta out of range, or a count of labels or tables below one.
        """
        beta = real_number("beta", beta, "0 < beta < 1", lambda x: 0 < x < 1, "0.05 gives 95 % intervals.")
        if simultaneous_over is None:
            return intervals.given_release(self.epsilon, self.offset, beta, noisy_counts, noisy_minimum)
        capacity = whole_number("simultaneous_over", simultaneous_over, 1, 2**31, "Pass the capacity of one table.")
        tables = whole_number("tables", tables, 1, 2**31, "Pass how many are released together.")
        return intervals.simultaneous(self.epsilon, capacity, tables, beta, noisy_counts, noisy_minimum)


@dataclass(frozen=True, slots=True)
class PaperThreshold:
    """Publishing every label with C[x] + Z_x > max(floor(N/k) - g, floor(N/K) + 1 + g) is (epsilon, delta)-private.

    C[x] are the counters of a SpaceSaving summary with capacity K and this tie rule, Z_x are independent discrete
    Laplace draws with epsilon, 1/k is the share asked for, and N is an upper bound on the length of the stream that
    does not come from the exact length: declared before the stream is read, or by `LengthBound`, whose epsilon and
    delta then come on top. This is the paper's Algorithm 3, which compares with the exact length and is not
    (epsilon, delta)-private as it stands: docs/privacy.md section 12, Theorem 2.

    Attributes:
        epsilon: the epsilon that is kept, a multiple of 2^-32.
        delta: the delta that is kept.
        tie: the tie rule that the summary must have used.
        capacity: its counters; the paper's k-tilde.
        share: the share asked for, 0 < share <= 1; the paper's 1/k.
        gap: g, in items: the smallest integer >= 0 whose failure probability is at most delta.

    >>> mechanism = PaperThreshold.calibrate(epsilon=1.0, delta=1e-6, capacity=2000, share=0.001)
    >>> mechanism.gap, mechanism.threshold(1_000_000), mechanism.threshold(10_000)
    (13, 987, 19)
    >>> mechanism.keeps(noisy_count=988, length=1_000_000), mechanism.keeps(noisy_count=987, length=1_000_000)
    (True, False)
    """

    epsilon: Fraction
    delta: Decimal
    tie: Tie
    capacity: int
    share: Fraction
    gap: int = field(init=False)

    def __post_init__(self) -> None:
        PrivacyParameters(self.epsilon, self.delta)  # refuses what is off the grid or out of range
        object.__setattr__(self, "tie", Tie.of(self.tie))
        object.__setattr__(self, "gap", _smallest_gap(tail, self.epsilon, self.delta, self.tie))

    @classmethod
    def calibrate(
        cls, *, epsilon: float, delta: float, capacity: int, share: float, tie: str | Tie = Tie.LEAST_RECENT
    ) -> PaperThreshold:
        """Return the mechanism with the smallest thresholds that keep (epsilon, delta).

        Args:
            epsilon: 2^-20 <= epsilon <= 64; rounded down to a multiple of 2^-32.
            delta: 0 < delta < 1.
            capacity: counters of the summary, 1 to 2^31.
            share: 0 < share <= 1, as it is written: 0.1 means 1/10.
            tie: "least-recent" or "most-recent": the rule of the summary that is released.

        Raises:
            InvalidParameter: a value out of range, or no such rule.
        """
        capacity = whole_number("capacity", capacity, 1, 2**31, "Pass the capacity of the summary.")
        share = real_number("share", share, "0 < share <= 1", lambda x: 0 < x <= 1, "0.01 asks for 1 %.")
        return cls.of(PrivacyParameters.of(epsilon, delta), capacity, Fraction(as_written(share)), tie)

    @classmethod
    def of(
        cls, parameters: PrivacyParameters, capacity: int, share: Fraction, tie: str | Tie = Tie.LEAST_RECENT
    ) -> PaperThreshold:
        """Return the mechanism for parameters that are exact already, such as one part of a split."""
        return cls(parameters.epsilon, parameters.delta, Tie.of(tie), capacity, share)

    @property
    def scale(self) -> float:
        """Return 1 / epsilon, the scale of the noise, for humans; the noise itself never meets a float."""
        return float(1 / self.epsilon)

    @property
    def failure_probability(self) -> Decimal:
        """Return the chance that pays for the labels only one neighbour tracks: at most delta, rounded up.

        P[Z > g] under least recent, P[Z > g] + P[Z > g + 1] under most recent.
        """
        return _failure(tail, self.epsilon, self.gap, self.tie)

    def threshold(self, length: int) -> int:
        """Return what a noisy count must exceed, in items, where `length` bounds the length of the stream."""
        of_share = self.share.numerator * length // self.share.denominator
        return max(of_share - self.gap, length // self.capacity + 1 + self.gap)

    def keeps(self, noisy_count: int, length: int) -> bool:
        """Return whether a label is published: THE comparison, strict, in integers."""
        return noisy_count > self.threshold(length)

    def intervals(
        self, noisy_counts: Sequence[int], length: int, beta: float, *, simultaneous: bool = False
    ) -> list[tuple[int, int]]:
        """Return (low, high) for each published label: low <= true count <= high with probability 1 - beta.

        The probability is that of each label given that it was published or, with `simultaneous`, that all intervals
        hold at once. A count exceeds the true one by up to floor(N/K), which comes off the lower end.

        Args:
            noisy_counts: what was published, each kept by `keeps`.
            length: the bound on the length that `keeps` was given.
            beta: 0 < beta < 1; at most half of it goes to either end.
            simultaneous: whether all intervals are to hold together.

        Raises:
            InvalidParameter: beta out of range.
        """
        beta = real_number("beta", beta, "0 < beta < 1", lambda x: 0 < x < 1, "0.05 gives 95 % intervals.")
        excess = length // self.capacity
        if simultaneous:
            return intervals.simultaneous_counters(self.epsilon, self.capacity, beta, noisy_counts, excess)
        return intervals.given_threshold(self.epsilon, self.threshold(length), beta, noisy_counts, excess)


@dataclass(frozen=True, slots=True)
class LengthBound:
    """A noisy length n + Z is epsilon-private, and n + Z + slack is below the length n with chance at most delta.

    So a mechanism that is private for neighbours of which the shorter has at most N items is so for N = n + Z + slack,
    at (epsilon, delta) more: docs/privacy.md section 12.

    >>> bound = LengthBound.of(PrivacyParameters.of(0.02, 5e-7))
    >>> bound.slack, bound.above(1_000_000)
    (691, 1000691)
    """

    epsilon: Fraction
    delta: Decimal
    slack: int = field(init=False)

    def __post_init__(self) -> None:
        PrivacyParameters(self.epsilon, self.delta)  # refuses what is off the grid or out of range
        object.__setattr__(self, "slack", smallest_by_bisection(lambda t: tail(self.epsilon, t) <= self.delta))

    @classmethod
    def of(cls, parameters: PrivacyParameters) -> LengthBound:
        """Return the bound for a part of a split."""
        return cls(parameters.epsilon, parameters.delta)

    def above(self, noisy_length: int) -> int:
        """Return the bound that goes with a noisy length; no stream is shorter than nothing."""
        return max(0, noisy_length + self.slack)


def _smallest_gap(chance: Callable[[Fraction, int], Decimal], epsilon: Fraction, delta: Decimal, tie: Tie) -> int:
    return smallest_by_bisection(lambda g: _failure(chance, epsilon, g, tie) <= delta)


def _failure(chance: Callable[[Fraction, int], Decimal], epsilon: Fraction, gap: int, tie: Tie) -> Decimal:
    """Return the chance that a label tracked by one neighbour only is published, at 1 + gap above its minimum.

    `chance` is that of more than so many items of noise. Theorem B: one such label may exceed its own minimum, by one;
    a second, under most recent, may only equal it.
    """
    total = chance(epsilon, gap)
    for i in range(1, tie.isolated_per_side):
        total = PRECISE.add(total, chance(epsilon, gap + i))
    return total
