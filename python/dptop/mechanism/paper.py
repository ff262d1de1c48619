"""`PaperThreshold`: the paper's Algorithm 3, with a public bound in place of the exact length."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from dptop import intervals
from dptop.mechanism.gap import failure, smallest_gap
from dptop.noise import tail
from dptop.parameters import as_written, real_number, whole_number
from dptop.privacy import PrivacyParameters
from dptop.tie import Tie

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

__all__ = ["PaperThreshold"]


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
        object.__setattr__(self, "gap", smallest_gap(tail, self.epsilon, self.delta, self.tie))

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
        return failure(tail, self.epsilon, self.gap, self.tie)

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
