"""`StabilityHistogram`, the ceiling: exact counts, noise on each, and a threshold for what one item may bring in.

No private summary of bounded memory can be expected to do better: it has the whole epsilon for every count, its
threshold depends on delta alone, and no error but noise. What it costs is memory that grows with the distinct labels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from dptop.noise import draw, tail
from dptop.privacy import PrivacyParameters
from dptop.search import smallest_by_bisection

if TYPE_CHECKING:
    from decimal import Decimal
    from fractions import Fraction

    from experiments.methods.exact import ExactCounts, Integers

__all__ = ["StabilityHistogram"]


@dataclass(frozen=True, slots=True)
class StabilityHistogram:
    """Publishing every label that occurs with f[x] + Z_x > 1 + g is (epsilon, delta)-private.

    f[x] are exact counts and Z_x independent discrete Laplace draws with epsilon. Neighbours differ in the count of
    one label, by one. If both have the label, noise hides the difference. If one of them lacks it, the other has it
    once and shows it with chance P[Z > g], which is at most delta.

    Attributes:
        epsilon: the epsilon that is kept, a multiple of 2^-32.
        delta: the delta that is kept.
        threshold: 1 + g, in items, where g is the smallest integer >= 0 with P[Z > g] <= delta.

    Source: Korolova, Kenthapadi, Mishra, Ntoulas 2009, "Releasing Search Queries and Clicks Privately"; Bun, Nissim,
    Stemmer 2016, "Simultaneous Private Learning of Multiple Concepts"; with integer noise as in docs/privacy.md
    section 3.

    >>> histogram = StabilityHistogram.calibrate(epsilon=1.0, delta=1e-6)
    >>> histogram.threshold, histogram.keeps(15), histogram.keeps(14)
    (14, True, False)
    """

    epsilon: Fraction
    delta: Decimal
    threshold: int = field(init=False)

    def __post_init__(self) -> None:
        PrivacyParameters(self.epsilon, self.delta)  # refuses what is off the grid or out of range
        gap = smallest_by_bisection(lambda g: tail(self.epsilon, g) <= self.delta)
        object.__setattr__(self, "threshold", 1 + gap)

    @classmethod
    def calibrate(cls, *, epsilon: float, delta: float) -> StabilityHistogram:
        """Return the histogram with the smallest threshold that keeps (epsilon, delta).

        Args:
            epsilon: 2^-20 <= epsilon <= 64; rounded down to a multiple of 2^-32.
            delta: 0 < delta < 1.

        Raises:
            InvalidParameter: a value out of range.
        """
        parameters = PrivacyParameters.of(epsilon, delta)
        return cls(parameters.epsilon, parameters.delta)

    @property
    def failure_probability(self) -> Decimal:
        """Return the chance that a label which only one neighbour has is published: at most delta, rounded up."""
        return tail(self.epsilon, self.threshold - 1)

    @overload
    def keeps(self, noisy_count: int) -> bool: ...

    @overload
    def keeps(self, noisy_count: Integers) -> np.ndarray[Any, np.dtype[np.bool_]]: ...

    def keeps(self, noisy_count: Any) -> Any:
        """Return whether a label is published, or which of many are: THE comparison, strict, in integers."""
        return noisy_count > self.threshold

    def release(
        self, exact: ExactCounts, *, seed: int | None = None, least_count: int | None = None
    ) -> dict[int | str, int]:
        """Return noisy counts by label, largest first, equal ones by label.

        Args:
            exact: what was counted.
            seed: None for fresh noise. A seed repeats the noise and protects nobody.
            least_count: publish no label whose noisy count is below it. It must be public: n/k with a declared n.
        """
        noisy = exact.counts + np.array(draw(self.epsilon, len(exact.counts), seed), np.int64)
        kept = self.keeps(noisy)
        if least_count is not None:
            kept &= noisy >= least_count
        at = np.flatnonzero(kept)
        at = at[np.argsort(-noisy[at], kind="stable")]  # labels are in order already
        return dict(zip(exact.labels.take(at).to_pylist(), noisy[at].tolist(), strict=True))
