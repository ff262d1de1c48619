"""`MisraGriesThreshold`: private Misra-Gries as Lebeda and Tětek 2023 release it, the baseline of the paper."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from dptop import intervals
from dptop.noise import ROUND_UP, decay
from dptop.parameters import real_number, whole_number
from dptop.privacy import PRECISE, PrivacyParameters, to_decimal
from dptop.search import smallest_by_bisection

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

__all__ = ["MisraGriesThreshold"]

ONE: Final = Decimal(1)


@dataclass(frozen=True, slots=True)
class MisraGriesThreshold:
    """Publishing every label with D[x] + eta + Z_x >= `threshold` is (epsilon, delta)-private.

    D[x] are the counters of a Misra-Gries summary that keeps its zero counters and replaces the smallest label among
    them; eta, which all counters share, and all Z_x are independent discrete Laplace draws with the whole epsilon.
    Neighbouring summaries differ in one counter or in all by one, and in at most two labels of either, whose counters
    are at most 1.

    Attributes:
        epsilon: the epsilon that is kept, a multiple of 2^-32.
        delta: the delta that is kept.
        published: whether the threshold is the one that Lebeda and Tětek state, 1 + 2 ceil(ln(6 e^epsilon /
            ((e^epsilon + 1) delta)) / epsilon), and not the smallest that keeps the promise.
        threshold: in items.

    Source: Lebeda and Tětek 2023, section 5; docs/privacy.md section 13.

    >>> MisraGriesThreshold.calibrate(epsilon=1.0, delta=1e-6).threshold
    17
    >>> MisraGriesThreshold.calibrate(epsilon=1.0, delta=1e-6, published=True).threshold
    33
    """

    epsilon: Fraction
    delta: Decimal
    published: bool = False
    threshold: int = field(init=False)

    def __post_init__(self) -> None:
        PrivacyParameters(self.epsilon, self.delta)  # refuses what is off the grid or out of range
        threshold = self._as_published() if self.published else 1 + smallest_by_bisection(self._holds)
        object.__setattr__(self, "threshold", threshold)

    @classmethod
    def calibrate(cls, *, epsilon: float, delta: float, published: bool = False) -> MisraGriesThreshold:
        """Return the mechanism that keeps (epsilon, delta).

        Args:
            epsilon: 2^-20 <= epsilon <= 64; rounded down to a multiple of 2^-32.
            delta: 0 < delta < 1.
            published: whether to take the published threshold, which is about twice the smallest.

        Raises:
            InvalidParameter: a value out of range.
        """
        return cls.of(PrivacyParameters.of(epsilon, delta), published=published)

    @classmethod
    def of(cls, parameters: PrivacyParameters, *, published: bool = False) -> MisraGriesThreshold:
        """Return the mechanism for parameters that are exact already, such as one part of a split."""
        return cls(parameters.epsilon, parameters.delta, published)

    @property
    def scale(self) -> float:
        """Return 1 / epsilon, the scale of the noise, for humans; the noise itself never meets a float."""
        return float(1 / self.epsilon)

    @property
    def failure_probability(self) -> Decimal:
        """Return the chance that pays for the labels only one neighbour tracks: at most delta, rounded up."""
        return self._failure(self.threshold)

    def keeps(self, noisy_count: int) -> bool:
        """Return whether a label is published: THE comparison, in integers."""
        return noisy_count >= self.threshold

    def intervals(
        self,
        noisy_counts: Sequence[int],
        beta: float,
        *,
        undercount: int | None = None,
        simultaneous_over: int | None = None,
    ) -> list[tuple[int, int | None]]:
        """Return (low, high) for each published label: low <= true count <= high with probability 1 - beta.

        The probability is that of each label given that it was published or, with `simultaneous_over`, that all
        intervals hold at once.

        Args:
            noisy_counts: what was published, each kept by `keeps`.
            beta: 0 < beta < 1; at most half of it goes to either end.
            undercount: how far a counter may be below the true count, such as n / (capacity + 1) of a public length;
                None where nothing is known of it: then there is no upper end.
            simultaneous_over: the capacity, for intervals that hold together.

        Raises:
            InvalidParameter: beta out of range, or a capacity below one.
        """
        beta = real_number("beta", beta, "0 < beta < 1", lambda x: 0 < x < 1, "0.05 gives 95 % intervals.")
        if simultaneous_over is None:
            ends = intervals.given_common_noise(self.epsilon, self.threshold, beta, noisy_counts)
        else:
            capacity = whole_number("simultaneous_over", simultaneous_over, 1, 2**31, "Pass the capacity.")
            ends = intervals.simultaneous_common_noise(self.epsilon, capacity, beta, noisy_counts)
        return [(low, None if undercount is None else high + undercount) for low, high in ends]

    def _holds(self, threshold_less_one: int) -> bool:
        return self._failure(1 + threshold_less_one) <= self.delta

    def _as_published(self) -> int:
        grown = PRECISE.exp(to_decimal(self.epsilon))
        inside = PRECISE.divide(PRECISE.multiply(6, grown), PRECISE.multiply(PRECISE.add(grown, ONE), self.delta))
        steps = PRECISE.divide(PRECISE.ln(inside), to_decimal(self.epsilon))
        return 1 + 2 * int(steps.to_integral_value(rounding="ROUND_CEILING"))

    def _failure(self, t: int) -> Decimal:
        """Return 1 - sum over e of P[eta = e] P[Z < t - 1 - e] P[Z < t - e], for t >= 1, never below it.

        The chance that one of two labels with the counters 1 and 0 is published. The sum in closed form, with
        c = (1 - a)/(1 + a) and b = 1/(1 + a)^2: where e <= t - 2 a term is a^(t-1-e) - b a^(2(t-1-e)+1), at e = t - 1
        it is 1 - a b, and above 1 - b a^(2(e-t)+3), each times c a^|e|.
        """
        p = PRECISE
        a = decay(self.epsilon, 1)
        one_less = p.subtract(ONE, a)
        cube = p.subtract(ONE, decay(self.epsilon, 3))
        c = p.divide(one_less, p.add(ONE, a))
        b = p.divide(ONE, p.multiply(p.add(ONE, a), p.add(ONE, a)))

        def power(k: int) -> Decimal:
            return decay(self.epsilon, k)

        below_zero = p.subtract(
            p.divide(power(t + 1), p.subtract(ONE, power(2))), p.divide(p.multiply(b, power(2 * t + 2)), cube)
        )
        between = p.subtract(
            p.multiply(Decimal(t - 1), power(t - 1)),
            p.divide(p.multiply(b, p.subtract(power(t + 1), power(2 * t))), one_less),
        )
        at = p.multiply(power(t - 1), p.subtract(ONE, p.multiply(a, b)))
        above = p.subtract(p.divide(power(t), one_less), p.divide(p.multiply(b, power(t + 3)), cube))
        total = p.multiply(c, p.add(p.add(below_zero, between), p.add(at, above)))
        return min(ONE, p.multiply(total, ROUND_UP))
