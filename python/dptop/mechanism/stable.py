"""`StableThreshold`, the default for SpaceSaving: labels above the noisy minimum counter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dptop import intervals
from dptop.mechanism.gap import failure, smallest_gap
from dptop.noise import difference_tail
from dptop.parameters import real_number, whole_number
from dptop.privacy import PrivacyParameters
from dptop.tie import Tie

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal
    from fractions import Fraction

__all__ = ["StableThreshold"]


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
        object.__setattr__(self, "offset", 1 + smallest_gap(difference_tail, self.epsilon, self.delta, self.tie))

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
        return failure(difference_tail, self.epsilon, self.offset - 1, self.tie)

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
