"""A bound on the sum of the squared counts, from a CountSketch's noisy rows: it costs no privacy.

The threshold that comes from it is a function of the noisy state, and is never below the one for the true sum unless
the bound is too low: that chance is added to beta once.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from dptop.envelope.binomial import majority
from dptop.envelope.rows import checked_collision, collision_chance
from dptop.errors import InvalidParameter
from dptop.parameters import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dptop.envelope.cell_noise import CellNoise

__all__ = ["MOST_FOR_SQUARES", "squares_bound", "squares_failure", "squares_payable"]

WIDEST_COLLISION: Final = Fraction(1, 16)
MOST_FOR_SQUARES: Final = 15 / 16
"""Of the chance that is allowed, the most that a bound on the squares may take: what is left raises the errors little,
and a bound that is better than length^2 lowers them by far."""
ROOT_SCALE: Final = 2**32


def squares_failure(depth: int) -> float:
    """Return P[Bin(d, 1/8) >= (d + 1)/2]: at least the chance that `squares_bound` is too low.

    >>> round(squares_failure(3) * 512, 6)  # 3 * 7 + 1
    22.0
    """
    return majority(depth, 0.125)


def squares_payable(width: int, depth: int, allowed: float) -> bool:
    """Return whether a release that allows this chance of failure takes a bound on the squares from its noisy rows.

    Public numbers decide: rows have to be wide enough, and the chance that the bound is too low at most 15/16 of what
    is allowed. Otherwise the squares are at most length^2, for certain.

    >>> squares_payable(17, 31, allowed=1.8e-7), squares_payable(17, 31, allowed=1.7e-7), squares_payable(16, 31, 0.1)
    (True, False, False)
    """
    return collision_chance(width) < WIDEST_COLLISION and squares_failure(depth) <= allowed * MOST_FOR_SQUARES


def squares_bound(
    row_sums: Sequence[int], *, width: int, length: int, noise: CellNoise, collision: Fraction | None = None
) -> int:
    """Return F, which is at least the sum of the squared counts except with probability `squares_failure(depth)`.

    With Y_r = (sum of the squared cells of row r) - w E[Z^2], the largest whole F with
    F - sqrt(8 (2 c F^2 + 4 E[Z^2] F + w Var(Z^2))) <= the median of the Y_r, and N^2 if that is less or there is none.
    Chebyshev's inequality: the root is of eight times at least the variance of Y_r, whose mean is F.

    Args:
        row_sums: the sum of the squared noisy cells of each row; an odd number of rows, independent of each other. The
            signs are 4-wise independent and independent of the cells.
        width: w, cells in a row, above 16.
        length: N, a bound on the length of the stream.
        noise: of every cell.
        collision: c, the chance that two labels share a cell of a row; below 1/16.

    Raises:
        InvalidParameter: an even number of rows, or rows too narrow.

    >>> from dptop.envelope import NoNoise
    >>> squares_bound([10_000], width=1024, length=1000, noise=NoNoise())  # 10,000 / (1 - sqrt(16/1024))
    11428
    """
    if len(row_sums) % 2 == 0:
        raise InvalidParameter(f"row_sums must be of an odd number of rows; got {len(row_sums)}. Pass all rows.")
    c = checked_collision(collision, width)
    if c >= WIDEST_COLLISION:
        raise InvalidParameter(f"width must be above 16 for a bound on the squares; got {shown(width)}. Use N^2.")
    moments = noise.moments
    y = sorted(row_sums)[len(row_sums) // 2] - width * moments.square_low
    most = length**2
    # (F - y)^2 = 8 (...) is (1 - 16 c) F^2 - 2 (y + 16 s) F + y^2 - 8 w Var = 0; its larger root is at least y
    lead = 1 - 16 * c
    middle = y + 16 * moments.square_high
    discriminant = middle * middle - lead * (y * y - 8 * width * moments.variance_high)
    if discriminant < 0:
        return most
    largest = math.floor((middle + _root_above(discriminant)) / lead)
    return min(most, largest) if largest >= 0 else most


def _root_above(square: Fraction) -> Fraction:
    """Return a number at least the square root, above it by less than 2^-32 and by nothing if it is a fraction."""
    under = square.numerator * square.denominator * ROOT_SCALE**2
    root = math.isqrt(under)
    return Fraction(root + (root * root < under), square.denominator * ROOT_SCALE)
