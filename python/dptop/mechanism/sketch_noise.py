"""`SketchNoise`: noise in every cell of a sketch, once, and the privacy of everything read from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from dptop import gaussian
from dptop.envelope import GaussianCells, LaplaceCells
from dptop.errors import InvalidParameter
from dptop.privacy import EPSILON_STEP, PRECISE, PrivacyParameters, floor_epsilon

if TYPE_CHECKING:
    from fractions import Fraction

    from dptop.envelope import CellNoise

__all__ = ["GAUSSIAN", "LAPLACE", "NOISES", "SketchNoise"]

LAPLACE: Final = "laplace"
GAUSSIAN: Final = "gaussian"
NOISES: Final = (LAPLACE, GAUSSIAN)


@dataclass(frozen=True, slots=True)
class SketchNoise:
    """Cells with this noise, each with its own draw, are (state.epsilon, state.delta)-private, and all that follows.

    One item changes one cell of each row by one. Discrete Laplace noise of epsilon/depth hides that with delta 0: the
    changes sum to `depth`. Discrete Gaussian noise hides it with the variance of `gaussian.smallest_variance`, which
    grows with the depth and not with its square. Neither depends on how labels are hashed.

    Attributes:
        state: the privacy of the noisy cells.
        depth: rows of the sketch.
        epsilon_cell: of Laplace noise, a multiple of 2^-32; None for Gaussian noise.
        variance: of Gaussian noise, a whole number; None for Laplace noise.

    Source: docs/privacy.md section 14.

    >>> parameters = PrivacyParameters.of(1.0, 1e-6)
    >>> SketchNoise.laplace(parameters, depth=4).scale, SketchNoise.gaussian(parameters, depth=25).variance
    (4.0, 447)
    """

    state: PrivacyParameters
    depth: int
    epsilon_cell: Fraction | None = None
    variance: int | None = None

    @classmethod
    def laplace(cls, parameters: PrivacyParameters, depth: int) -> SketchNoise:
        """Return Laplace noise with the epsilon; its delta is 0.

        Raises:
            InvalidParameter: epsilon / depth is below 2^-32.
        """
        epsilon_cell = floor_epsilon(parameters.epsilon / depth)
        if not epsilon_cell:
            raise InvalidParameter(
                f"epsilon / depth must be at least 2**-32; got {float(parameters.epsilon)!r} / {depth}."
                " Use fewer rows or a larger epsilon."
            )
        return cls(PrivacyParameters(parameters.epsilon, Decimal(0)), depth, epsilon_cell=epsilon_cell)

    @classmethod
    def gaussian(cls, parameters: PrivacyParameters, depth: int) -> SketchNoise:
        """Return Gaussian noise with epsilon and delta.

        Raises:
            InvalidParameter: a depth above 2^16, or a variance above 2^40.
        """
        variance = gaussian.smallest_variance(parameters.epsilon, parameters.delta, depth)
        return cls(parameters, depth, variance=variance)

    @classmethod
    def of(
        cls, kind: str | None, whole: PrivacyParameters, depth: int, *, parts: int = 2
    ) -> tuple[SketchNoise, Decimal]:
        """Return the noise for a part of epsilon, and what it leaves of delta for what else there is to pay.

        Laplace noise leaves all of delta, Gaussian noise half; none if there is nothing else, and delta has one part.
        Without a kind it is the one that spreads less.
        """
        if kind == LAPLACE:
            return cls.laplace(whole, depth), whole.delta
        if kind == GAUSSIAN:
            # rounded as the context says, and what is left exactly: the two never sum to more
            own = whole.delta if parts == 1 else PRECISE.divide(whole.delta, parts)
            return cls.gaussian(PrivacyParameters(whole.epsilon, own), depth), PRECISE.subtract(whole.delta, own)
        laplace = cls.of(LAPLACE, whole, depth, parts=parts)
        try:
            other = cls.of(GAUSSIAN, whole, depth, parts=parts)
        except InvalidParameter:  # beyond what Gaussian noise is made for
            return laplace
        return other if other[0].deviation < laplace[0].deviation else laplace

    @property
    def kind(self) -> str:
        """Either "laplace" or "gaussian"."""
        return GAUSSIAN if self.variance is not None else LAPLACE

    @property
    def scale(self) -> float:
        """The parameter of the noise for humans: 1 / epsilon of a cell, or the square root of the variance."""
        if self.variance is not None:
            return math.sqrt(self.variance)
        return float(1 / self._epsilon_cell)

    @property
    def deviation(self) -> float:
        """The standard deviation of a cell's noise, in items."""
        if self.variance is not None:
            return math.sqrt(self.variance)
        return math.sqrt(float(self.cells.moments.square_high))

    @property
    def cells(self) -> CellNoise:
        """The noise as the error envelopes see it."""
        return GaussianCells(self.variance) if self.variance is not None else LaplaceCells(self._epsilon_cell)

    @property
    def numerator(self) -> int | None:
        """The epsilon of a cell in units of 2^-32, None for Gaussian noise: what the sampler takes."""
        return None if self.epsilon_cell is None else int(self.epsilon_cell / EPSILON_STEP)

    @property
    def _epsilon_cell(self) -> Fraction:
        if self.epsilon_cell is None:
            raise AssertionError("noise is either Laplace or Gaussian")
        return self.epsilon_cell
