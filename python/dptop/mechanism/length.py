"""`LengthBound`: a noisy length, lifted so that it is hardly ever too short."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dptop.noise import tail
from dptop.privacy import PrivacyParameters
from dptop.search import smallest_by_bisection

if TYPE_CHECKING:
    from decimal import Decimal
    from fractions import Fraction

__all__ = ["LengthBound"]


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
